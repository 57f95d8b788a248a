"""Group commit: batches are validated one by one, written to disk in one flush, then applied one by one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from ripplevec.batch import Batch, Op, ids_to_list, take_ids
from ripplevec.changes import Changes
from ripplevec.durability.journal import Journal, JournalEntry, validate_entry
from ripplevec.durability.session_model import SessionModel
from ripplevec.errors import RipplevecError, StateError
from ripplevec.graph.batch_validation import BatchAdmission
from ripplevec.io.protocols import BadMessage, DeadLetterSink, ReadResult


class CommitGroup:
    """Batches that will share the next flush."""

    def __init__(self, model: SessionModel, journal: Journal) -> None:
        self._model, self._journal = model, journal
        self._admission = BatchAdmission(model.engine.graph_lookup)
        self._entries: list[JournalEntry] = []
        self._sequence_by_key: dict[str, int] = {}  # keys of batches in this group
        self._outcomes: list[int | RipplevecError] = []  # per batch: its sequence number, or why it was rejected

    def add(self, entry: JournalEntry) -> None:
        """Add a batch, unless its key was applied before or it is invalid; validation sees the batches before it."""
        try:
            validate_entry(entry)
            sequence = self._find_key(entry.key)
            if sequence is None:
                batch = Batch.from_any(entry.batch, directed=self._model.directed)
                self._admission.admit(batch)
                sequence = self._append(JournalEntry(batch, entry.key, entry.source, entry.position))
            self._outcomes.append(sequence)
        except RipplevecError as rejection:
            self._outcomes.append(rejection)

    def add_reads(
        self, source: str, reads: Sequence[ReadResult], dead_letters: DeadLetterSink | None
    ) -> RipplevecError | None:
        """Add the valid rows of each read and record the others as dead letters.

        Without dead letters, stop before the first read that has an invalid row or message, and return the error.
        """
        for read in reads:
            batch, rejected = self._admission.admit_valid_rows(
                Batch.from_any(read.batch, directed=self._model.directed)
            )
            rejected_rows = (_make_bad_message(read, row, error) for row, error in rejected.items())
            for message in [*read.bad_messages, *rejected_rows]:
                if dead_letters is None:
                    return StateError(
                        f"{source}: bad message at {message.where}: {message.reason}. Pass `dead_letters` to skip such "
                        "messages."
                    )
                dead_letters.record(source, message)
            self._outcomes.append(self._append(JournalEntry(batch, None, source, read.position)))
        return None

    def commit(
        self, published: Mapping[str, int], on_applied: Callable[[JournalEntry, Changes], None] = lambda *_: None
    ) -> list[Changes | RipplevecError]:
        """Write the group to disk, then apply each batch and call `on_applied`; return changes or rejections.

        `published` maps each source to the last batch whose changes its sinks have received; it is saved too.
        """
        first = self._journal.last + 1
        if self._entries:
            self._journal.append(self._entries, published)
        applied: dict[int, Changes] = {}
        for sequence, entry in enumerate(self._entries, first):
            applied[sequence] = self._model.apply_batch(entry.batch)
            on_applied(entry, applied[sequence])
        return [self._result(outcome, applied) for outcome in self._outcomes]

    def _result(self, outcome: int | RipplevecError, applied: dict[int, Changes]) -> Changes | RipplevecError:
        if isinstance(outcome, RipplevecError):
            return outcome
        changes = applied.pop(outcome, None)  # a repeated key gets its changes once
        return self._model.empty_changes(outcome) if changes is None else changes

    def _find_key(self, key: str | None) -> int | None:
        if key is None:
            return None
        return self._sequence_by_key.get(key) or self._journal.find_key(key)

    def _append(self, entry: JournalEntry) -> int:
        self._entries.append(entry)
        sequence = self._journal.last + len(self._entries)
        if entry.key is not None:
            self._sequence_by_key[entry.key] = sequence
        return sequence


def _make_bad_message(read: ReadResult, row: int, error: RipplevecError) -> BadMessage:
    """Describe a row that cannot be applied as a bad message, whose text is the row as JSON."""
    only_row, batch = slice(row, row + 1), read.batch
    (src,), (dst,) = ids_to_list(take_ids(batch.src, only_row)), ids_to_list(take_ids(batch.dst, only_row))
    op = Op(0 if batch.op is None else int(batch.op[row])).name.lower()
    message = json.dumps({"src": src, "dst": dst, "op": op})
    return BadMessage(message, f"row {row} of the read that ends at {json.dumps(read.position)}", str(error))
