"""The door for edges: picks the format of a file and gives its edges in batches of one size."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from ripplevec.batch import Batch
from ripplevec.errors import FormatError, check_choice
from ripplevec.io.readers import csv, jsonl, parquet
from ripplevec.io.readers.byte_stream import ByteStream, open_byte_stream
from ripplevec.io.readers.edge_rows import BadRowHandler, FormatReader, ReadOptions, check_positive_int
from ripplevec.io.rebatch import rebatch

FORMATS: dict[str, FormatReader] = {"csv": csv.read, "jsonl": jsonl.read, "parquet": parquet.read}
SUFFIXES = {
    "csv": (".csv", ".tsv", ".txt", ".edges", ".edgelist"),
    "jsonl": (".jsonl", ".ndjson"),
    "parquet": (".parquet", ".pq"),
}
DEFAULT_BATCH_SIZE = 1 << 16


class EdgeReader(Iterator[Batch]):
    """The edges of one file in batches, read as they are asked for; counts the rows it had to skip."""

    def __init__(self, source: ByteStream, format: str, batch_size: int, options: ReadOptions) -> None:
        self._source = source
        self._bad = BadRowHandler(source.name, options.on_error)
        self._batches = rebatch(FORMATS[format](source, options, self._bad), batch_size)
        self._edges = 0

    def __next__(self) -> Batch:
        try:
            batch = next(self._batches)
        except StopIteration:
            self._source.close()
            if not self._edges:
                skipped = f"; all {self.skipped:,} rows were skipped" if self.skipped else ""
                raise FormatError(f"{self._source.name}: expected at least one edge, got none{skipped}") from None
            raise
        except BaseException:
            self._source.close()
            raise
        self._edges += len(batch)
        return batch

    def close(self) -> None:
        """Let go of the file before its end."""
        self._source.close()

    @property
    def skipped(self) -> int:
        """How many rows could not be read and were left out, so far."""
        return self._bad.count

    @property
    def skipped_rows(self) -> list[int]:
        """Where the first few of them stand, from 1."""
        return list(self._bad.first)


def open_edges(
    path: str | os.PathLike[str], *, format: str | None = None, batch_size: int = DEFAULT_BATCH_SIZE, **options: Any
) -> EdgeReader:
    """The edges of a file ("-": standard input), in batches of `batch_size` edges.

    The format is "csv" (any separated text), "jsonl" or "parquet"; without one, content and suffix decide. Gzip, zstd
    and bzip2 are undone on the way. `options` are those of `ReadOptions`: src, dst, weight, time, ids, on_error.
    """
    checked = ReadOptions(**options)
    if format is not None:
        check_choice("format", format, tuple(FORMATS))
    size = check_positive_int("batch_size", batch_size)
    source = open_byte_stream(path)
    try:
        return EdgeReader(source, format or detect_format(source, path), size, checked)
    except BaseException:
        source.close()
        raise


def detect_format(source: ByteStream, path: str | os.PathLike[str]) -> str:
    """What a file is written in, as its first bytes and its name tell."""
    head = source.peek(64)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"%%MatrixMarket"):
        raise FormatError(
            f"{source.name}: expected edges, got a Matrix Market file; fit what scipy.io.mmread reads from it"
        )
    suffixes = {suffix.lower() for suffix in PurePath(path).suffixes}
    named = [format for format, known in SUFFIXES.items() if suffixes.intersection(known)]
    return named[0] if named else "jsonl" if head.lstrip().startswith((b"{", b"[")) else "csv"
