"""Parquet sink: changes in a growing folder, one subfolder per day, one new file per flush; no file is rewritten."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ripplevec.changes import Changes
from ripplevec.io.vector_files import changes_to_columns
from ripplevec.util.checked_directory import atomic_write

MAX_QUEUED_ROWS = 1 << 17
"""Largest number of rows queued; once it is reached, the sink flushes by itself."""


class ParquetSink:
    """`FOLDER/day=2026-07-30/changes-000000000001-000000000040.parquet`: the changes with these sequence numbers.

    Ids are written as text, and the column `integer` tells which of them are integers, so that all files have the same
    schema. The day is that of writing, in UTC. A file appears complete or not at all.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._queued: list[pa.Table] = []

    def write(self, changes: Changes) -> None:
        """Queue the changes of one batch for the next file."""
        ids = [*changes.ids, *changes.removed]
        if not ids:
            return
        columns: dict[str, Any] = changes_to_columns(changes, changes.vectors.shape[1])
        columns["id"] = pa.array(map(str, ids), pa.large_string())
        columns["integer"] = np.fromiter((isinstance(name, int) for name in ids), bool, len(ids))
        order = ("sequence", "id", "integer", "arrived", "removed", "anchored", "vector")
        self._queued.append(pa.table({name: columns[name] for name in order}))
        if sum(map(len, self._queued)) >= MAX_QUEUED_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write the queued changes to a new file; return once it is on disk."""
        if not self._queued:
            return
        table = pa.concat_tables(self._queued)
        folder = self._folder / f"day={datetime.now(UTC):%Y-%m-%d}"
        folder.mkdir(exist_ok=True)
        first, last = table["sequence"][0].as_py(), table["sequence"][-1].as_py()
        with atomic_write(_unused_path(folder, f"changes-{first:012}-{last:012}")) as part:
            pq.write_table(table, part)
            _sync_to_disk(part)
        _sync_to_disk(folder)
        self._queued = []

    def close(self) -> None:
        """Write the queued changes."""
        self.flush()


def _unused_path(folder: Path, stem: str) -> Path:
    """Return a path that does not exist: after a crash the same changes may come again, and both files are kept."""
    path, number = folder / f"{stem}.parquet", 1
    while path.exists():
        number += 1
        path = folder / f"{stem}-{number}.parquet"
    return path


def _sync_to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
