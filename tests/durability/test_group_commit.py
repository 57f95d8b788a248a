from __future__ import annotations

import json
from typing import Any

import pytest

from ripplevec import Batch, Changes, Op, UnknownEdgeError
from ripplevec.durability.group_commit import CommitGroup
from ripplevec.durability.journal import JournalEntry
from ripplevec.durability.session_model import SessionModel, build_metadata, create_model
from ripplevec.errors import StateError
from ripplevec.io.protocols import Poison, Read


class Letters(list[Poison]):
    def refuse(self, source: str, poison: Poison) -> None:
        assert source == "s"
        self.append(poison)


@pytest.fixture
def model() -> SessionModel:
    return create_model(build_metadata({"dim": 3}, 0), threads=1)


def test_nothing_happens_before_the_commit(model: SessionModel, journal_at: Any) -> None:
    journal = journal_at()
    group = CommitGroup(model, journal)
    group.consider(JournalEntry(Batch.of(["a"], ["b"]), "k"))
    group.consider(JournalEntry(Batch.of(["a"], ["b"], op=[Op.REMOVE])))
    group.consider(JournalEntry(Batch.of(["a"], ["b"], op=[Op.REMOVE])))
    group.consider(JournalEntry(Batch.of(["a"], ["b"]), "k"))
    assert (journal.last, model.sequence) == (0, 0)
    first, second, third, fourth = group.commit({})
    assert (journal.last, model.sequence) == (2, 2)
    assert isinstance(third, UnknownEdgeError)
    assert [answer.sequence for answer in (first, second, fourth) if isinstance(answer, Changes)] == [1, 2, 1]
    assert isinstance(fourth, Changes)
    assert len(fourth) == 0


def test_an_empty_group_writes_nothing(model: SessionModel, journal_at: Any) -> None:
    journal = journal_at()
    assert CommitGroup(model, journal).commit({"s": 1}) == []
    assert journal.last == 0


def test_a_row_that_cannot_be_applied_is_a_message_that_can_be_sent_again(model: SessionModel, journal_at: Any) -> None:
    reads = [
        Read(Batch.of([1, 10**30, "é"], ["b", 2, "é"], op=[Op.ADD, Op.REMOVE, Op.REMOVE_VERTEX]), {"at": 3}),
        Read(Batch.of([1], ["b"], op=[Op.REMOVE]), {"at": 4}, [Poison("?", "there", "nonsense")]),
    ]
    letters, journal = Letters(), journal_at()
    group = CommitGroup(model, journal)
    assert group.take("s", reads, letters) is None
    group.commit({})
    assert [json.loads(poison.message) for poison in letters[:2]] == [
        {"src": 10**30, "dst": 2, "op": "remove"},
        {"src": "é", "dst": "é", "op": "remove_vertex"},
    ]
    assert letters[0].where == 'row 1 of the read up to {"at": 3}'
    assert letters[2].message == "?"
    assert (model.ids, model.diagnostics()["edges"]) == ([1, "b"], 0)
    assert (journal.last, journal.position("s")) == (2, {"at": 4})


def test_without_dead_letters_the_reads_before_are_kept(model: SessionModel, journal_at: Any) -> None:
    gone = Batch.of(["x"], ["y"], op=[Op.REMOVE])
    reads = [Read(Batch.of(["a"], ["b"]), 1), Read(gone, 2), Read(Batch.of([], []), 3)]
    group = CommitGroup(model, journal_at())
    failure = group.take("s", reads, None)
    assert isinstance(failure, StateError)
    assert "row 0 of the read up to 2: unknown vertex 'x'" in str(failure)
    assert len(group.commit({})) == 1
    assert model.ids == ["a", "b"]
