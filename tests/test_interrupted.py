"""A batch that is interrupted at any line, or fails to allocate, leaves the old state, the new state, or no state."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from histories import make_batches
from interrupts import ERRORS, MAX_INTERRUPTS, in_library, raise_at_line, spread

from ripplevec import Batch, Embedder, Session, embedder
from ripplevec.attributes.input import attach_attributes, read_attributes
from ripplevec.batch import Op
from ripplevec.engine import correction_schedule
from ripplevec.errors import SelfLoopWarning, StateError
from ripplevec.rules import anchor
from ripplevec.rules.ripple import RippleRule

PARAMETERS: dict[str, Any] = {"dim": 4, "anchor_growth": 0.1, "change_threshold": 0.0, "seed": 3, "threads": 1}
BATCHES = make_batches(20)


@pytest.fixture(autouse=True)
def slow_corrections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let gradual corrections take several batches, as on a large graph."""
    monkeypatch.setattr(correction_schedule, "SPREAD_VERTICES", 1)


class Case(NamedTuple):
    """A model and an update of it."""

    model: Embedder
    change: Callable[[Embedder], Any]


def after(batches: int, pace: str = "immediate", **options: Any) -> Embedder:
    model = Embedder(**PARAMETERS | {"anchor_pace": pace} | options).fit(BATCHES[0])
    for batch in BATCHES[1 : 1 + batches]:
        model.partial_fit(batch)
    return model


def batches_until(condition: Callable[[Embedder], bool], **options: Any) -> int:
    """Return the number of batches after which the next one makes the condition true."""
    for batches in range(1, len(BATCHES) - 1):
        if condition(after(batches + 1, **options)):
            return batches
    raise AssertionError("the condition never holds")


def simple_batch() -> Case:
    return Case(after(1), lambda model: model.partial_fit(BATCHES[2]))


def batch_with_anchor() -> Case:
    batches = batches_until(lambda model: model.engine.anchors > 0)
    return Case(after(batches), lambda model: model.partial_fit(BATCHES[batches + 1]))


def batch_that_begins_a_correction() -> Case:
    batches = batches_until(lambda model: model.engine.correction is not None, pace="gradual")
    return Case(after(batches, "gradual"), lambda model: model.partial_fit(BATCHES[batches + 1]))


def batch_within_a_correction() -> Case:
    batches = 1 + batches_until(lambda model: model.engine.correction is not None, pace="gradual")
    return Case(after(batches, "gradual"), lambda model: model.partial_fit(BATCHES[batches + 1]))


def batch_that_replaces_all_rows() -> Case:
    batches = batches_until(lambda model: model.engine.anchors > 0, pace="gradual")
    return Case(after(batches, "gradual"), lambda model: model.partial_fit(BATCHES[batches + 1]))


def start_of_empty_model() -> Case:
    model = Embedder(**PARAMETERS | {"start_size": 20})
    model.partial_fit(Batch.from_any([(i, i + 1) for i in range(15)]))
    return Case(model, lambda model: model.partial_fit([(i, i + 2) for i in range(30)]))


def removals() -> Case:
    gone = Batch.of([3, 5, "x"], [3, 5, 7], op=[Op.REMOVE_VERTEX, Op.REMOVE_VERTEX, Op.ADD])
    return Case(after(1), lambda model: model.partial_fit(gone))


def arrival() -> Case:
    model = after(1)
    model.add_vertex("first", [0, 1])
    return Case(model, lambda model: model.add_vertex("second", [2, 3]))


def requested_anchor() -> Case:
    return Case(after(1), lambda model: model.anchor())


def decay() -> Case:
    model = Embedder(**PARAMETERS | {"half_life": 3.0, "expire_after": 20.0, "anchor_pace": "immediate"})
    edges = [(i % 30, (7 * i + 1) % 30) for i in range(100)]
    model.fit(Batch.of(*zip(*edges, strict=True), time=np.arange(100) / 10))
    return Case(model, lambda model: model.partial_fit(Batch.of([1, "x"], [2, 3], time=[10.5, 10.5])))


