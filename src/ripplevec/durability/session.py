"""Crash-safe sessions: a model in a directory that keeps every acknowledged batch.

Each batch is validated, written to the journal, applied to the model, published to sinks, and acknowledged, in this
order.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from ripplevec.attributes.input import attach_attributes, detach_attributes, merge_attributes
from ripplevec.batch import AttributeRows, Batch, EdgeListLike, Op, ids_to_list, take_ids
from ripplevec.changes import Changes
from ripplevec.durability.change_publisher import ChangePublisher, Listener
from ripplevec.durability.directory_lock import DirectoryLock
from ripplevec.durability.journal import JournalEntry
from ripplevec.durability.recovery import RecoveryReport, open_journal, rebuild, recover
from ripplevec.durability.session_model import RUNTIME_PARAMETERS, ModelFactory, SessionModel, create_model
from ripplevec.durability.session_verbs import SessionVerbs
from ripplevec.durability.snapshot import SNAPSHOTS_DIRECTORY, SNAPSHOTS_KEPT, SnapshotStore, SnapshotWriter
from ripplevec.errors import InvalidValueError, LostStateError, RipplevecError, StateError
from ripplevec.graph.batch_validation import BatchAdmission
from ripplevec.io.protocols import BadMessage, ChangeSink, DeadLetterSink, EventSource, Position, ReadResult
from ripplevec.util.checked_directory import check_not_saved_model

__all__ = ["JournalEntry", "Session"]

SNAPSHOT_EVERY = 250_000
"""Default number of events between two snapshots; a tenth of the graph's edges if that is more."""

GROUP_SIZE = 16
"""Largest number of reads from a source that share a flush."""

IDLE_FLUSH_SECONDS = 1.0
"""Time between two flushes of the sinks while a source has no input."""

MAX_RECOVERIES = 5
"""Number of times in a row that shards may be lost in one operation before it fails."""

_log = logging.getLogger("ripplevec.durability")
Result = TypeVar("Result")
_READ_TIMEOUT_SECONDS = 0.1  # wait for a source before `until` is called again


@dataclass(slots=True)
class CommitGroup:
    """Batches that share the next flush: they are admitted one by one, written together, then applied one by one."""

    first: int  # sequence number of the first batch
    entries: list[JournalEntry] = field(default_factory=list)  # admitted batches
    outcomes: list[int | RipplevecError] = field(default_factory=list)  # per batch: its number, or why it was rejected
    sequence_by_key: dict[str, int] = field(default_factory=dict)
    admission: BatchAdmission | None = None  # None while all batches only add edges without time: always possible

    def append(self, entry: JournalEntry) -> None:
        """Add an admitted batch under the next sequence number."""
        sequence = self.first + len(self.entries)
        self.entries.append(entry)
        self.outcomes.append(sequence)
        if entry.key is not None:
            self.sequence_by_key[entry.key] = sequence


