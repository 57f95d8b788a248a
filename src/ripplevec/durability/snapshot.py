"""Snapshots: the complete model state at one sequence number, from which recovery starts."""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from ripplevec.engine.digest import StateSnapshot
from ripplevec.errors import FormatError
from ripplevec.util.checked_directory import read_arrays, read_meta, remove_path, write_arrays
from ripplevec.util.parallel import lower_priority

SNAPSHOTS_DIRECTORY = "snapshots"
"""Name of the snapshot folder in a state directory."""

SNAPSHOTS_KEPT = 2
"""Number of snapshots kept: the newest, and one to fall back to."""


_KIND = "snapshot"
_NAME = re.compile("[0-9]{12}|[1-9][0-9]{12,17}")
_log = logging.getLogger("ripplevec.durability")


class Snapshot(NamedTuple):
    """A snapshot as read from disk: the state arrays, and the digest that the state must have."""

    sequence: int
    arrays: dict[str, NDArray[Any]]
    digest: str


class SnapshotStore:
    """The snapshots of one state directory, each in a folder named by its sequence number."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def sequences(self) -> list[int]:
        """Sequence numbers of the snapshots, newest first."""
        if self.directory.is_symlink():
            raise FormatError(
                f"{self.directory}: expected a directory, got a symbolic link. Replace it by the directory itself."
            )
        paths = self.directory.iterdir() if self.directory.is_dir() else ()
        return sorted((int(path.name) for path in paths if self._is_snapshot(path)), reverse=True)

    def _is_snapshot(self, path: Path) -> bool:
        """Return whether a path is a folder named like a snapshot; other files are left alone."""
        return _NAME.fullmatch(path.name) is not None and path.is_dir() and not path.is_symlink()

    def path(self, sequence: int) -> Path:
        """Return the folder of the snapshot with a sequence number."""
        return self.directory / f"{sequence:012d}"

    def write(self, state: StateSnapshot) -> None:
        """Write a state atomically, then remove all but the newest `SNAPSHOTS_KEPT` snapshots."""
        if state.sequence in self.sequences:
            return
        if os.path.lexists(self.path(state.sequence)):  # a file or link: `sequences` lists only folders
            self.quarantine(state.sequence)
        meta = {"sequence": state.sequence, "digest": state.digest()}
        write_arrays(self.path(state.sequence), state.state(), meta, kind=_KIND)
        for sequence in self.sequences[SNAPSHOTS_KEPT:]:
            shutil.rmtree(self.path(sequence))

    def read(self, sequence: int) -> Snapshot:
        """Read a snapshot and check every byte; raise `FormatError` if it is damaged."""
        arrays, meta = read_arrays(self.path(sequence), kind=_KIND)
        if meta.get("sequence") != sequence or not isinstance(meta.get("digest"), str):
            raise FormatError(f"{self.path(sequence)}: expected the snapshot of batch {sequence}, got {meta}")
        return Snapshot(sequence, arrays, meta["digest"])

    def describe(self, sequence: int) -> dict[str, Any]:
        """Return the sequence number, digest and size from a snapshot's manifest."""
        return read_meta(self.path(sequence), kind=_KIND)

    def quarantine(self, sequence: int) -> Path:
        """Rename a damaged snapshot so that it is no longer used but can be examined; return its new path."""
        path = self.path(sequence)
        damaged = path.with_name(f"{path.name}.damaged")
        remove_path(damaged)
        return path.rename(damaged)

    def remove_temporary_files(self) -> None:
        """Remove the files of a snapshot whose writing was interrupted."""
        if self.directory.is_dir():
            for path in self.directory.glob(".*.ripplevec-*"):
                remove_path(path)


class SnapshotWriter:
    """Background writer of snapshots, one at a time; calls `on_written` after each one."""

    def __init__(self, snapshots: SnapshotStore, on_written: Callable[[], None]) -> None:
        self.snapshots, self._on_written = snapshots, on_written
        self.failure: Exception | None = None  # the error of the last snapshot, if it could not be written
        self._pool = ThreadPoolExecutor(1, "ripplevec-snapshot", lower_priority)
        self._current: Future[None] | None = None

    @property
    def busy(self) -> bool:
        """Whether a snapshot is being written."""
        return self._current is not None and not self._current.done()

    def submit(self, state: StateSnapshot) -> Future[None]:
        """Start writing a state that was copied between two batches, while later batches are applied."""
        self._current = self._pool.submit(self._write, state)
        return self._current

    def close(self) -> None:
        """Wait for the snapshot that is being written."""
        self._pool.shutdown()

    def _write(self, state: StateSnapshot) -> None:
        try:
            self.snapshots.write(state)
            self._on_written()
            self.failure = None
        except Exception as error:
            self.failure = error
            _log.error(
                "snapshot failed: directory=%s batch=%d error=%s", self.snapshots.directory, state.sequence, error
            )
            raise
