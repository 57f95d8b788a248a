"""Edge files of any format: `open_edges` detects the format and yields batches of one size."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Protocol

from ripplevec.batch import Batch
from ripplevec.errors import FormatError, check_choice
from ripplevec.io.readers import csv, jsonl, parquet
from ripplevec.io.readers.byte_stream import ByteStream, open_byte_stream
from ripplevec.io.readers.edge_rows import BadRowHandler, FileColumns, ReadOptions, check_positive_int
from ripplevec.io.rebatch import rebatch


class FormatReader(Protocol):
    """A function that reads the edges of one file format."""

    def __call__(
        self, stream: ByteStream, options: ReadOptions, bad_rows: BadRowHandler, columns: FileColumns | None = None
    ) -> Iterator[Batch]:
        """Yield the edges of the stream in file order, block by block; add the names of the file to `columns`."""
        ...


FORMATS: dict[str, FormatReader] = {
    "csv": csv.read_batches,
    "jsonl": jsonl.read_batches,
    "parquet": parquet.read_batches,
}
SUFFIXES = {
    "csv": (".csv", ".tsv", ".txt", ".edges", ".edgelist"),
    "jsonl": (".jsonl", ".ndjson"),
    "parquet": (".parquet", ".pq"),
}
DEFAULT_BATCH_SIZE = 1 << 16


class EdgeReader(Iterator[Batch]):
    """Iterator over the edges of one file in batches, read on demand; counts the rows it skipped."""

    def __init__(self, stream: ByteStream, format: str, batch_size: int, options: ReadOptions) -> None:
        self._stream = stream
        self._bad_rows = BadRowHandler(stream.name, options.on_error, syntax=options.syntax)
        self.columns = FileColumns()  # those of the part that has been read
        self._batches = rebatch(FORMATS[format](stream, options, self._bad_rows, self.columns), batch_size)
        self._edge_count = 0

    def __next__(self) -> Batch:
        """Return the next batch; close the file at its end or after an error. A file without edges is an error."""
        try:
            batch = next(self._batches)
        except StopIteration:
            self._stream.close()
            if not self._edge_count:
                raise FormatError(
                    f"{self._stream.name}: expected at least one edge, got {self._describe_no_edges()}"
                ) from None
            raise
        except BaseException:
            self._stream.close()
            raise
        self._edge_count += len(batch)
        return batch

    def close(self) -> None:
        """Close the file before its end."""
        self._stream.close()

    def _describe_no_edges(self) -> str:
        if not self.skipped:
            return "none"
        rows = f"all {self.skipped:,} rows were" if self.skipped > 1 else "the only row was"
        return f"none; {rows} skipped, {'the first ' * (self.skipped > 1)}because of {self.first_problem}"

    @property
    def skipped(self) -> int:
        """Number of bad rows skipped so far."""
        return self._bad_rows.count

    @property
    def skipped_rows(self) -> list[int]:
        """Numbers of the first five skipped rows, counted from 1."""
        return list(self._bad_rows.first)

    @property
    def first_problem(self) -> str | None:
        """What is wrong with the first skipped row; None if there is none."""
        return self._bad_rows.first_problem


def open_edges(
    path: str | os.PathLike[str], *, format: str | None = None, batch_size: int = DEFAULT_BATCH_SIZE, **options: Any
) -> EdgeReader:
    """Open an edge file and read it in batches.

    Gzip, zstd, bzip2 and xz files are decompressed.

    Parameters
    ----------
    path : str or path
        The file, or "-" for standard input.
    format : {"csv", "jsonl", "parquet"}, optional
        "csv" is any separated text. By default, content and suffix decide.
    batch_size : int
        Edges per batch; only the last batch may be smaller.
    **options
        Fields of `ReadOptions`: src, dst, weight, time, op, header, ids, on_error.

    Returns
    -------
    EdgeReader
        An iterator over batches.

    Raises
    ------
    FormatError
        If the file has no edges, lacks a column, is damaged, or has a bad row and `on_error` is "stop".

    Warns
    -----
    HeaderWarning
        If the first line of a text file is read as a header although its names are not recognized, or as an edge
        although it may be a header.
    """
    read_options = ReadOptions(**options)
    if format is not None:
        check_choice("format", format, tuple(FORMATS))
    size = check_positive_int("batch_size", batch_size)
    stream = open_byte_stream(path)
    try:
        return EdgeReader(stream, format or detect_format(stream, path), size, read_options)
    except BaseException:
        stream.close()
        raise


def detect_format(stream: ByteStream, path: str | os.PathLike[str]) -> str:
    """Return the format of a file, judged by its first bytes and its suffix."""
    head = stream.peek(64)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"%%MatrixMarket"):
        raise FormatError(
            f"{stream.name}: expected edges, got a Matrix Market file. "
            "Read it with scipy.io.mmread and fit the resulting matrix."
        )
    suffixes = {suffix.lower() for suffix in PurePath(path).suffixes}
    named = [format for format, known in SUFFIXES.items() if suffixes.intersection(known)]
    return named[0] if named else "jsonl" if head.lstrip().startswith((b"{", b"[")) else "csv"
