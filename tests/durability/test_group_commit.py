from __future__ import annotations

import json
from typing import Any

import pytest

from ripplevec import Batch, Changes, Op, UnknownEdgeError
from ripplevec.durability.group_commit import CommitGroup
from ripplevec.durability.journal import JournalEntry
from ripplevec.durability.session_model import SessionModel, build_metadata, create_model
from ripplevec.errors import StateError
from ripplevec.io.protocols import BadMessage, ReadResult


class DeadLetters(list[BadMessage]):
    def record(self, source: str, bad_message: BadMessage) -> None:
        assert source == "s"
        self.append(bad_message)


@pytest.fixture
def model() -> SessionModel:
    return create_model(build_metadata({"dim": 3}, 0), threads=1)


def test_commit_group_changes_nothing_before_commit(model: SessionModel, journal_at: Any) -> None:
    journal = journal_at()
    group = CommitGroup(model, journal)
    group.add(JournalEntry(Batch.of(["a"], ["b"]), "k"))
    group.add(JournalEntry(Batch.of(["a"], ["b"], op=[Op.REMOVE])))
    group.add(JournalEntry(Batch.of(["a"], ["b"], op=[Op.REMOVE])))
    group.add(JournalEntry(Batch.of(["a"], ["b"]), "k"))
    assert (journal.last, model.sequence) == (0, 0)
    first, second, third, fourth = group.commit({})
    assert (journal.last, model.sequence) == (2, 2)
    assert isinstance(third, UnknownEdgeError)
    assert [result.sequence for result in (first, second, fourth) if isinstance(result, Changes)] == [1, 2, 1]
    assert isinstance(fourth, Changes)
    assert len(fourth) == 0


def test_commit_group_empty_writes_nothing(model: SessionModel, journal_at: Any) -> None:
    journal = journal_at()
    assert CommitGroup(model, journal).commit({"s": 1}) == []
    assert journal.last == 0


def test_commit_group_invalid_rows_become_resendable_dead_letters(model: SessionModel, journal_at: Any) -> None:
    reads = [
        ReadResult(Batch.of([1, 10**30, "é"], ["b", 2, "é"], op=[Op.ADD, Op.REMOVE, Op.REMOVE_VERTEX]), {"at": 3}),
        ReadResult(Batch.of([1], ["b"], op=[Op.REMOVE]), {"at": 4}, [BadMessage("?", "there", "nonsense")]),
    ]
    letters, journal = DeadLetters(), journal_at()
    group = CommitGroup(model, journal)
    assert group.add_reads("s", reads, letters) is None
    group.commit({})
    assert [json.loads(bad_message.message) for bad_message in letters[:2]] == [
        {"src": 10**30, "dst": 2, "op": "remove"},
        {"src": "é", "dst": "é", "op": "remove_vertex"},
    ]
    assert letters[0].where == 'row 1 of the read that ends at {"at": 3}'
    assert letters[2].message == "?"
    assert (model.ids, model.diagnostics()["edges"]) == ([1, "b"], 0)
    assert (journal.last, journal.position("s")) == (2, {"at": 4})


def test_commit_group_without_dead_letters_keeps_earlier_reads(model: SessionModel, journal_at: Any) -> None:
    removal = Batch.of(["x"], ["y"], op=[Op.REMOVE])
    reads = [ReadResult(Batch.of(["a"], ["b"]), 1), ReadResult(removal, 2), ReadResult(Batch.of([], []), 3)]
    group = CommitGroup(model, journal_at())
    failure = group.add_reads("s", reads, None)
    assert isinstance(failure, StateError)
    assert "row 0 of the read that ends at 2: unknown vertex 'x'" in str(failure)
    assert len(group.commit({})) == 1
    assert model.ids == ["a", "b"]