def expiry() -> Case:
    return Case(decay().model, lambda model: model.partial_fit(Batch.of([1, "x"], [2, 3], time=[25.0, 25.0])))


def paper_rule() -> Case:
    model = Embedder(dim=4, rule="paper", threads=1).fit(BATCHES[0])
    return Case(model, lambda model: model.partial_fit(BATCHES[1]))


def attributed() -> Embedder:
    tags = {vertex: {f"t{vertex % 5}": 1.0, f"u{vertex % 3}": 2.0} for vertex in range(30)}
    return Embedder(**PARAMETERS).fit(BATCHES[0], attributes=tags)


def batch_with_attributes() -> Case:
    edges = ["new", 1, 2], [3, 4, 5]
    tags = read_attributes({"new": {"t1": 1.0, "unseen": 2.0}, 2: {"u1": 1.0}})
    return Case(attributed(), lambda model: model.partial_fit(attach_attributes(Batch.of(*edges), tags)))


def arrival_with_attributes() -> Case:
    model = attributed()
    model.add_vertex("first", [0, 1], attributes={"t2": 1.0})
    return Case(model, lambda model: model.add_vertex("second", [2, 3], attributes={"t3": 1.0, "unseen": 1.0}))


CASES = [
    simple_batch,
    batch_with_anchor,
    batch_that_begins_a_correction,
    batch_within_a_correction,
    batch_that_replaces_all_rows,
    start_of_empty_model,
    removals,
    arrival,
    batch_with_attributes,
    arrival_with_attributes,
    requested_anchor,
    decay,
    expiry,
    paper_rule,
]


IN_PLACE = [
    simple_batch,
    batch_that_begins_a_correction,
    batch_within_a_correction,
    batch_that_replaces_all_rows,
    removals,
    arrival,
    batch_with_attributes,
    arrival_with_attributes,
    decay,
    paper_rule,
]
"""Cases that update the state in place; the others update a copy."""


