from __future__ import annotations

import gzip
import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.errors import FormatError
from ripplevec.io.readers import byte_stream
from ripplevec.io.readers.byte_stream import ByteStream, open_byte_stream

TEXT = b"1 2\n2 3\n" * 1000


def test_byte_stream_peek_does_not_consume():
    stream = ByteStream("x", io.BytesIO(b"abcdef"))
    assert stream.peek(2) == b"ab"
    assert stream.peek(4) == b"abcd"
    assert stream.readall() == b"abcdef"


def test_byte_stream_peek_beyond_end_returns_all_bytes():
    assert ByteStream("x", io.BytesIO(b"ab")).peek(10) == b"ab"


@given(
    st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line), max_size=20),
    st.integers(1, 64),
    st.booleans(),
)
def test_line_blocks_are_whole_numbered_lines(lines, size, end):
    data = b"\n".join(lines) + (b"\n" if end else b"")
    data_of_blocks, next_line = b"", 1
    for block in ByteStream("x", io.BytesIO(data)).line_blocks(size):
        assert block.first == next_line
        assert block.data.endswith(b"\n")
        next_line += block.data.count(b"\n")
        data_of_blocks += block.data
    plain = data.removeprefix(b"\xef\xbb\xbf")
    assert data_of_blocks == plain if plain.endswith(b"\n") or not plain else data_of_blocks == plain + b"\n"


def test_line_blocks_drop_byte_order_mark():
    blocks = list(ByteStream("x", io.BytesIO(b"\xef\xbb\xbf1,2\n")).line_blocks())
    assert blocks[0].data == b"1,2\n"


@pytest.mark.parametrize(
    "compress", [gzip.compress, lambda data: pa.compress(data, "zstd", asbytes=True), lambda data: data]
)
def test_open_byte_stream_detects_compression_from_content(tmp_path, compress):
    path = tmp_path / "edges"
    path.write_bytes(compress(TEXT))
    assert open_byte_stream(path).readall() == TEXT


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: data[:12], lambda data: data[:-6] + b"xxxxxx"])
def test_open_byte_stream_of_damaged_archive_raises_error_with_file_name(tmp_path, damage):
    path = tmp_path / "edges.gz"
    path.write_bytes(damage(gzip.compress(TEXT)))
    with pytest.raises(FormatError, match=r"edges\.gz: the compressed data is truncated or damaged"):
        open_byte_stream(path).readall()


def test_line_blocks_with_too_long_line_raise(monkeypatch):
    monkeypatch.setattr(byte_stream, "MAX_LINE_BYTES", 100)
    with pytest.raises(FormatError, match="line 2: expected lines of text"):
        list(ByteStream("x", io.BytesIO(b"1 2\n" + b"x" * 1000)).line_blocks(64))


def test_byte_stream_close_closes_file(tmp_path):
    path = tmp_path / "edges"
    path.write_bytes(TEXT)
    stream = open_byte_stream(path)
    stream.close()
    assert stream.closed
    with pytest.raises(ValueError, match="closed file"):
        stream.fileno()
