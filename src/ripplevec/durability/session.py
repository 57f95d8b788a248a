"""The session: a model that survives. Read, put on disk, apply, pass on, acknowledge."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

from ripplevec.changes import Changes
from ripplevec.durability.directory_lock import DirectoryLock
from ripplevec.durability.group_commit import CommitGroup
from ripplevec.durability.journal import JOURNAL, JournalEntry, Journal
from ripplevec.durability.recovery import recover
from ripplevec.durability.session_model import FREE, SessionModel, ModelFactory, check_parameters, build_metadata, create_model
from ripplevec.durability.snapshot import KEPT, SNAPSHOTS, SnapshotStore, SnapshotWriter
from ripplevec.errors import InvalidValueError, RipplevecError, StateError
from ripplevec.io.protocols import ChangeSink, EventSource, PoisonSink, Position, Read

__all__ = ["Entry", "Session"]

SNAPSHOT_EVERY = 250_000
"""Events between two snapshots, or a tenth of the graph's edges where that is more."""

Listener: TypeAlias = Callable[[JournalEntry, Changes], None]
"""Who is told of every batch: what was put on disk, and what it changed."""

GROUP_SIZE = 16
"""Reads of a source that may share a flush."""

IDLE_FLUSH = 1.0
"""Seconds between two flushes of the sinks while no input comes."""

_PATIENCE = 0.1  # seconds that a source is waited for before `until` is asked again


