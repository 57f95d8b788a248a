"""A named byte stream: opened, decompressed if its first bytes say so, and split into blocks of whole lines."""

from __future__ import annotations

import codecs
import io
import lzma
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ripplevec.errors import FormatError

COMPRESSION_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2", b"\xfd7zX": "xz"}

READ_BYTES = 1 << 20
"""Bytes requested in one read."""

MAX_LINE_BYTES = 1 << 24
"""Longest line accepted; a longer one is an error before it fills the memory."""


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Whole lines of a file, and the number of the first one, counted from 1."""

    first: int
    data: bytes


class ByteStream(io.RawIOBase):
    """A byte stream that has a name and supports peeking; `path` is set for an uncompressed file."""

    def __init__(self, name: str, stream: Any, *, compressed: bool = False, path: Path | None = None) -> None:
        self.name = name
        self.path = path
        self.compressed = compressed
        self._stream = stream
        self._peeked = b""

    def readable(self) -> bool:
        """Return True, as `io.RawIOBase` requires of a stream that can be read."""
        return True

    def peek(self, size: int) -> bytes:
        """Return the next `size` bytes without consuming them; fewer only at the end of the stream."""
        while len(self._peeked) < size and (more := self._read(size - len(self._peeked))):
            self._peeked += more
        return self._peeked[:size]

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with the bytes of one read; return how many there were."""
        data = self._peeked[: len(buffer)] or self._read(len(buffer))
        self._peeked = self._peeked[len(data) :]
        buffer[: len(data)] = data
        return len(data)

    def skip(self, size: int) -> int:
        """Skip `size` bytes; return how many of them existed."""
        if self.path is not None:
            start = self._stream.tell() - len(self._peeked)
            self._peeked, end = b"", self._stream.seek(0, os.SEEK_END)
            return int(self._stream.seek(min(start + size, end))) - start
        left = size
        while left and (data := self.read(min(left, READ_BYTES))):
            left -= len(data)
        return size - left

    def fileno(self) -> int:
        """Return the file descriptor of an uncompressed file."""
        return int(self._stream.fileno())

    def _read(self, size: int) -> bytes:
        try:
            return bytes(self._stream.read(size))
        except (OSError, EOFError, lzma.LZMAError) as error:
            if self.compressed:
                raise FormatError(f"{self.name}: the compressed data is truncated or damaged ({error})") from error
            raise

    def line_blocks(self, size: int = READ_BYTES) -> Iterator[LineBlock]:
        """Yield the stream as blocks of whole lines, each ending in a newline; a byte order mark is dropped."""
        if self.peek(3) == codecs.BOM_UTF8:
            self.read(3)
        first, rest = 1, b""
        while data := self.peek(size):  # full blocks: what the first one contains decides how the file is read
            self._peeked = self._peeked[len(data) :]
            rest += data
            end = rest.rfind(b"\n") + 1
            if end:
                yield LineBlock(first, rest[:end])
                first, rest = first + rest.count(b"\n", 0, end), rest[end:]
            elif len(rest) > MAX_LINE_BYTES:
                raise line_too_long_error(self.name, first, MAX_LINE_BYTES)
        if rest:
            yield LineBlock(first, rest + b"\n")

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._stream.close()
        super().close()


def line_too_long_error(name: str, line: int, limit: int) -> FormatError:
    """Build the error for a line that exceeds the limit, as in a file that is not text."""
    return FormatError(
        f"{name}, line {line:,}: expected lines of text of at most {limit:,} bytes, got a longer one. "
        "Check that the file is a text file."
    )


def open_byte_stream(path: str | os.PathLike[str]) -> ByteStream:
    """Open a file, or standard input for "-", and decompress gzip, zstd, bzip2 and xz."""
    if str(path) == "-":
        plain = ByteStream("standard input", sys.stdin.buffer)
    else:
        plain = ByteStream(str(path), io.FileIO(path), path=Path(path))
    try:
        head = plain.peek(4)
    except BaseException:
        plain.close()
        raise
    codec = next((codec for magic, codec in COMPRESSION_MAGIC.items() if head.startswith(magic)), None)
    if codec is None:
        return plain
    return ByteStream(plain.name, _open_decompressor(plain, codec), compressed=True)


def _open_decompressor(stream: ByteStream, codec: str) -> Any:
    """Return a stream of the decompressed bytes; Arrow has no codec for xz."""
    return lzma.open(io.BufferedReader(stream)) if codec == "xz" else pa.CompressedInputStream(stream, codec)
