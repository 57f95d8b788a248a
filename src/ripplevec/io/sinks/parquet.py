"""Changes as a folder of Parquet files that grows: a folder per day, a new file per flush, none ever rewritten."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ripplevec.changes import Changes
from ripplevec.io.atomic_file import atomic_write
from ripplevec.io.vector_files import change_columns

ROWS = 1 << 17
"""Rows that wait for a flush at most; then they are written without one."""


class ParquetSink:
    """`FOLDER/day=2026-07-30/changes-000000000001-000000000040.parquet`: the changes with these sequence numbers.

    Ids are written as text, with `integer` saying which of them are numbers, so that all files have the same columns.
    The day is that of writing, in UTC. A file appears whole or not at all.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._waiting: list[pa.Table] = []

    def write(self, changes: Changes) -> None:
        """Keep what one batch changed for the next file."""
        names = [*changes.ids, *changes.removed]
        if not names:
            return
        columns: dict[str, Any] = change_columns(changes, changes.vectors.shape[1])
        columns["id"] = pa.array(map(str, names), pa.large_string())
        columns["integer"] = np.fromiter((isinstance(name, int) for name in names), bool, len(names))
        order = ("sequence", "id", "integer", "arrived", "removed", "anchored", "vector")
        self._waiting.append(pa.table({name: columns[name] for name in order}))
        if sum(map(len, self._waiting)) >= ROWS:
            self.flush()

    def flush(self) -> None:
        """Write what has been kept as a new file; return once it is on disk."""
        if not self._waiting:
            return
        table = pa.concat_tables(self._waiting)
        folder = self._folder / f"day={datetime.now(UTC):%Y-%m-%d}"
        folder.mkdir(exist_ok=True)
        first, last = table["sequence"][0].as_py(), table["sequence"][-1].as_py()
        with atomic_write(_free(folder, f"changes-{first:012}-{last:012}")) as part:
            pq.write_table(table, part)
            _to_disk(part)
        _to_disk(folder)
        self._waiting = []

    def close(self) -> None:
        """Write what has been kept."""
        self.flush()


def _free(folder: Path, stem: str) -> Path:
    """A name that is not taken: after a crash the same changes may come again, and both files are kept."""
    path, number = folder / f"{stem}.parquet", 1
    while path.exists():
        number += 1
        path = folder / f"{stem}-{number}.parquet"
    return path


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
