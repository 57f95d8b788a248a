from __future__ import annotations

import gzip
import io
import lzma
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ripplevec.batch import ids_to_list
from ripplevec.errors import FormatError, HeaderWarning, InvalidValueError
from ripplevec.io.readers.byte_stream import ByteStream, open_byte_stream
from ripplevec.io.readers.edge_files import open_edges


def read_pairs(path, **options):
    return [
        pair
        for batch in open_edges(path, **options)
        for pair in zip(ids_to_list(batch.src), ids_to_list(batch.dst), strict=True)
    ]


def parquet_bytes():
    buffer = io.BytesIO()
    pq.write_table(pa.table({"src": [1, 3], "dst": [2, 4]}), buffer)
    return buffer.getvalue()


CONTENTS = {"csv": b"1,2\n3,4\n", "jsonl": b"[1, 2]\n[3, 4]\n", "parquet": parquet_bytes()}
COMPRESSIONS = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": lambda data: pa.compress(data, "zstd", asbytes=True),
    ".xz": lzma.compress,
}


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("format", CONTENTS)
@pytest.mark.parametrize("has_suffix", [True, False])
def test_open_edges_detects_format_and_compression(tmp_path, format, compression, has_suffix):
    path = tmp_path / (f"edges.{format}{compression}" if has_suffix else "edges")
    path.write_bytes(COMPRESSIONS[compression](CONTENTS[format]))
    assert read_pairs(path) == [(1, 2), (3, 4)]


def test_open_edges_with_format_overrides_suffix(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_bytes(CONTENTS["jsonl"])
    assert read_pairs(path, format="jsonl") == [(1, 2), (3, 4)]
    with pytest.raises(InvalidValueError, match="format"):
        open_edges(path, format="xml")


@pytest.mark.parametrize("data", [CONTENTS["csv"], gzip.compress(CONTENTS["jsonl"], mtime=0), CONTENTS["parquet"]])
def test_open_edges_with_dash_reads_standard_input(monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert read_pairs("-") == [(1, 2), (3, 4)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 60), st.integers(1, 70))
def test_open_edges_returns_batches_of_requested_size(tmp_path, count, size):
    path = tmp_path / "edges.csv"
    path.write_text("".join(f"{i},{i + 1}\n" for i in range(count)))
    batches = list(open_edges(path, batch_size=size))
    assert [len(batch) for batch in batches[:-1]] == [size] * (len(batches) - 1)
    assert sum(map(len, batches)) == count


def test_open_edges_decides_the_type_of_ids_by_a_whole_block(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("".join(f"{number},{number + 1}\n" for number in range(50)) + "ann,bob\n")
    assert read_pairs(path)[0] == ("0", "1")
    assert read_pairs(path)[-1] == ("ann", "bob")


def test_open_edges_judges_a_long_first_line_by_the_lines_after_it(tmp_path):
    path = tmp_path / "edges.csv"
    first = f"{'a' * 40},{'b' * 40}"
    path.write_text(f"{first}\n{'c' * 40},{'a' * 40}\n")
    assert len(read_pairs(path)) == 2  # an edge: one of its ids occurs again
    path.write_text(f"{first}\n" + "1,2\n3,4\n" * 3)
    with pytest.warns(HeaderWarning, match="read as a header"):
        assert len(read_pairs(path)) == 6


def test_open_edges_with_skip_reports_skipped_rows(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("1,2\nx\n3,4\n")
    reader = open_edges(path, on_error="skip", ids="int")
    assert sum(map(len, reader)) == 2
    assert (reader.skipped, reader.skipped_rows) == (1, [2])
    assert reader.first_problem == "line 2: expected 2 fields, not 1, got 'x'"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "got none$"),
        ("src,dst\n", "got none$"),
        ("src,dst\n1\n2\n", "all 2 rows were skipped, the first because of line 2: expected 2 fields, not 1, got '1'$"),
        ("src,dst,weight\na,b,-1\n", "the only row was skipped, because of line 2: expected a positive finite weight"),
    ],
)
def test_open_edges_of_file_without_edges_raises(tmp_path, text, message):
    path = tmp_path / "edges.csv"
    path.write_text(text)
    with pytest.raises(FormatError, match=message):
        list(open_edges(path, on_error="skip"))


def test_open_edges_of_matrix_market_file_raises(tmp_path):
    path = tmp_path / "graph.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 1\n2 1\n")
    with pytest.raises(FormatError, match=r"scipy\.io\.mmread"):
        open_edges(path)


def test_open_edges_of_missing_file_raises(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_edges(tmp_path / "nothing.csv")


@pytest.mark.parametrize("text", ["1,2\n3\n", "%%MatrixMarket\n"])
def test_open_edges_after_error_closes_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    opened: list[ByteStream] = []
    monkeypatch.setattr(
        "ripplevec.io.readers.edge_files.open_byte_stream",
        lambda path: opened.append(open_byte_stream(path)) or opened[0],
    )
    (tmp_path / "e.csv").write_text(text)
    with pytest.raises(FormatError):
        list(open_edges(tmp_path / "e.csv"))
    assert opened[0].closed
