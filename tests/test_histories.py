"""Readers beside a writer see complete states with their sequence numbers, and can follow the changes from there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from histories import Follower, Reference, State, make_batches, read_state

from ripplevec import Batch, Changes, Embedder, Session
from ripplevec.engine import correction_schedule
from ripplevec.rules import anchor
from ripplevec.rules.gradual_correction import GradualCorrection
from ripplevec.rules.ripple import RippleRule

PARAMETERS: dict[str, Any] = {"dim": 6, "anchor_growth": 0.1, "change_threshold": 0.0, "seed": 3, "threads": 1}


@pytest.fixture(autouse=True)
def slow_anchors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow down anchors, so that readers read while one is computed or adopted."""
    for owner, name in ((anchor, "correct_bases"), (RippleRule, "solve_start"), (GradualCorrection, "advance")):
        work = getattr(owner, name)

        def slowly(*arguments: Any, work: Any = work, **options: Any) -> Any:
            result = work(*arguments, **options)
            time.sleep(0.01)
            return result

        monkeypatch.setattr(owner, name, slowly)
    monkeypatch.setattr(correction_schedule, "SPREAD_VERTICES", 300)  # corrections take several batches


def read_during(model: Embedder, write: Callable[[], None], readers: int = 3) -> list[State]:
    """Return the states that readers saw during a write, each state once per reader."""
    states, finished, errors = list[State](), threading.Event(), list[BaseException]()

    def read() -> None:
        last: State | None = None
        try:
            while not finished.is_set():
                state = read_state(model)
                if last is None or not state.equals(last):
                    states.append(state)
                last = state
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=read, daemon=True) for _ in range(readers)]
    for thread in threads:
        thread.start()
    try:
        write()
    finally:
        finished.set()
        for thread in threads:
            thread.join(30)
    assert not errors
    return states


def check_states(reference: Reference, states: list[State], changes: list[Changes]) -> None:
    assert len({state.sequence for state in states}) > 5
    for state in states:
        reference.check(state)
        follower = Follower(state)
        follower.follow(changes)
        follower.check(reference)
        assert follower.sequence == len(reference.states) - 1


@pytest.mark.parametrize("pace", ["immediate", "gradual"])
@pytest.mark.parametrize("options", [{}, {"storage": "float16"}, {"directed": True}, {"duplicates": "ignore"}])
def test_readers_beside_an_embedder_see_complete_states(options: dict[str, Any], pace: str, tmp_path: Path) -> None:
    batches, options = make_batches(), options | {"anchor_pace": pace}
    alone = Embedder(**PARAMETERS | options)
    reference = Reference.of(alone, alone.partial_fit, batches)
    assert alone.engine.anchors >= 3
    model, changes = Embedder(**PARAMETERS | options | {"storage_dir": tmp_path}), list[Changes]()
    states = read_during(model, lambda: changes.extend(model.partial_fit(batch) for batch in batches))
    check_states(reference, states, changes)
    assert model.digest() == alone.digest()


@pytest.mark.parametrize("pace", ["immediate", "gradual"])
def test_readers_beside_a_session_see_complete_states(pace: str, tmp_path: Path) -> None:
    batches = make_batches()
    with Session(tmp_path / "alone", anchor_pace=pace, **PARAMETERS) as alone:
        reference = Reference.of(alone.model, alone.apply, batches)
        digest = alone.model.digest()
    assert reference.states[-1].anchors >= 3
    changes = list[Changes]()
    with Session(tmp_path / "read", anchor_pace=pace, snapshot_every=100, **PARAMETERS) as session:
        session.add_listener(lambda _, batch_changes: changes.append(batch_changes))

        def write() -> None:
            for batch in batches[:10]:
                session.apply(batch)
            session.apply_many(batches[10:])

        check_states(reference, read_during(session.model, write), changes)
        assert session.model.digest() == digest
    with Session(tmp_path / "read", anchor_pace=pace) as again:
        assert again.model.digest() == digest


def test_readers_during_an_anchor_see_the_previous_batch_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = make_batches()
    model = Embedder(**PARAMETERS, anchor_pace="immediate").fit(batches[0])
    started, proceed, work = threading.Event(), threading.Event(), RippleRule.anchor

    def waiting(*arguments: Any, **options: Any) -> Any:
        started.set()
        assert proceed.wait(30)
        return work(*arguments, **options)

    monkeypatch.setattr(RippleRule, "anchor", waiting)

    def write() -> None:
        for batch in batches[1:8]:
            if started.is_set():
                return
            before.append(read_state(model))
            model.partial_fit(batch)

    before = list[State]()
    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    assert started.wait(30)
    now = read_state(model)  # must not block
    assert now.equals(before[-1])
    assert model.nearest_with_sequence(1)[0] == now.sequence
    proceed.set()
    writer.join(30)
    assert read_state(model).sequence == now.sequence + 1
    assert read_state(model).anchors == now.anchors + 1


def test_readers_during_a_requested_anchor_see_the_previous_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Embedder(**PARAMETERS).fit(make_batches()[0])
    before, states = read_state(model), list[State]()
    work = RippleRule.anchor

    def read() -> None:
        reader = threading.Thread(target=lambda: states.append(read_state(model)), daemon=True)
        reader.start()
        reader.join(30)

    def reading(*arguments: Any, **options: Any) -> Any:
        read()
        result = work(*arguments, **options)
        read()
        return result

    monkeypatch.setattr(RippleRule, "anchor", reading)
    model.anchor()
    assert [state.equals(before) for state in states] == [True, True]
    assert not read_state(model).equals(before)


def test_search_index_survives_an_anchor(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("usearch")
    from ripplevec.search import ann

    created, searched = list[ann.AnnIndex](), list[ann.AnnIndex]()

    class RecordedIndex(ann.AnnIndex):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            created.append(self)

        def nearest(self, *arguments: Any) -> Any:
            searched.append(self)
            return super().nearest(*arguments)

    monkeypatch.setattr(ann, "AnnIndex", RecordedIndex)
    batches = make_batches()
    model = Embedder(**PARAMETERS, search="ann").fit(batches[0])
    model.nearest(1)
    assert searched == created != []
    for batch in batches[1:8]:
        model.partial_fit(batch)
        model.nearest(1)
    assert model.engine.anchors >= 1
    assert searched == created * 8
    assert len(created) == 1


@pytest.mark.parametrize("pace", ["immediate", "gradual"])
def test_arrivals_one_by_one_equal_batches(pace: str) -> None:
    """The fast path has the same bits as batches; it is used until an immediate anchor may be due."""
    one, other = (Embedder(**PARAMETERS, anchor_pace=pace).fit(make_batches()[0]) for _ in range(2))
    for number in range(60):
        one.add_vertex(f"v{number}", [number, number + 1])
        other.partial_fit(Batch.arrival(f"v{number}", [number, number + 1]))
        assert read_state(one).equals(read_state(other))
    assert one.engine.anchors >= 2