def copy_of(model: Embedder) -> Embedder:
    """Create a model in the same state."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("Engine", "AttributedEngine"):
            patch.setattr(embedder, name, lambda *_, **__: model.engine.clone())
        return Embedder(**model.get_params())


def check_unusable(model: Embedder) -> None:
    """Check that every use of the model raises `StateError`."""
    uses: list[Callable[[], Any]] = [
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
    for use in uses:
        with pytest.raises(StateError, match=r"unusable.*start over with fit"):
            use()
    assert "unusable" in repr(model)


def classify_result(model: Embedder, change: Callable[[Embedder], Any], digests: tuple[str, str]) -> str:
    """Return the result of an interrupted update: "before", "after" or "unusable"; fail for any other state."""
    if "unusable" in repr(model):
        check_unusable(model)
        return "unusable"
    assert model.digest() in digests, "a third state"
    model.check()
    if model.digest() == digests[1]:
        return "after"
    change(model)
    assert model.digest() == digests[1], "the update cannot be repeated"
    return "before"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_embedder_interrupted_at_any_line_is_complete_or_unusable(case: Callable[[], Case]) -> None:
    before, change = case()
    complete = copy_of(before)
    change(complete)
    digests = before.digest(), complete.digest()

    def interrupt(number: int) -> tuple[Embedder, bool]:
        model, error = copy_of(before), ERRORS[number % len(ERRORS)]
        with suppress(*ERRORS), raise_at_line(number, error("at a line"), in_library) as injection:
            change(model)
        return model, injection.raised

    results = set()
    for number in spread(lambda number: interrupt(number)[1]):
        model, _ = interrupt(number)
        results.add(classify_result(model, change, digests))
    assert "before" in results
    assert ("unusable" in results) == (case in IN_PLACE)
    model.fit(BATCHES[0])
    assert model.digest() == Embedder(**model.get_params()).fit(BATCHES[0]).digest()


def test_embedder_that_is_unusable_is_usable_again_after_set_params(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise MemoryError

    model = after(1)
    with monkeypatch.context() as patch:
        patch.setattr(RippleRule, "apply", fail)  # the graph has been updated by then, the vectors have not
        with pytest.raises(MemoryError):
            model.partial_fit(BATCHES[2])
    check_unusable(model)
    assert model.set_params(dim=3).ids == []
    assert model.partial_fit([(1, 2)]).sequence == 1


def test_warning_turned_into_an_error_is_raised_after_the_batch() -> None:
    model = Embedder(dim=3, threads=1).fit([(1, 2), (2, 3)])
    with pytest.raises(SelfLoopWarning):
        model.partial_fit([("x", "x"), ("x", 1)])
    assert (model.sequence, "x" in model) == (1, True)
    fitted = Embedder(dim=3, threads=1)
    with pytest.raises(SelfLoopWarning):
        fitted.fit([(1, 1), (1, 2)])
    assert fitted.ids == [1, 2]


# ------------------------------------------------------------------ failed allocations


def fail_allocations(names: list[str]) -> None:
    """Let one allocation fail, for each of many, and print the results. For a separate process."""
    from failing_memory import FailingAllocator

    correction_schedule.SPREAD_VERTICES = 1
    allocator = FailingAllocator()
    for name in names:
        before, change = globals()[name]()
        complete = copy_of(before)
        with allocator.failing(-1):
            change(complete)
        count, digests, results = allocator.allocations, (before.digest(), complete.digest()), list[str]()
        assert count > 5, name
        for number in range(0, count, max(1, count // MAX_INTERRUPTS)):
            model = copy_of(before)
            with (
                suppress(MemoryError, SystemError),
                allocator.failing(number),
            ):  # SystemError: NumPy failed without setting an exception
                change(model)
            results.append(classify_result(model, change, digests))
        assert {"before"} <= set(results), (name, results)
        print(name, len(results), {result: results.count(result) for result in set(results)}, flush=True)


@pytest.mark.skipif(sys.platform != "linux", reason="replaces NumPy's allocator by that of the C library")
def test_embedder_with_a_failed_allocation_is_complete_or_unusable(
    record_property: Callable[[str, object], None],
) -> None:
    names = [case.__name__ for case in CASES]
    code = f"import os, test_interrupted as t; t.fail_allocations({names}); os._exit(0)"
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    limit = 300 if MAX_INTERRUPTS <= 40 else None  # seconds
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=limit,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    assert "unusable" in done.stdout
    record_property("allocations", sum(int(line.split()[1]) for line in done.stdout.splitlines()))


# ------------------------------------------------------------------ sessions


def directory(path: Path, batches: int, **options: Any) -> None:
    with Session(path, **PARAMETERS | options) as session:
        for number, batch in enumerate(BATCHES[: batches + 1]):
            session.apply(batch, key=f"k{number}")


def reopened(path: Path) -> tuple[int, str]:
    with Session(path) as session:
        return session.model.sequence, session.model.digest()


@pytest.mark.parametrize(
    ("batches", "pace"),
    [
        ("simple_batch", "immediate"),
        ("batch_with_anchor", "immediate"),
        ("batch_that_replaces_all_rows", "gradual"),
        ("batch_that_begins_a_correction", "gradual"),
    ],
)
def test_session_interrupted_at_any_line_closes_and_reopens_with_its_journal(
    batches: str, pace: str, tmp_path: Path
) -> None:
    options = {"anchor_pace": pace, "snapshot_every": 1_000}
    wanted: dict[str, Callable[[Session], bool]] = {
        "simple_batch": lambda session: session.model.sequence == 3,
        "batch_with_anchor": lambda session: session.model.engine.anchors == 2,  # the first was the start
        "batch_that_replaces_all_rows": lambda session: session.model.engine.anchors == 2,
        "batch_that_begins_a_correction": lambda session: session.model.engine.correction is not None,
    }
    with Session(tmp_path / "all", **PARAMETERS | options) as session:
        number = next(at for at, batch in enumerate(BATCHES) if session.apply(batch) and wanted[batches](session))
    directory(tmp_path / "before", number - 1, **options)
    directory(tmp_path / "after", number, **options)
    states = dict(map(reopened, (tmp_path / "before", tmp_path / "after")))

    def interrupt(line: int) -> tuple[bool, bool]:
        """Return whether the line exists, and whether the session is still usable."""
        place = tmp_path / "interrupted"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(tmp_path / "before", place)
        session, error = Session(place), ERRORS[line % len(ERRORS)]
        try:
            with suppress(*ERRORS), raise_at_line(line, error("at a line"), in_library) as injection:
                session.apply(BATCHES[number], key="k")
            with suppress(StateError):
                known = session.find_key("k")
                assert (known is not None) == (
                    session.model.sequence == number + 1
                )  # never reported as applied by mistake
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

    usable = [interrupt(line)[1] for line in spread(lambda line: interrupt(line)[0])]
    assert {True, False} == set(usable)


def test_session_with_a_failed_solver_closes_and_confirms_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise np.linalg.LinAlgError("no convergence")

    session = Session(tmp_path / "state", anchor_pace="immediate", **PARAMETERS)
    session.apply(BATCHES[0], key="k0")
    with monkeypatch.context() as patch:
        patch.setattr(anchor, "correct_bases", fail)
        applied = 0
        with suppress(np.linalg.LinAlgError):
            for applied, batch in enumerate(BATCHES[1:], 1):
                session.apply(batch, key=f"k{applied}")
        assert 0 < applied < len(BATCHES) - 1
        for call in (
            lambda: session.apply(BATCHES[applied], key=f"k{applied}"),
            lambda: session.find_key(f"k{applied}"),
        ):
            with pytest.raises(StateError, match="Open the directory again"):
                call()
        session.close()
    directory(tmp_path / "clean", applied, anchor_pace="immediate")
    assert reopened(tmp_path / "state") == reopened(tmp_path / "clean")


def test_listener_that_is_interrupted_closes_the_session(tmp_path: Path) -> None:
    """A consumer may have missed a batch, and would get wrong changes from then on."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with Session(tmp_path / "state", dim=3) as session:
        session.add_listener(interrupt)
        with pytest.raises(KeyboardInterrupt):
            session.apply([("a", "b")])
        with pytest.raises(StateError):
            session.apply([("b", "c")])
    assert reopened(tmp_path / "state")[0] == 1


def test_listeners_are_all_called_if_one_fails(tmp_path: Path) -> None:
    received = list[int]()

    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    with Session(tmp_path / "state", dim=3) as session:
        session.add_listener(fail)
        session.add_listener(lambda _, changes: received.append(changes.sequence))
        with pytest.raises(ZeroDivisionError):
            session.apply_many([Batch.of(["a"], ["b"]), Batch.of(["b"], ["c"])])
        assert received == [1, 2]
        assert session.find_key("?") is None


def test_warning_turned_into_an_error_does_not_hide_changes_from_listeners(tmp_path: Path) -> None:
    received = dict[int, list[Any]]()
    with Session(tmp_path / "state", dim=3) as session:
        session.add_listener(lambda _, changes: received.update({changes.sequence: changes.ids}))
        with pytest.raises(SelfLoopWarning):
            session.apply_many([Batch.of(["a", "a"], ["a", "b"]), Batch.of(["b"], ["c"])])
        assert session.apply([("c", "d")]).sequence == 3
    assert [set(received[number]) >= names for number, names in ((1, {"a", "b"}), (2, {"c"}), (3, {"d"}))] == [True] * 3
