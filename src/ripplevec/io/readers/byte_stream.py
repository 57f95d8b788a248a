"""A named stream of bytes: opened, decompressed where its first bytes say so, and cut into blocks of whole lines."""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ripplevec.errors import FormatError

COMPRESSION_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
READ_BYTES = 1 << 20
MAX_LINE_BYTES = 1 << 24


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Whole lines of a file and the number of the first one, from 1."""

    first: int
    data: bytes


class ByteStream(io.RawIOBase):
    """Bytes that have a name and can be looked at before they are read; a path where they are those of a plain file."""

    def __init__(self, name: str, stream: Any, *, compressed: bool = False, path: Path | None = None) -> None:
        self.name = name
        self.path = path
        self.compressed = compressed
        self._stream = stream
        self._ahead = b""

    def readable(self) -> bool:
        """Always: this is what it is for."""
        return True

    def peek(self, size: int) -> bytes:
        """The next bytes, which stay to be read; fewer only at the end."""
        while len(self._ahead) < size and (more := self._read(size - len(self._ahead))):
            self._ahead += more
        return self._ahead[:size]

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as the stream goes in one read."""
        data = self._ahead[: len(buffer)] or self._read(len(buffer))
        self._ahead = self._ahead[len(data) :]
        buffer[: len(data)] = data
        return len(data)

    def skip(self, size: int) -> int:
        """Pass over so many bytes; how many of them were there."""
        if self.path is not None:
            start = self._stream.tell() - len(self._ahead)
            self._ahead, end = b"", self._stream.seek(0, os.SEEK_END)
            return int(self._stream.seek(min(start + size, end))) - start
        left = size
        while left and (data := self.read(min(left, READ_BYTES))):
            left -= len(data)
        return size - left

    def fileno(self) -> int:
        """The number that the system knows a plain file by."""
        return int(self._stream.fileno())

    def _read(self, size: int) -> bytes:
        try:
            return bytes(self._stream.read(size))
        except OSError as error:
            if self.compressed:
                raise FormatError(f"{self.name}: the compressed data is cut off or damaged ({error})") from error
            raise

    def line_blocks(self, size: int = READ_BYTES) -> Iterator[LineBlock]:
        """The stream as blocks of whole lines, each ending in a newline."""
        if self.peek(3) == codecs.BOM_UTF8:
            self.read(3)
        first, rest = 1, b""
        while data := self.read(size):
            rest += data
            cut = rest.rfind(b"\n") + 1
            if cut:
                yield LineBlock(first, rest[:cut])
                first, rest = first + rest.count(b"\n", 0, cut), rest[cut:]
            elif len(rest) > MAX_LINE_BYTES:
                limit = f"{MAX_LINE_BYTES:,} bytes"
                raise FormatError(f"{self.name}, line {first:,}: expected lines of text, got one of more than {limit}")
        if rest:
            yield LineBlock(first, rest + b"\n")

    def close(self) -> None:
        """Let go of the file."""
        if not self.closed:
            self._stream.close()
        super().close()


def open_byte_stream(path: str | os.PathLike[str]) -> ByteStream:
    """The bytes of a file, or of standard input for "-", decompressed."""
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
    return ByteStream(plain.name, pa.CompressedInputStream(plain, codec), compressed=True) if codec else plain
