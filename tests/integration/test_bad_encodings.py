"""Files that are not valid UTF-8: every reader raises `FormatError`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ripplevec import Embedder, load
from ripplevec.cli import bench_run, configuration
from ripplevec.errors import FormatError
from ripplevec.io.readers.edge_files import open_edges
from ripplevec.io.registry import stream_from
from ripplevec.lab.datasets.dataset import from_files
from ripplevec.lab.experiments import study
from ripplevec.service.security import Tokens


def read_stream(path: Path) -> None:
    source = stream_from(str(path))
    source.open(None)
    try:
        source.read(0)
    finally:
        source.close()


def write_parquet(path: Path) -> None:
    pq.write_table(pa.table({"src": ["alice", "bob"], "dst": ["carol", "dave"]}), path, compression="none")
    path.write_bytes(path.read_bytes().replace(b"alice", b"al\xffce"))


def write_manifest(path: Path) -> None:
    Embedder(dim=2).fit([("a", "b")]).save(path)
    manifest = path / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b"dim", b"d\xffm", 1))


def write_bytes(content: bytes) -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(content)


READERS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Any]]] = {
    "edges.parquet": (write_parquet, lambda path: list(open_edges(path))),
    "stream.parquet": (write_parquet, read_stream),
    "edges.csv": (write_bytes(b"src,dst\na,b\xff\n"), lambda path: list(open_edges(path))),
    "edges.jsonl": (write_bytes(b'{"src": "a\xff", "dst": "b"}\n'), lambda path: list(open_edges(path))),
    "labels.txt": (write_bytes(b"a x\xff\n"), lambda path: from_files(path, path)),
    "tokens": (write_bytes(b"read abcdefghijklmnop\xff\n"), Tokens.from_file),
    "study.yaml": (write_bytes(b"kind: \xff\n"), study.load_study),
    "settings.toml": (write_bytes(b'state = "\xff"\n'), configuration._read_toml),
    "model": (write_manifest, load),
    "bench.json": (write_bytes(b'{"small": "\xff"}'), lambda path: bench_run.write_record(path, "small", {})),
}


@pytest.mark.parametrize("name", READERS)
def test_readers_file_with_invalid_utf8_raises_format_error(tmp_path: Path, name: str) -> None:
    write, read = READERS[name]
    write(tmp_path / name)
    with pytest.raises(FormatError):
        read(tmp_path / name)
