"""Tests of the batches of a session that share a flush."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ripplevec import Batch, Changes, Op, Session, UnknownEdgeError
from ripplevec.durability.journal import Journal, JournalEntry
from ripplevec.errors import InvalidValueError, StateError
from ripplevec.io.protocols import BadMessage, Position, ReadResult


class DeadLetters(list[BadMessage]):
    def record(self, source: str, bad_message: BadMessage) -> None:
        assert source == "s"
        self.append(bad_message)


class ReadySource:
    """A source whose reads are all available at once, so that they share a flush."""

    name = "s"

    def __init__(self, *reads: ReadResult) -> None:
        self.reads, self.acknowledged = list(reads), list[Position]()

    def open(self, position: Position | None) -> None:
        pass

    def read(self, timeout: float) -> ReadResult | None:
        if not self.reads:
            raise EOFError
        return self.reads.pop(0)

    def acknowledge(self, position: Position) -> None:
        self.acknowledged.append(position)

    def close(self) -> None:
        pass


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with Session(tmp_path / "state", dim=3, threads=1) as opened:
        yield opened


def test_apply_many_checks_each_batch_after_the_ones_before_it(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushes, append = list[int](), Journal.append

    def record(journal: Journal, entries: Any, published: Any = None) -> None:
        flushes.append(len(entries))
        append(journal, entries, published)

    monkeypatch.setattr(Journal, "append", record)
    removal = Batch.of(["a"], ["b"], op=[Op.REMOVE])
    first, second, third, fourth = session.apply_many(
        [
            JournalEntry(Batch.of(["a"], ["b"]), "k"),
            JournalEntry(removal),
            JournalEntry(removal),
            JournalEntry(Batch.of(["a"], ["b"]), "k"),
        ]
    )
    assert (flushes, session.model.sequence) == ([2], 2)
    assert isinstance(third, UnknownEdgeError)
    assert [result.sequence for result in (first, second, fourth) if isinstance(result, Changes)] == [1, 2, 1]
    assert isinstance(fourth, Changes)
    assert len(fourth) == 0


def test_apply_many_without_batches_writes_nothing(session: Session) -> None:
    assert session.apply_many([]) == []
    assert session.model.sequence == 0


def test_apply_many_sees_additions_after_a_rejected_removal(session: Session) -> None:
    removal = Batch.of(["b"], ["c"], op=[Op.REMOVE])
    results = session.apply_many([[("a", "b")], removal, [("b", "c")], removal])
    assert [type(result).__name__ for result in results] == ["Changes", "UnknownVertexError", "Changes", "Changes"]
    assert session.model.diagnostics()["edges"] == 1


@pytest.mark.parametrize(
    "options", [{"key": ""}, {"source": ""}, {"position": 1}, {"source": "s", "position": {1, 2}}, {"source": "\ud800"}]
)
def test_journal_entry_that_cannot_be_stored_raises(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError):
        JournalEntry(Batch.of(["a"], ["b"]), **options)


def test_run_with_invalid_rows_records_resendable_dead_letters(session: Session) -> None:
    letters, source = (
        DeadLetters(),
        ReadySource(
            ReadResult(Batch.of([1, 10**30, "é"], ["b", 2, "é"], op=[Op.ADD, Op.REMOVE, Op.REMOVE_VERTEX]), {"at": 3}),
            ReadResult(Batch.of([1], ["b"], op=[Op.REMOVE]), {"at": 4}, [BadMessage("?", "there", "nonsense")]),
        ),
    )
    assert session.run(source, dead_letters=letters) == 2
    assert [json.loads(bad_message.message) for bad_message in letters[:2]] == [
        {"src": 10**30, "dst": 2, "op": "remove"},
        {"src": "é", "dst": "é", "op": "remove_vertex"},
    ]
    assert letters[0].where == 'row 1 of the read that ends at {"at": 3}'
    assert letters[2].message == "?"
    assert (session.model.ids, session.model.diagnostics()["edges"]) == ([1, "b"], 0)
    assert (session.model.sequence, session.position("s")) == (2, {"at": 4})


def test_run_without_dead_letters_keeps_earlier_reads(session: Session) -> None:
    removal = Batch.of(["x"], ["y"], op=[Op.REMOVE])
    source = ReadySource(ReadResult(Batch.of(["a"], ["b"]), 1), ReadResult(removal, 2), ReadResult(Batch.of([], []), 3))
    with pytest.raises(StateError, match="row 0 of the read that ends at 2: unknown vertex 'x'"):
        session.run(source)
    assert (source.acknowledged, session.model.ids) == ([1], ["a", "b"])
