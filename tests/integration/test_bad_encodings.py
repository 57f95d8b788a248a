"""Files whose bytes are not UTF-8: every reader says so with an error of the package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ripplevec.cli import bench_record
from ripplevec.errors import FormatError
from ripplevec.io.readers.edge_files import open_edges
from ripplevec.io.registry import stream_from
from ripplevec.lab.datasets.dataset import from_files
from ripplevec.lab.experiments import spec
from ripplevec.service.security import Tokens


def streamed(path: Path) -> None:
    source = stream_from(str(path))
    source.open(None)
    try:
        source.read(0)
    finally:
        source.close()


def parquet(path: Path) -> None:
    pq.write_table(pa.table({"src": ["alice", "bob"], "dst": ["carol", "dave"]}), path, compression="none")
    path.write_bytes(path.read_bytes().replace(b"alice", b"al\xffce"))


def text(content: bytes) -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(content)


READERS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Any]]] = {
    "edges.parquet": (parquet, lambda path: list(open_edges(path))),
    "stream.parquet": (parquet, streamed),
    "edges.csv": (text(b"src,dst\na,b\xff\n"), lambda path: list(open_edges(path))),
    "edges.jsonl": (text(b'{"src": "a\xff", "dst": "b"}\n'), lambda path: list(open_edges(path))),
    "labels.txt": (text(b"a x\xff\n"), lambda path: from_files(path, path)),
    "tokens": (text(b"read abcdefghijklmnop\xff\n"), Tokens.from_file),
    "study.yaml": (text(b"kind: \xff\n"), spec.load),
    "bench.json": (text(b'{"small": "\xff"}'), lambda path: bench_record.write(path, "small", {})),
}


@pytest.mark.parametrize("name", READERS)
def test_file_with_bytes_that_are_not_utf_8_is_a_format_error(tmp_path: Path, name: str) -> None:
    write, read = READERS[name]
    write(tmp_path / name)
    with pytest.raises(FormatError):
        read(tmp_path / name)
