"""Whoever reads beside a writer sees whole states under their own numbers, and can follow the changes from there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from histories import Follower, Reference, State, seen, stream

from ripplevec import Batch, Changes, Embedder, Session
from ripplevec.rules.ripple import RippleRule

HOW: dict[str, Any] = {"dim": 6, "anchor_growth": 0.1, "change_threshold": 0.0, "seed": 3, "threads": 1}


@pytest.fixture(autouse=True)
def slow_corrections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers have time to look around while a correction is worked out, or taken over."""
    for name in ("_bases", "first_bases", "prepare"):
        work = getattr(RippleRule, name)

        def slowly(*arguments: Any, work: Any = work, **options: Any) -> Any:
            found = work(*arguments, **options)
            time.sleep(0.01)
            return found

        monkeypatch.setattr(RippleRule, name, slowly)


def beside(model: Embedder, write: Callable[[], None], readers: int = 3) -> list[State]:
    """What readers saw, each state once per reader, while something was written."""
    states, over, faults = list[State](), threading.Event(), list[BaseException]()

    def read() -> None:
        last: State | None = None
        try:
            while not over.is_set():
                state = seen(model)
                if last is None or not state.same_as(last):
                    states.append(state)
                last = state
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=read, daemon=True) for _ in range(readers)]
    for thread in threads:
        thread.start()
    try:
        write()
    finally:
        over.set()
        for thread in threads:
            thread.join(30)
    assert not faults
    return states


def check(reference: Reference, states: list[State], told: list[Changes]) -> None:
    assert len({state.sequence for state in states}) > 5
    for state in states:
        reference.check(state)
        follower = Follower(state)
        follower.follow(told)
        follower.check(reference)
        assert follower.sequence == len(reference.states) - 1


@pytest.mark.parametrize("options", [{}, {"storage": "float16"}, {"directed": True}, {"duplicates": "ignore"}])
def test_readers_beside_an_embedder_see_whole_states(options: dict[str, Any], tmp_path: Path) -> None:
    batches = stream()
    alone = Embedder(**HOW | options)
    reference = Reference.of(alone, alone.partial_fit, batches)
    assert alone.engine.anchors >= 3
    model, told = Embedder(**HOW | options | {"storage_dir": tmp_path}), list[Changes]()
    states = beside(model, lambda: told.extend(model.partial_fit(batch) for batch in batches))
    check(reference, states, told)
    assert model.digest() == alone.digest()


@pytest.mark.parametrize("lag", [0, 1e-9, 0.02, 0.2])
def test_readers_beside_a_session_see_whole_states(lag: float, tmp_path: Path) -> None:
    batches = stream()
    with Session(tmp_path / "alone", anchor_lag=lag, **HOW) as alone:
        reference = Reference.of(alone.model, alone.apply, batches)
        digest = alone.model.digest()
    assert reference.states[-1].anchors >= (2 if lag == 0.2 else 3)
    told = list[Changes]()
    with Session(tmp_path / "read", anchor_lag=lag, snapshot_every=100, **HOW) as session:
        session.listen(lambda _, changes: told.append(changes))

        def write() -> None:
            for batch in batches[:10]:
                session.apply(batch)
            session.apply_many(batches[10:])

        check(reference, beside(session.model, write), told)
        assert session.model.digest() == digest
    with Session(tmp_path / "read", anchor_lag=lag) as again:
        assert again.model.digest() == digest


def test_readers_during_a_correction_see_the_batch_before_and_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = stream()
    model = Embedder(**HOW).fit(batches[0])
    begun, go_on, work = threading.Event(), threading.Event(), RippleRule._bases

    def held(*arguments: Any, **options: Any) -> Any:
        begun.set()
        assert go_on.wait(30)
        return work(*arguments, **options)

    monkeypatch.setattr(RippleRule, "_bases", held)

    def write() -> None:
        for batch in batches[1:8]:
            if begun.is_set():
                return
            before.append(seen(model))
            model.partial_fit(batch)

    before = list[State]()
    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    assert begun.wait(30)
    now = seen(model)  # would hang here
    assert now.same_as(before[-1])
    assert model.nearest_with_sequence(1)[0] == now.sequence
    go_on.set()
    writer.join(30)
    assert seen(model).sequence == now.sequence + 1
    assert seen(model).anchors == now.anchors + 1


def test_an_anchor_that_is_asked_for_lets_readers_see_the_vectors_before(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Embedder(**HOW).fit(stream()[0])
    before, states = seen(model), list[State]()
    work = RippleRule._bases

    def looking(*arguments: Any, **options: Any) -> Any:
        found = work(*arguments, **options)
        reader = threading.Thread(target=lambda: states.append(seen(model)), daemon=True)
        reader.start()
        reader.join(30)
        return found

    monkeypatch.setattr(RippleRule, "_bases", looking)
    model.anchor()
    assert states[0].same_as(before)
    assert not seen(model).same_as(before)


def test_an_index_survives_a_correction() -> None:
    pytest.importorskip("usearch")
    batches = stream()
    model = Embedder(**HOW, search="ann").fit(batches[0])
    model.nearest(1)
    index = model._searcher.index
    assert index is not None
    for batch in batches[1:8]:
        model.partial_fit(batch)
        model.nearest(1)
    assert model.engine.anchors >= 1
    assert model._searcher.index is index


def test_arrivals_one_by_one_are_the_same_as_batches() -> None:
    """The short way is taken until a correction may be due, and the bits are those of batches."""
    one, other = (Embedder(**HOW).fit(stream()[0]) for _ in range(2))
    for number in range(60):
        one.add_vertex(f"v{number}", [number, number + 1])
        other.partial_fit(Batch.arrival(f"v{number}", [number, number + 1]))
        assert seen(one).same_as(seen(other))
    assert one.engine.anchors >= 2
