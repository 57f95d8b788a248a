"""Snapshots: the whole state at one sequence number, so that recovery need not begin at the first batch."""

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
from ripplevec.util.checked_directory import read_arrays, read_meta, remove, write_arrays
from ripplevec.util.parallel import lower_priority

SNAPSHOTS = "snapshots"
"""The name of their folder in a session's directory."""

KEPT = 2
"""The newest, and the one to fall back to."""


_KIND = "snapshot"
_NAME = re.compile("[0-9]{12}|[1-9][0-9]{12,17}")
_log = logging.getLogger("ripplevec.durability")


class Snapshot(NamedTuple):
    """A state as it is kept: its arrays, and the digest it had."""

    sequence: int
    arrays: dict[str, NDArray[Any]]
    digest: str


class SnapshotStore:
    """The snapshots of one directory, a folder each, named after their sequence numbers."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def sequences(self) -> list[int]:
        """The numbers of those that are there, the newest first."""
        if self.directory.is_symlink():
            raise FormatError(f"{self.directory}: expected a directory, got a link; put the directory itself there")
        found = self.directory.iterdir() if self.directory.is_dir() else ()
        return sorted((int(path.name) for path in found if self._is_snapshot(path)), reverse=True)

    def _is_snapshot(self, path: Path) -> bool:
        """Whether this is a folder of ours by its name; whatever else lies there is left alone."""
        name = path.name
        return _NAME.fullmatch(name) is not None and path.is_dir() and not path.is_symlink()

    def path(self, sequence: int) -> Path:
        """Where the snapshot of this number lies."""
        return self.directory / f"{sequence:012d}"

    def write(self, copy: StateSnapshot) -> None:
        """Put a state on disk, whole or not at all; the oldest snapshots go."""
        if copy.sequence in self.sequences:
            return
        if os.path.lexists(self.path(copy.sequence)):  # no folder, or it would be among them
            self.set_aside(copy.sequence)
        meta = {"sequence": copy.sequence, "digest": copy.digest()}
        write_arrays(self.path(copy.sequence), copy.state(), meta, kind=_KIND)
        for sequence in self.sequences[KEPT:]:
            shutil.rmtree(self.path(sequence))

    def read(self, sequence: int) -> Snapshot:
        """A snapshot, checked byte by byte, or a FormatError that says what is wrong with it."""
        arrays, meta = read_arrays(self.path(sequence), kind=_KIND)
        if meta.get("sequence") != sequence or not isinstance(meta.get("digest"), str):
            raise FormatError(f"{self.path(sequence)}: expected the snapshot of batch {sequence}, got {meta}")
        return Snapshot(sequence, arrays, meta["digest"])

    def describe(self, sequence: int) -> dict[str, Any]:
        """What a snapshot says of itself: its number, its digest, its size."""
        return read_meta(self.path(sequence), kind=_KIND)

    def set_aside(self, sequence: int) -> Path:
        """Take a damaged snapshot out of the way, for whoever wants to look at it."""
        path = self.path(sequence)
        aside = path.with_name(f"{path.name}.damaged")
        remove(aside)
        return path.rename(aside)

    def tidy(self) -> None:
        """Clear what a snapshot left that was interrupted."""
        if self.directory.is_dir():
            for path in self.directory.glob(".*.ripplevec-*"):
                remove(path)


class SnapshotWriter:
    """Writes snapshots in the background, one at a time; `then` is told when one is there."""

    def __init__(self, snapshots: SnapshotStore, then: Callable[[], None]) -> None:
        self.snapshots, self._then = snapshots, then
        self.failure: Exception | None = None  # why the last one could not be written
        self._pool = ThreadPoolExecutor(1, "ripplevec-snapshot", lower_priority)
        self._current: Future[None] | None = None

    @property
    def busy(self) -> bool:
        """Whether one is being written."""
        return self._current is not None and not self._current.done()

    def begin(self, copy: StateSnapshot) -> Future[None]:
        """Write a state that was copied between two batches; the batches go on."""
        self._current = self._pool.submit(self._write, copy)
        return self._current

    def close(self) -> None:
        """Wait for the one that is being written."""
        self._pool.shutdown()

    def _write(self, copy: StateSnapshot) -> None:
        try:
            self.snapshots.write(copy)
            self._then()
            self.failure = None
        except Exception as error:
            self.failure = error
            _log.error("%s: no snapshot of batch %d: %s", self.snapshots.directory, copy.sequence, error)
            raise