class Session(SessionVerbs):
    """Model in a directory that survives crashes with every acknowledged batch, bit for bit.

    It has the methods of `Embedder` for changes and reads, which return and raise the same. Reads of the whole model,
    such as `to_numpy`, `plot` and `diagnostics`, are methods of `model`. `fit`, `anchor` and `set_params` do not exist,
    because the journal contains batches only. One session at a time may use a directory. Within it, any thread may
    write, one after the other, and any number of threads may read `model`. All methods that write raise `StateError`
    after `close`, or after an error that may have left different states in memory and on disk.

    Parameters
    ----------
    directory
        State directory; created if it does not exist.
    snapshot_every
        Number of events between two snapshots. A tenth of the graph's edges is used if that is more.
    model
        Callable that creates the model from its parameters, by default the class `SessionModel`. It is not saved.
    **parameters
        Parameters of `Embedder`. They are saved in a new directory. For an existing one, they may be omitted;
        `threads`, `search` and `storage_dir` may change at each opening, all others must equal the saved ones.

    Attributes
    ----------
    directory : pathlib.Path
        The state directory.
    model : SessionModel
        The model, for reading only: its write methods raise `StateError`.
    recovery : RecoveryReport
        Result of opening the directory: snapshot used, batches replayed or lost, notes for the user.
    recoveries : int
        Number of times that lost shards have been recovered since then.

    Raises
    ------
    InvalidValueError
        If a parameter is invalid or differs from the one saved in the directory.
    StateError
        If the directory is in use, cannot be written to, or the disk is full.
    FormatError
        If the directory contains a saved model, or is damaged in a way that would lose acknowledged batches. The
        message says what to do.

    Examples
    --------
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
        model: ModelFactory = SessionModel,
        **parameters: Any,
    ) -> None:
        if isinstance(snapshot_every, bool) or not isinstance(snapshot_every, int) or snapshot_every < 1:
            raise InvalidValueError.of("snapshot_every", "a whole number of events ≥ 1", snapshot_every)
        self.directory, self.snapshot_every = Path(directory), snapshot_every
        self._write_lock = threading.RLock()
        self._failure: BaseException | None = None
        self._closed = self._released = False  # closed: no more batches; released: the directory is unlocked
        check_not_saved_model(self.directory)
        self._lock = DirectoryLock(self.directory)
        try:
            self._journal = open_journal(self.directory, parameters, model.saved_settings)
            snapshots, metadata = SnapshotStore(self.directory / SNAPSHOTS_DIRECTORY), self._journal.metadata
            runtime = {name: value for name, value in parameters.items() if name in RUNTIME_PARAMETERS}
            self.model, self.recovery = recover(
                self._journal, snapshots, lambda: create_model(metadata, model, **runtime)
            )
        except BaseException:
            if hasattr(self, "_journal"):
                self._journal.close()
            self._lock.release()
            raise
        self._publisher = ChangePublisher(self.recovery.unpublished)
        self._writer = SnapshotWriter(snapshots, lambda: self._journal.compact(self._last_compactable_batch()))
        self._events_at_last_snapshot = self.recovery.events
        self.recoveries = 0
        self.model.on_loss = self._start_recovery

    def __repr__(self) -> str:
        return f"Session({str(self.directory)!r}): {'closed' if self._closed else repr(self.model)}"

    # ------------------------------------------------------------------ single batches

    def apply(
        self, batch: EdgeListLike, *, key: str | None = None, source: str | None = None, position: Position = None
    ) -> Changes:
        """Write a batch to disk, then apply it.

        Parameters
        ----------
        batch
            Edges in any form that `Embedder.fit` accepts, or a `Batch`.
        key
            Idempotency key of 1 to 256 characters. A batch whose key was used before is not applied again; keys are
            remembered for at least 100,000 batches.
        source
            Name of the stream that the batch comes from.
        position
            Position in the source after this batch, any value that JSON can represent. Requires `source`.

        Returns
        -------
        Changes
            The changes of the batch. For a repeated key they are empty, with the sequence number of the first time.

        Raises
        ------
        RipplevecError
            If the batch is invalid or cannot be written. Nothing of it is saved, unless the message says otherwise.

        Examples
        --------
        >>> import tempfile
        >>> with Session(tempfile.mkdtemp(), dim=4) as session:
        ...     changes = session.apply([("a", "b")], key="order-17")
        ...     again = session.apply([("a", "b")], key="order-17")
        >>> changes.sequence, changes.ids, again.sequence, again.ids
        (1, ['a', 'b'], 1, [])
        """
        entry = JournalEntry(batch, key, source, position)  # type: ignore[arg-type]  # converted when it is added
        (result,) = self.apply_many([entry])
        if isinstance(result, RipplevecError):
            raise result
        return result

    def apply_many(self, entries: Iterable[JournalEntry | EdgeListLike]) -> list[Changes | RipplevecError]:
        """Apply batches in order, each on its own, with a single flush to disk for all of them.

        Parameters
        ----------
        entries
            Batches, or `JournalEntry(batch, key, source, position)` objects.

        Returns
        -------
        list of Changes or RipplevecError
            For each batch its changes, or the error for which it was rejected. A rejected batch does not affect the
            others.

        Raises
        ------
        StateError
            If the group cannot be written. Nothing of it is saved, unless the message says otherwise.

        Examples
        --------
        >>> import tempfile
        >>> with Session(tempfile.mkdtemp(), dim=4) as session:
        ...     results = session.apply_many([[("a", "b")], [("a", "b", -1.0)], [("b", "c")]])
        >>> [type(result).__name__ for result in results]
        ['Changes', 'InvalidValueError', 'Changes']
        """
        with self._write_lock:
            self._check_usable()
            group = CommitGroup(self._journal.last + 1)
            for entry in entries:
                try:
                    complete = entry if isinstance(entry, JournalEntry) else JournalEntry(entry)  # type: ignore[arg-type]
                    self._retry_lost(partial(self._admit, group, complete), self._journal.last)
                except RipplevecError as rejection:
                    group.outcomes.append(rejection)
            results = self._commit(group)
            self.model.warn_self_loops()  # last, because a warning filter may raise
            return results

    def find_key(self, key: str) -> int | None:
        """Return the sequence number of the batch with an idempotency key.

        Parameters
        ----------
        key
            Idempotency key.

        Returns
        -------
        int or None
            The sequence number; None if no recent batch has the key.

        Examples
        --------
        >>> import tempfile
        >>> with Session(tempfile.mkdtemp(), dim=4) as session:
        ...     _ = session.apply([("a", "b")], key="order-17")
        ...     session.find_key("order-17"), session.find_key("order-18")
        (1, None)
        """
        with self._write_lock:
            self._check_usable()
            return self._journal.find_key(key)

    def position(self, source: str) -> Position | None:
        """Return the position of a source after its last batch.

        Parameters
        ----------
        source
            Name of the source.

        Returns
        -------
        Position or None
            The position; None if no batch came from the source.

        Examples
        --------
        >>> import tempfile
        >>> with Session(tempfile.mkdtemp(), dim=4) as session:
        ...     _ = session.apply([("a", "b")], source="orders", position={"offset": 3})
        ...     session.position("orders")
        {'offset': 3}
        """
        with self._write_lock:
            self._check_usable()
            return self._journal.position(source)

    def add_listener(self, listener: Listener) -> None:
        """Call a function for every batch from now on, in order, regardless of which thread applies it.

        Parameters
        ----------
        listener
            Function that receives the `JournalEntry` and the `Changes` of a batch. It runs in the thread that applied
            the batch, before the next one, and should therefore be fast. If it raises, the error reaches the caller
            of `apply`; the batch is applied nevertheless.

        Examples
        --------
        >>> import tempfile
        >>> with Session(tempfile.mkdtemp(), dim=4) as session:
        ...     session.add_listener(lambda entry, changes: print(changes.sequence, changes.ids))
        ...     _ = session.apply([("a", "b")])
        1 ['a', 'b']
        """
        with self._write_lock:
            self._publisher.add_listener(listener)

    # ------------------------------------------------------------------ streams

    def run(
        self,
        source: EventSource,
        sinks: Sequence[ChangeSink] = (),
        dead_letters: DeadLetterSink | None = None,
        until: Callable[[], bool] | None = None,
    ) -> int:
        """Apply the batches of a source until it ends.

        Each read is one batch; reads that are available immediately share a flush. A read is acknowledged to the source
        once its batch is on disk and the sinks have received its changes. While there is no input, the sinks are
        flushed every second, so that a sink whose receiver is away ends the loop after its own timeout.

        Parameters
        ----------
        source
            Source of events; it continues after the last position on disk.
        sinks
            Receivers of the changes. After a crash, the changes of the last batches may be written again, with the
            same sequence numbers.
        dead_letters
            Receiver of messages that cannot be parsed or applied. By default, such a message ends the loop, and the
            next `run` reads it again.
        until
            Function called between reads; the loop ends when it returns True.

        Returns
        -------
        int
            The number of batches read.

        Raises
        ------
        StateError
            If a bad message is read without `dead_letters`, or a batch cannot be written.
        """
        position = self.position(source.name)
        source.open(position)
        self._publish(source.name, sinks)
        if position is not None:
            source.acknowledge(position)
        batches, ended, last_flush = 0, False, time.monotonic()
        while not ended and not (until is not None and until()):
            reads, ended = _read_group(source)
            if reads:
                self._apply_reads(source, reads, sinks, dead_letters)
                batches += len(reads)
            elif time.monotonic() - last_flush < IDLE_FLUSH_SECONDS:
                continue
            else:
                for sink in sinks:  # deliver queued changes, and detect receivers that are gone
                    sink.flush()
            last_flush = time.monotonic()
        return batches

    def _apply_reads(
        self,
        source: EventSource,
        reads: Sequence[ReadResult],
        sinks: Sequence[ChangeSink],
        dead_letters: DeadLetterSink | None,
    ) -> None:
        """Commit one group of reads, publish the changes, and acknowledge the reads."""
        with self._write_lock:
            self._check_usable()
            admit = partial(self._admit_reads, source.name, reads, dead_letters)
            group, failure = self._retry_lost(admit, self._journal.last)
            if sinks:
                self._publisher.start_source(source.name, self._journal.last)
            else:
                self._publisher.skip_source(source.name, self._journal.last + len(reads))
            results = self._commit(group, source.name if sinks else None)
        if results:
            self._publish(source.name, sinks)
            source.acknowledge(reads[len(results) - 1].position)
        if failure is not None:
            raise failure
        self.model.warn_self_loops()

    # ------------------------------------------------------------------ snapshots

    def snapshot(self) -> int:
        """Write a snapshot of the current state and wait until it is on disk.

        Returns
        -------
        int
            The sequence number of the snapshot.

        Raises
        ------
        StateError
            If the snapshot cannot be written; the batches are safe without it.

        Examples
        --------
        >>> import tempfile
        >>> with Session(tempfile.mkdtemp(), dim=4) as session:
        ...     _ = session.apply([("a", "b")])
        ...     session.snapshot()
        1
        """
        with self._write_lock:
            self._check_usable()
            writing = self._retry_lost(self._start_snapshot, self._journal.last)
            sequence = self.model.sequence
        try:
            writing.result()
        except OSError as error:
            raise StateError(
                f"{self.directory}: could not write a snapshot of batch {sequence:,} ({error}). The batches are safe "
                "without it; try again."
            ) from error
        return sequence

    def compact(self) -> None:
        """Delete the batches that the last two snapshots do not need, now instead of gradually; free the disk space.

        Raises
        ------
        StateError
            If the journal cannot be rewritten.
        """
        with self._write_lock:
            self._check_usable()
            self._journal.compact(self._last_compactable_batch(), now=True)

    @property
    def snapshot_failure(self) -> Exception | None:
        """Error of the last snapshot, or None if it was written; the batches are safe without it."""
        return self._writer.failure

    def close(self) -> None:
        """Close the session and unlock the directory.

        Nothing has to be saved: all batches are on disk. If a snapshot is being written, the call waits for it.
        Later calls have no effect.
        """
        with self._write_lock:
            self._closed = True
            self._writer.close()  # repeated if an earlier wait was interrupted
            if self._released:
                return
            self._released = True
            try:
                published = self._publisher.published
                if published and self._failure is None and not self._journal.commit_uncertain:
                    self._journal.append([], published)
            finally:
                self._journal.close()
                self._lock.release()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ------------------------------------------------------------------ internals

    def _admit(self, group: CommitGroup, entry: JournalEntry) -> None:
        """Add a batch to a group, unless its key was used before; raise if it cannot be applied after the others."""
        if entry.key is not None:
            sequence = group.sequence_by_key.get(entry.key) or self._journal.find_key(entry.key)
            if sequence is not None:
                group.outcomes.append(sequence)
                return
        if not isinstance(entry.batch, Batch):
            entry = replace(entry, batch=self._to_batch(entry.batch))
        try:
            self._check_attributes(group, entry.batch.attributes)
            if (admission := self._admission(group, entry.batch)) is not None:
                admission.admit(entry.batch)
        except LostStateError:
            group.admission = None  # it reads the lost state
            raise
        group.append(entry)

    def _admit_reads(
        self, source: str, reads: Sequence[ReadResult], dead_letters: DeadLetterSink | None
    ) -> tuple[CommitGroup, RipplevecError | None]:
        """Return a group with the valid rows of each read, and record the others as dead letters.

        Without dead letters, stop before the first read that has an invalid row or message, and return the error too.
        """
        group = CommitGroup(self._journal.last + 1)
        for read in reads:
            batch, rejected = self._to_batch(read.batch), dict[int, RipplevecError]()
            batch, own_attributes = detach_attributes(batch)
            if (admission := self._admission(group, batch)) is not None:
                batch, rejected = admission.admit_valid_rows(batch)
            attributes = [*read.attributes, *([] if own_attributes is None else [own_attributes])]
            batch, rejected_attributes = self._attach_valid_attributes(group, batch, attributes)
            rejected_rows = (_make_bad_message(read, row, error) for row, error in rejected.items())
            bad_attributes = (_describe_bad_attributes(read, rows, error) for rows, error in rejected_attributes)
            for message in [*read.bad_messages, *rejected_rows, *bad_attributes]:
                if dead_letters is None:
                    return group, StateError(
                        f"{source}: bad message at {message.where}: {message.reason}. Pass `dead_letters` to skip such "
                        "messages."
                    )
                dead_letters.record(source, message)
            group.append(JournalEntry(batch, None, source, read.position))
        return group, None

    def _check_attributes(self, group: CommitGroup, attributes: AttributeRows | None) -> None:
        """Raise if attributes do not fit those of the model, or those that the group will set before."""
        if attributes is None:
            return
        self.model.engine.check_attributes(attributes)
        for entry in group.entries:
            if (earlier := entry.batch.attributes) is not None:
                attributes.check_like(earlier.kind, earlier.width, earlier.labels)

    def _attach_valid_attributes(
        self, group: CommitGroup, batch: Batch, attributes: Sequence[AttributeRows]
    ) -> tuple[Batch, list[tuple[AttributeRows, RipplevecError]]]:
        """Return a batch with the attributes that fit the model, and the others with their errors."""
        accepted, rejected = list[AttributeRows](), list[tuple[AttributeRows, RipplevecError]]()
        for rows in attributes:
            try:
                self._check_attributes(group, rows)
                if accepted:
                    rows.check_like(accepted[0].kind, accepted[0].width, accepted[0].labels)
                accepted.append(rows)
            except InvalidValueError as error:
                rejected.append((rows, error))
        return attach_attributes(batch, merge_attributes(accepted)) if accepted else batch, rejected

    def _to_batch(self, edges: EdgeListLike) -> Batch:
        return Batch.from_any(edges, directed=self.model.directed)

    def _admission(self, group: CommitGroup, batch: Batch) -> BatchAdmission | None:
        """Return the check of a batch against the state after the group; None while nothing can prevent a batch."""
        has_checked_times = batch.time is not None and self.model.engine.aging is not None
        if group.admission is None and (batch.op is not None or has_checked_times):
            group.admission = self.model.engine.open_admission([entry.batch for entry in group.entries])
        return group.admission

    def _commit(self, group: CommitGroup, source: str | None = None) -> list[Changes | RipplevecError]:
        """Write a group to disk, apply it and notify listeners; with `source`, also queue its changes for the sinks.

        Any error fails the session, unless nothing reached the disk: memory, disk and listeners may disagree.
        """
        applied, listener_errors = dict[int, Changes](), list[Exception]()
        try:
            if group.entries:
                self._journal.append(group.entries, self._publisher.published)
            for sequence, entry in enumerate(group.entries, group.first):
                changes = applied[sequence] = self._retry_lost(
                    partial(self.model.apply_batch, entry.batch), sequence - 1
                )
                if source is not None:
                    self._publisher.queue(source, changes)
                listener_errors += self._publisher.notify_listeners(entry, changes)
            results = [self._result(outcome, applied) for outcome in group.outcomes]
        except BaseException as error:
            nothing_written = isinstance(error, StateError) and self._journal.last < group.first
            if self._journal.commit_uncertain or not nothing_written:
                self._failure = error
            raise
        if listener_errors:
            raise listener_errors[0]
        events, edges = self.model.engine.events, self.model.engine.edges
        due = events - self._events_at_last_snapshot >= max(self.snapshot_every, edges // 10)
        if due and not self._writer.busy:
            with suppress(MemoryError, LostStateError):  # the batch is safe, and a later one starts the snapshot
                self._start_snapshot()
        return results

    def _result(self, outcome: int | RipplevecError, applied: dict[int, Changes]) -> Changes | RipplevecError:
        if isinstance(outcome, RipplevecError):
            return outcome
        changes = applied.pop(outcome, None)  # a repeated key gets its changes once
        return self.model.empty_changes(outcome) if changes is None else changes

    def _start_snapshot(self) -> Future[None]:
        self._events_at_last_snapshot = self.model.engine.events
        return self._writer.submit(self.model.engine.snapshot())

    # ------------------------------------------------------------------ lost shards

    def _retry_lost(self, action: Callable[[], Result], last: int) -> Result:
        """Run an action on the model after batch `last`; if shards are lost, recover this state and run it again."""
        for _ in range(MAX_RECOVERIES):
            try:
                return action()
            except LostStateError as error:
                self._recover_model(last, error)
        return action()

    def _recover_model(self, last: int, lost: LostStateError) -> None:
        """Recover the state after batch `last` from the last snapshot and the journal."""
        _log.warning("shard lost, recovering the model: directory=%s batch=%d error=%s", self.directory, last, lost)
        snapshots, report = self._writer.snapshots, RecoveryReport()

        def replay() -> SessionModel:
            nonlocal report
            model, report = rebuild(self._journal, snapshots, self.model.create_replacement, last)
            return model

        for attempt in range(1, MAX_RECOVERIES + 1):
            try:
                self.model.replace_lost(replay)
                break
            except BaseException as error:
                if attempt == MAX_RECOVERIES or not isinstance(error, LostStateError):
                    self._failure = error
                    raise
        self._publisher.replace_pending(report.unpublished)
        self.recoveries += 1

    def _start_recovery(self) -> None:
        """Recover lost shards in the background: a read has noticed the loss."""
        threading.Thread(target=self._ensure_recovered, name="ripplevec-recovery", daemon=True).start()

    def _ensure_recovered(self) -> None:
        with self._write_lock, suppress(StateError):  # closed, or failed
            self._check_usable()
            self._ensure_complete()

    def _ensure_complete(self) -> None:
        """Recover lost shards, unless this has happened already."""
        self._retry_lost(self.model.check_complete, self._journal.last)

    def _publish(self, source: str, sinks: Sequence[ChangeSink]) -> None:
        """Write pending changes to sinks; their vectors may be lost with a shard, until they are recovered."""
        try:
            self._publisher.publish(source, sinks)
        except LostStateError:
            with self._write_lock:
                self._check_usable()
                self._ensure_complete()
            self._publisher.publish(source, sinks)

    def _last_compactable_batch(self) -> int:
        """Return the last batch that none of the kept snapshots needs for recovery."""
        sequences = self._writer.snapshots.sequences
        return sequences[SNAPSHOTS_KEPT - 1] if len(sequences) >= SNAPSHOTS_KEPT else 0

    def _check_usable(self) -> None:
        if self._closed:
            raise StateError(f"{self.directory}: the session is closed. Open another one.")
        if self._failure is not None:
            raise StateError(
                f"{self.directory}: the session failed, and memory and disk may differ ({self._failure}). Open the "
                "directory again: everything that was acknowledged is in it."
            ) from self._failure


def _read_group(source: EventSource) -> tuple[list[ReadResult], bool]:
    """Wait briefly for a read; return all available reads, at most `GROUP_SIZE`, and whether the source has ended."""
    reads: list[ReadResult] = []
    try:
        while len(reads) < GROUP_SIZE and (read := source.read(0 if reads else _READ_TIMEOUT_SECONDS)) is not None:
            reads.append(read)
    except EOFError:
        return reads, True
    return reads, False


def _make_bad_message(read: ReadResult, row: int, error: RipplevecError) -> BadMessage:
    """Describe a row that cannot be applied as a bad message, whose text is the row as JSON."""
    only_row, batch = slice(row, row + 1), read.batch
    (src,), (dst,) = ids_to_list(take_ids(batch.src, only_row)), ids_to_list(take_ids(batch.dst, only_row))
    op = Op(0 if batch.op is None else int(batch.op[row])).name.lower()
    message = json.dumps({"src": src, "dst": dst, "op": op})
    return BadMessage(message, f"row {row} of the read that ends at {json.dumps(read.position)}", str(error))


def _describe_bad_attributes(read: ReadResult, rows: AttributeRows, error: RipplevecError) -> BadMessage:
    """Describe attributes that do not fit the model as a bad message, whose text is the ids of their vertices."""
    message = json.dumps({"attributes": ids_to_list(rows.ids)})
    return BadMessage(message, f"attributes of the read that ends at {json.dumps(read.position)}", str(error))
