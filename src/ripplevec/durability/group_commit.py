"""Batches that share a flush: considered one by one, put on disk together, then applied one by one."""

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
    """What is to share the next flush."""

    def __init__(self, model: SessionModel, journal: Journal) -> None:
        self._model, self._journal = model, journal
        self._admission = BatchAdmission(model.engine.known)
        self._entries: list[JournalEntry] = []
        self._numbers: dict[str, int] = {}  # of keys within this group
        self._answers: list[int | RipplevecError] = []  # per batch: the number it has or will have, or its refusal

    def consider(self, entry: JournalEntry) -> None:
        """Take a batch into the group, unless it was applied before or cannot be applied."""
        try:
            validate_entry(entry)
            number = self._known(entry.key)
            if number is None:
                batch = Batch.from_any(entry.batch, directed=self._model.directed)
                self._admission.admit(batch)
                number = self._add(JournalEntry(batch, entry.key, entry.source, entry.position))
            self._answers.append(number)
        except RipplevecError as refusal:
            self._answers.append(refusal)

    def take_ids(self, source: str, reads: Sequence[ReadResult], dead_letters: DeadLetterSink | None) -> RipplevecError | None:
        """Take in reads, each without what cannot be applied; why it stopped before the last one, if it did."""
        for read in reads:
            batch, refused = self._admission.admit_valid_rows(Batch.from_any(read.batch, directed=self._model.directed))
            bad_messages = [*read.bad_messages, *(_poison(read, row, error) for row, error in refused.items())]
            for message in bad_messages:
                if dead_letters is None:
                    return StateError(f"{source}: {message.where}: {message.reason}; give `dead_letters` to go on")
                dead_letters.record(source, message)
            self._answers.append(self._add(JournalEntry(batch, None, source, read.position)))
        return None

    def commit(
        self, published: Mapping[str, int], tell: Callable[[JournalEntry, Changes], None] = lambda *_: None
    ) -> list[Changes | RipplevecError]:
        """Put the group on disk, then apply it, and tell of each batch as it is applied; its changes or its refusal."""
        first = self._journal.last + 1
        if self._entries:
            self._journal.append(self._entries, published)
        done: dict[int, Changes] = {}
        for number, entry in enumerate(self._entries, first):
            done[number] = self._model.apply_batch(entry.batch)
            tell(entry, done[number])
        return [self._answer(answer, done) for answer in self._answers]

    def _answer(self, answer: int | RipplevecError, done: dict[int, Changes]) -> Changes | RipplevecError:
        if isinstance(answer, RipplevecError):
            return answer
        changes = done.pop(answer, None)
        return self._model.empty_changes(answer) if changes is None else changes

    def _known(self, key: str | None) -> int | None:
        if key is None:
            return None
        return self._numbers.get(key) or self._journal.find(key)

    def _add(self, entry: JournalEntry) -> int:
        self._entries.append(entry)
        number = self._journal.last + len(self._entries)
        if entry.key is not None:
            self._numbers[entry.key] = number
        return number


def _poison(read: ReadResult, row: int, error: RipplevecError) -> BadMessage:
    """A row that cannot be applied, as the message that it could have come in."""
    one, batch = slice(row, row + 1), read.batch
    (src,), (dst,) = ids_to_list(take_ids(batch.src, one)), ids_to_list(take_ids(batch.dst, one))
    op = Op(0 if batch.op is None else int(batch.op[row])).name.lower()
    message = json.dumps({"src": src, "dst": dst, "op": op})
    return BadMessage(message, f"row {row} of the read up to {json.dumps(read.position)}", str(error))
