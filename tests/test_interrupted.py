"""A batch that is interrupted at any line, or gets no memory, leaves the state before, the state after, or none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from histories import stream
from interrupts import raising_at

from ripplevec import Batch, Embedder, Session
from ripplevec.batch import Op
from ripplevec.errors import SelfLoopWarning, StateError
from ripplevec.rules.ripple import RippleRule

HOW: dict[str, Any] = {"dim": 4, "anchor_growth": 0.1, "change_threshold": 0.0, "seed": 3, "threads": 1}
BATCHES = stream(20)
LAG = 0.03  # of the graph
ERRORS = (KeyboardInterrupt, MemoryError, RuntimeWarning)
MOST = int(os.environ.get("RIPPLEVEC_INTERRUPTS", "40"))
"""Interrupts per case; of more lines, as many evenly spread."""


def in_library(file: str) -> bool:
    return "/ripplevec/" in file


class Case(NamedTuple):
    """A model and what is done to it."""

    model: Embedder
    change: Callable[[Embedder], Any]


def after(batches: int, lag: float = 0, **options: Any) -> Embedder:
    model = Embedder(**HOW | options).fit(BATCHES[0])
    model.engine.anchor_lag = lag
    for batch in BATCHES[1 : 1 + batches]:
        model.partial_fit(batch)
    if model.engine.pending_anchor is not None:
        model.engine.pending_anchor.result()
    return model


def reaching(wanted: Callable[[Embedder], bool], **options: Any) -> int:
    """How many batches it takes until the next one does something."""
    for batches in range(1, len(BATCHES) - 1):
        if wanted(after(batches + 1, **options)):
            return batches
    raise AssertionError("it never happens")


def plain() -> Case:
    return Case(after(1), lambda model: model.partial_fit(BATCHES[2]))


def corrected_at_once() -> Case:
    batches = reaching(lambda model: model.engine.anchors > 0)
    return Case(after(batches), lambda model: model.partial_fit(BATCHES[batches + 1]))


def begins_a_correction() -> Case:
    batches = reaching(lambda model: model.engine.pending_anchor is not None, lag=LAG)
    return Case(after(batches, LAG), lambda model: model.partial_fit(BATCHES[batches + 1]))


def takes_one_over() -> Case:
    batches = reaching(lambda model: model.engine.anchors > 0, lag=LAG)
    return Case(after(batches, LAG), lambda model: model.partial_fit(BATCHES[batches + 1]))


def start_of_empty_model() -> Case:
    model = Embedder(**HOW | {"start_size": 20})
    model.partial_fit(Batch.from_any([(i, i + 1) for i in range(15)]))
    return Case(model, lambda model: model.partial_fit([(i, i + 2) for i in range(30)]))


def removals() -> Case:
    gone = Batch.of([3, 5, "x"], [3, 5, 7], op=[Op.REMOVE_VERTEX, Op.REMOVE_VERTEX, Op.ADD])
    return Case(after(1), lambda model: model.partial_fit(gone))


def arrival() -> Case:
    model = after(1)
    model.add_vertex("first", [0, 1])
    return Case(model, lambda model: model.add_vertex("second", [2, 3]))


def asked_for() -> Case:
    return Case(after(1), lambda model: model.anchor())


def forgetting() -> Case:
    model = Embedder(**HOW | {"half_life": 3.0, "expire_after": 20.0})
    edges = [(i % 30, (7 * i + 1) % 30) for i in range(100)]
    model.fit(Batch.of(*zip(*edges, strict=True), time=np.arange(100) / 10))
    return Case(model, lambda model: model.partial_fit(Batch.of([1, "x"], [2, 3], time=[10.5, 10.5])))


def expiring() -> Case:
    return Case(forgetting().model, lambda model: model.partial_fit(Batch.of([1, "x"], [2, 3], time=[25.0, 25.0])))


def paper() -> Case:
    model = Embedder(dim=4, rule="paper", threads=1).fit(BATCHES[0])
    return Case(model, lambda model: model.partial_fit(BATCHES[1]))


CASES = [
    plain,
    corrected_at_once,
    begins_a_correction,
    takes_one_over,
    start_of_empty_model,
    removals,
    arrival,
    asked_for,
    forgetting,
    expiring,
    paper,
]


IN_PLACE = [plain, begins_a_correction, takes_one_over, removals, arrival, forgetting, paper]
"""What changes the state itself; all else changes a copy of it."""


def copied(model: Embedder) -> Embedder:
    """A model in the same state."""
    other = Embedder(**model.get_params())
    other._engine = model.engine.clone()
    other._engine.graph._warned = True
    return other


def spread(interrupted: Callable[[int], bool]) -> Iterator[int]:
    """The lines to interrupt at, all or many, evenly spread; `interrupted` says whether there is such a line."""
    low, high = 0, 1
    while interrupted(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if interrupted(middle) else (low, middle)
    return iter(range(0, high, max(1, high // MOST)))


def check_refused(model: Embedder) -> None:
    """Whatever is asked of it is refused, and it can be begun anew."""
    asked: list[Callable[[], Any]] = [
        model.digest,
        lambda: model.ids,
        lambda: model.vectors([1]),
        lambda: model.sequence,
        lambda: len(model),
        lambda: model.nearest(1),
        lambda: 1 in model,
        lambda: model.partial_fit([(1, 2)]),
        lambda: model.add_vertex("z", [1]),
        lambda: model.save("nowhere"),
        model.diagnostics,
        model.anchor,
    ]
    for ask in asked:
        with pytest.raises(StateError, match=r"unusable.*start over with fit"):
            ask()
    assert "unusable" in repr(model)


def left(model: Embedder, change: Callable[[Embedder], Any], digests: tuple[str, str]) -> str:
    """What an interrupted change has left: the state before or after it, or a model that refuses; nothing else."""
    if "unusable" in repr(model):
        check_refused(model)
        return "refused"
    assert model.digest() in digests, "a third state"
    model.check()
    if model.digest() == digests[1]:
        return "after"
    change(model)
    assert model.digest() == digests[1], "the change cannot be made again"
    return "before"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_embedder_interrupted_at_any_line_has_a_whole_state_or_refuses(case: Callable[[], Case]) -> None:
    before, change = case()
    whole = copied(before)
    change(whole)
    digests = before.digest(), whole.digest()

    def interrupt(number: int) -> tuple[Embedder, bool]:
        model, error = copied(before), ERRORS[number % len(ERRORS)]
        with suppress(*ERRORS), raising_at(number, error("at a line"), in_library) as injection:
            change(model)
        return model, injection.raised

    seen = set()
    for number in spread(lambda number: interrupt(number)[1]):
        model, _ = interrupt(number)
        seen.add(left(model, change, digests))
    assert "before" in seen
    assert ("refused" in seen) == (case in IN_PLACE)
    model.fit(BATCHES[0])
    assert model.digest() == Embedder(**model.get_params()).fit(BATCHES[0]).digest()


def test_embedder_that_refuses_is_usable_again_after_set_params() -> None:
    model = after(1)
    model._engine.update_incomplete = True
    model._give_up(model._engine, MemoryError())
    check_refused(model)
    assert model.set_params(dim=3).ids == []
    assert model.partial_fit([(1, 2)]).sequence == 1


def test_warning_made_an_error_comes_after_the_batch_and_leaves_the_model_usable() -> None:
    model = Embedder(dim=3, threads=1).fit([(1, 2), (2, 3)])
    with pytest.raises(SelfLoopWarning):
        model.partial_fit([("x", "x"), ("x", 1)])
    assert (model.sequence, "x" in model) == (1, True)
    fitted = Embedder(dim=3, threads=1)
    with pytest.raises(SelfLoopWarning):
        fitted.fit([(1, 1), (1, 2)])
    assert fitted.ids == [1, 2]


# ------------------------------------------------------------------ no memory


def fail_allocations(names: list[str]) -> None:
    """For a process of its own: what is left where one array gets no memory, for each of many."""
    from failing_memory import Arrays

    arrays = Arrays()
    for name in names:
        before, change = globals()[name]()
        whole = copied(before)
        with arrays.failing(-1):
            change(whole)
        asked, digests, seen = arrays.asked, (before.digest(), whole.digest()), list[str]()
        assert asked > 5, name
        for number in range(0, asked, max(1, asked // MOST)):
            model = copied(before)
            with (
                suppress(MemoryError, SystemError),
                arrays.failing(number),
            ):  # the other where NumPy forgets to say which
                change(model)
            seen.append(left(model, change, digests))
        assert {"before"} <= set(seen), (name, seen)
        print(name, asked, {what: seen.count(what) for what in set(seen)}, flush=True)


@pytest.mark.skipif(sys.platform != "linux", reason="replaces NumPy's allocator by that of the C library")
def test_embedder_without_memory_for_one_array_has_a_whole_state_or_refuses() -> None:
    names = [case.__name__ for case in CASES]
    code = f"import os, test_interrupted as t; t.fail_allocations({names}); os._exit(0)"
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=os.environ | {"PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stderr
    assert "refused" in done.stdout


# ------------------------------------------------------------------ sessions


def directory(path: Path, batches: int, **options: Any) -> None:
    with Session(path, **HOW | options) as session:
        for number, batch in enumerate(BATCHES[: batches + 1]):
            session.apply(batch, key=f"k{number}")


def reopened(path: Path) -> tuple[int, str]:
    with Session(path) as session:
        return session.model.sequence, session.model.digest()


@pytest.mark.parametrize("batches", ["plain", "corrected_at_once", "takes_one_over", "begins_a_correction"])
def test_session_interrupted_at_any_line_ends_and_reopens_with_what_its_journal_holds(
    batches: str, tmp_path: Path
) -> None:
    lag = LAG if batches in ("takes_one_over", "begins_a_correction") else 0
    options = {"anchor_lag": lag, "snapshot_every": 1_000}
    wanted: dict[str, Callable[[Session], bool]] = {
        "plain": lambda session: session.model.sequence == 3,
        "corrected_at_once": lambda session: session.model.engine.anchors == 2,  # the first was the start
        "takes_one_over": lambda session: session.model.engine.anchors == 2,
        "begins_a_correction": lambda session: session.model.engine.pending_anchor is not None,
    }
    with Session(tmp_path / "all", **HOW | options) as session:
        number = next(at for at, batch in enumerate(BATCHES) if session.apply(batch) and wanted[batches](session))
    directory(tmp_path / "before", number - 1, **options)
    directory(tmp_path / "after", number, **options)
    states = dict(map(reopened, (tmp_path / "before", tmp_path / "after")))

    def interrupt(line: int) -> tuple[bool, bool]:
        """Whether there was such a line, and whether the session went on."""
        place = tmp_path / "interrupted"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(tmp_path / "before", place)
        session, error = Session(place), ERRORS[line % len(ERRORS)]
        try:
            with suppress(*ERRORS), raising_at(line, error("at a line"), in_library) as injection:
                session.apply(BATCHES[number], key="k")
            with suppress(StateError):
                known = session.find_key("k")
                assert (known is not None) == (session.model.sequence == number + 1)  # never answered as applied
                assert session.model.digest() == states[session.model.sequence]
                session.snapshot()
                return injection.raised, True
            with pytest.raises(StateError):
                session.apply(BATCHES[number], key="k")
            with pytest.raises(StateError):
                session.snapshot()
            return injection.raised, False
        finally:
            session.close()
            sequence, digest = reopened(place)
            assert digest == states[sequence], f"line {line}: reopened with another state"

    went_on = [interrupt(line)[1] for line in spread(lambda line: interrupt(line)[0])]
    assert {True, False} == set(went_on)


def test_session_whose_solver_fails_ends_and_answers_no_key_as_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise np.linalg.LinAlgError("no convergence")

    session = Session(tmp_path / "state", anchor_lag=0, **HOW)
    session.apply(BATCHES[0], key="k0")
    with monkeypatch.context() as patch:
        patch.setattr(RippleRule, "_bases", fail)
        applied = 0
        with suppress(np.linalg.LinAlgError):
            for applied, batch in enumerate(BATCHES[1:], 1):
                session.apply(batch, key=f"k{applied}")
        assert 0 < applied < len(BATCHES) - 1
        for ask in (lambda: session.apply(BATCHES[applied], key=f"k{applied}"), lambda: session.find_key(f"k{applied}")):
            with pytest.raises(StateError, match="open the directory again"):
                ask()
        session.close()
    directory(tmp_path / "clean", applied, anchor_lag=0)
    assert reopened(tmp_path / "state") == reopened(tmp_path / "clean")


def test_listener_that_is_interrupted_ends_the_session(tmp_path: Path) -> None:
    """Who follows may have missed a batch, and would be told wrong things from then on."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with Session(tmp_path / "state", dim=3) as session:
        session.add_listener(interrupt)
        with pytest.raises(KeyboardInterrupt):
            session.apply([("a", "b")])
        with pytest.raises(StateError):
            session.apply([("b", "c")])
    assert reopened(tmp_path / "state")[0] == 1


def test_every_listener_is_told_where_one_fails(tmp_path: Path) -> None:
    heard = list[int]()

    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    with Session(tmp_path / "state", dim=3) as session:
        session.add_listener(fail)
        session.add_listener(lambda _, changes: heard.append(changes.sequence))
        with pytest.raises(ZeroDivisionError):
            session.apply_many([Batch.of(["a"], ["b"]), Batch.of(["b"], ["c"])])
        assert heard == [1, 2]
        assert session.find_key("?") is None


def test_warning_made_an_error_does_not_hide_changes_from_listeners(tmp_path: Path) -> None:
    told = dict[int, list[Any]]()
    with Session(tmp_path / "state", dim=3) as session:
        session.add_listener(lambda _, changes: told.update({changes.sequence: changes.ids}))
        with pytest.raises(SelfLoopWarning):
            session.apply_many([Batch.of(["a", "a"], ["a", "b"]), Batch.of(["b"], ["c"])])
        assert session.apply([("c", "d")]).sequence == 3
    assert [set(told[number]) >= names for number, names in ((1, {"a", "b"}), (2, {"c"}), (3, {"d"}))] == [True] * 3