class Session:
    """A model in a directory: whatever has been acknowledged is there again after a crash, in the same bits.

    The parameters of the model are given when the directory is new, and kept in it. One session at a time has a
    directory; within it any thread may write, one after the other, and any number may read `model`. What makes the
    model of these parameters may be given as `model`: a class with the methods of `SessionModel`. It is not kept.

    >>> import tempfile
    >>> directory = tempfile.mkdtemp()
    >>> with Session(directory, dim=4) as session:
    ...     session.apply([("a", "b"), ("b", "c")]).sequence
    1
    >>> with Session(directory) as session:
    ...     session.model.ids
    ['a', 'b', 'c']
    """

    def __init__(
        self,
        directory: str | PathLike[str],
        *,
        snapshot_every: int = SNAPSHOT_EVERY,
        anchor_lag: float | None = None,
        model: ModelFactory = SessionModel,
        **parameters: Any,
    ) -> None:
        if isinstance(snapshot_every, bool) or not isinstance(snapshot_every, int) or snapshot_every < 1:
            raise InvalidValueError.of("snapshot_every", "a whole number of events ≥ 1", snapshot_every)
        self.directory, self.snapshot_every = Path(directory), snapshot_every
        self._writing = threading.RLock()
        self._published: dict[str, int] = {}  # per source whose changes go to sinks: the last batch that got there
        self._listeners: list[Listener] = []
        self._failure: BaseException | None = None
        self._closed = self._let_go = False  # nothing is applied any more; the directory is free
        self._lock = DirectoryLock(self.directory)
        try:
            self._journal = _open_journal(self.directory, parameters, anchor_lag, model.saved_settings)
            snapshots, meta = SnapshotStore(self.directory / SNAPSHOTS), self._journal.meta
            free = {name: value for name, value in parameters.items() if name in FREE}
            self.model, self.recovery = recover(self._journal, snapshots, lambda: create_model(meta, model, **free))
        except BaseException:
            if hasattr(self, "_journal"):
                self._journal.close()
            self._lock.release()
            raise
        self._unpublished = self.recovery.unpublished
        self._writer = SnapshotWriter(snapshots, lambda: self._journal.compact(self._dispensable()))
        self._kept_events = self.recovery.events

    # ------------------------------------------------------------------ what goes in

    def apply(
        self, batch: Any, *, key: str | None = None, source: str | None = None, position: Position = None
    ) -> Changes:
        """Put a batch (edges in any form that `Embedder.fit` takes) on disk, then apply it; what it changed.

        One that cannot be applied is refused before anything of it is kept. One whose key is known has been applied
        before: the answer holds no changes, and the sequence number it got then.
        """
        (done,) = self.apply_many([JournalEntry(batch, key, source, position)])
        if isinstance(done, RipplevecError):
            raise done
        return done

    def apply_many(self, entries: Iterable[Any]) -> list[Changes | RipplevecError]:
        """Apply batches in order, each by itself but all in one flush; of each its changes, or why it was refused.

        What is given are batches, or entries: `JournalEntry(batch, key, source, position)`.
        """
        with self._writing:
            self._check_usable()
            group = CommitGroup(self.model, self._journal)
            for entry in entries:
                group.consider(entry if isinstance(entry, JournalEntry) else JournalEntry(entry))
            answers = self._commit(group)
            self.model.warn_self_loops()  # last: a warning may be made an error
            return answers

    def find_key(self, key: str) -> int | None:
        """The sequence number that the batch with this key got; None where there was none of late."""
        with self._writing:
            self._check_usable()
            return self._journal.find(key)

    def position(self, source: str) -> Position | None:
        """Where a source stands: the position after its last batch; None where no batch came from it."""
        with self._writing:
            self._check_usable()
            return self._journal.position(source)

    def add_listener(self, listener: Listener) -> None:
        """Have `listener(entry, changes)` called for every batch from now on, whoever applies it, in their order.

        It is called by the thread that applies them and before the next: it should be quick. What it raises gets to
        whoever applied the batch, which is applied all the same.
        """
        with self._writing:
            self._listeners.append(listener)

    # ------------------------------------------------------------------ the loop

    def run(
        self,
        source: EventSource,
        sinks: Sequence[ChangeSink] = (),
        dead_letters: PoisonSink | None = None,
        until: Callable[[], bool] | None = None,
    ) -> int:
        """Take in a source until it ends, or `until` says so (asked between reads); how many batches it gave.

        Each read is one batch; those that are there already share a flush. A source may forget what is on disk and
        whose changes are with the sinks. What cannot be understood or applied goes to `dead_letters`; without those it
        ends the loop, and the next one meets it again. While no input comes, the sinks are flushed every second: a
        sink whose receiver is away ends the loop after its own patience, with or without input.
        """
        position = self.position(source.name)
        source.open(position)
        self._publish(source.name, sinks)
        if position is not None:
            source.acknowledge(position)
        taken, over, flushed = 0, False, time.monotonic()
        while not over and not (until is not None and until()):
            reads, over = _ready(source)
            if reads:
                self._take(source, reads, sinks, dead_letters)
                taken += len(reads)
            elif time.monotonic() - flushed < IDLE_FLUSH:
                continue
            else:
                _flush(sinks)
            flushed = time.monotonic()
        return taken

    def _take(
        self, source: EventSource, reads: Sequence[Read], sinks: Sequence[ChangeSink], dead_letters: PoisonSink | None
    ) -> None:
        """One group of reads on its way from the source to the sinks."""
        with self._writing:
            self._check_usable()
            group = CommitGroup(self.model, self._journal)
            failure = group.take(source.name, reads, dead_letters)
            if sinks:
                self._published.setdefault(source.name, self._journal.last)
            else:  # nobody waits for its changes
                self._unpublished.pop(source.name, None)
                self._published[source.name] = self._journal.last + len(reads)
            done = self._commit(group, source.name if sinks else None)
        if done:
            self._publish(source.name, sinks)
            source.acknowledge(reads[len(done) - 1].position)
        if failure is not None:
            raise failure
        self.model.warn_self_loops()

    def _publish(self, source: str, sinks: Sequence[ChangeSink]) -> None:
        """Hand over what the sinks have not got; what they do not take is kept for the next time."""
        waiting = self._unpublished.get(source, [])
        if not sinks or not waiting:
            return
        for sink in sinks:
            for changes in waiting:
                sink.write(changes)
            sink.flush()
        self._published[source] = waiting[-1].sequence  # on disk with the next batch, or when the session closes
        del self._unpublished[source]

    # ------------------------------------------------------------------ keeping it

    def snapshot(self) -> int:
        """Write a snapshot of the state as it is, and return when it is there; its sequence number."""
        with self._writing:
            self._check_usable()
            writing = self._begin_snapshot()
            sequence = self.model.sequence
        try:
            writing.result()
        except OSError as error:
            raise StateError(
                f"{self.directory}: no snapshot of batch {sequence:,} could be written ({error}); the batches are safe "
                "without it: try again"
            ) from error
        return sequence

    def compact(self) -> None:
        """Drop what neither of the last two snapshots needs now, and give its space back."""
        with self._writing:
            self._check_usable()
            self._journal.compact(self._dispensable(), now=True)

    @property
    def snapshot_failure(self) -> Exception | None:
        """Why the last snapshot could not be written; the batches are safe without it. None where it could."""
        return self._writer.failure

    def close(self) -> None:
        """Let go of the directory. Nothing has to be saved; a snapshot that is being written is waited for."""
        with self._writing:
            self._closed = True
            self._writer.close()  # again, where an earlier wait was interrupted
            if self._let_go:
                return
            self._let_go = True
            try:
                if self._published and self._failure is None and not self._journal.doubtful:
                    self._journal.append([], self._published)
            finally:
                self._journal.close()
                self._lock.release()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ------------------------------------------------------------------ inside

    def _commit(self, group: CommitGroup, source: str | None = None) -> list[Changes | RipplevecError]:
        """Put a group on disk, apply it and tell of it; the changes of a source are kept for its sinks.

        Whatever is raised on the way ends the session, unless nothing has got to the disk: memory, disk and those who
        were told may no longer agree.
        """
        before, failures = self._journal.last, list[Exception]()

        def tell(entry: JournalEntry, changes: Changes) -> None:
            if source is not None:
                self._unpublished.setdefault(source, []).append(changes)
            failures.extend(self._tell(entry, changes))

        try:
            answers = group.commit(dict(self._published), tell)
        except BaseException as error:
            refused = isinstance(error, StateError) and self._journal.last == before
            if self._journal.doubtful or not refused:
                self._failure = error
            raise
        if failures:
            raise failures[0]
        events, edges = self.model.engine.events, self.model.engine.edges
        if events - self._kept_events >= max(self.snapshot_every, edges // 10) and not self._writer.busy:
            with suppress(MemoryError):  # the batch is safe; there will be another occasion
                self._begin_snapshot()
        return answers

    def _tell(self, entry: JournalEntry, changes: Changes) -> list[Exception]:
        """Tell every listener of a batch; what listeners raised."""
        failures: list[Exception] = []
        for listener in self._listeners:
            try:
                listener(entry, changes)
            except MemoryError:
                raise
            except Exception as error:
                failures.append(error)
        return failures

    def _begin_snapshot(self) -> Any:
        self._kept_events = self.model.engine.events
        return self._writer.begin(self.model.engine.copy())

    def _dispensable(self) -> int:
        """The last batch that neither of two snapshots needs."""
        sequences = self._writer.snapshots.sequences
        return sequences[KEPT - 1] if len(sequences) >= KEPT else 0

    def _check_usable(self) -> None:
        if self._closed:
            raise StateError(f"{self.directory}: the session is closed; open another")
        if self._failure is not None:
            raise StateError(
                f"{self.directory}: the session failed between disk and memory ({self._failure}); open the directory "
                "again: everything that was acknowledged is in it"
            ) from self._failure


def _ready(source: EventSource) -> tuple[list[Read], bool]:
    """What a source has ready, at most a group, after waiting a little for the first; whether it has ended."""
    reads: list[Read] = []
    try:
        while len(reads) < GROUP_SIZE and (read := source.read(0 if reads else _PATIENCE)) is not None:
            reads.append(read)
    except EOFError:
        return reads, True
    return reads, False


def _flush(sinks: Sequence[ChangeSink]) -> None:
    """Let the sinks deliver what they still hold, and notice receivers that have gone."""
    for sink in sinks:
        sink.flush()


def _open_journal(
    directory: Path, parameters: dict[str, Any], anchor_lag: float | None, beside: Mapping[str, Any]
) -> Journal:
    journal = Journal(directory / JOURNAL, new=lambda: build_metadata(parameters, anchor_lag, beside))
    try:
        check_parameters(journal.meta, parameters, anchor_lag, beside)
    except BaseException:
        journal.close()
        raise
    return journal
