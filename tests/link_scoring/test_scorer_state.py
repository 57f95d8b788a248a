"""State of the link scorer: interrupted and rejected batches, and removed vertices."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interrupts import ERRORS, in_library, raise_at_line, spread

from ripplevec import Batch, Embedder, LinkScorer, Session
from ripplevec.batch import Op
from ripplevec.cluster.sharded_embedder import IN_PROCESS, ShardedEmbedder
from ripplevec.errors import FormatError, SelfLoopWarning, StateError, UnknownVertexError
from ripplevec.link_scoring.link_scorer import SAVED_KIND
from ripplevec.util.checked_directory import read_arrays, write_arrays

PAIRS = [(0, 100), (1, 101), (0, "x"), ("x", "y")]
BATCH = Batch.of([3, "x", 0, 5, "x"], [101, "y", 0, 102, 100], op=[Op.ADD, Op.ADD, Op.REMOVE_VERTEX, Op.ADD, Op.ADD])


def make_stream(events: int = 300) -> np.ndarray:
    """Return events of sources 0 … 19 with targets 100 … 109."""
    random = np.random.default_rng(0)
    return np.stack([random.integers(0, 20, events), 100 + random.integers(0, 10, events)], axis=1)


def make_scorer() -> LinkScorer:
    scorer = LinkScorer(Embedder(dim=4, threads=1))
    scorer.partial_fit(make_stream())
    return scorer


def saved_arrays(scorer: LinkScorer, directory: Path) -> dict[str, Any]:
    scorer.save(directory)
    return read_arrays(directory, kind=SAVED_KIND)[0]


def summarize(scorer: LinkScorer, directory: Path) -> tuple[Any, ...]:
    """Return everything that determines later results; free rows do not matter."""
    arrays = saved_arrays(scorer, directory)
    live = np.flatnonzero(arrays["ids_end"] != -2)
    history = {name: array[live].tobytes() for name, array in arrays.items() if name.startswith("history_")}
    learned = {name: array.tobytes() for name, array in arrays.items() if name.startswith("learned_")}
    text = arrays["ids_key"][live].tobytes(), arrays["ids_text"].tobytes(), arrays["targets"].tobytes()
    return scorer.model.digest(), history, learned, text


def in_link_scoring(file: str) -> bool:
    return "/ripplevec/link_scoring/" in file


def every_line(interrupted: Callable[[int], bool]) -> Iterator[int]:
    number = 0
    while interrupted(number):
        yield number
        number += 1


def check_unusable(scorer: LinkScorer, directory: Path) -> None:
    """Check that every use of the scorer raises `StateError`."""
    uses: list[Callable[[], Any]] = [
        lambda: scorer.partial_fit([(1, 100)]),
        lambda: scorer.score([(1, 100)]),
        lambda: scorer.score_candidates([1], [100]),
        lambda: scorer.surprise([(1, 100)]),
        lambda: scorer.recommend(1),
        lambda: scorer.weights,
        lambda: scorer.save(directory / "unusable"),
    ]
    for use in uses:
        with pytest.raises(StateError, match="unusable"):
            use()


@pytest.mark.parametrize(("where", "lines"), [(in_link_scoring, every_line), (in_library, spread)])
def test_scorer_interrupted_at_any_line_is_complete_or_unusable(
    where: Callable[[str], bool],
    lines: Callable[[Callable[[int], bool]], Iterator[int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # only for speed
    first = make_scorer()
    first.save(tmp_path / "scorer")
    complete = LinkScorer.load(tmp_path / "scorer")
    complete.partial_fit(BATCH)
    before, after = (summarize(scorer, tmp_path / "summary") for scorer in (first, complete))

    def interrupt(number: int) -> tuple[LinkScorer, bool]:
        scorer, error = LinkScorer.load(tmp_path / "scorer"), ERRORS[number % len(ERRORS)]
        with suppress(*ERRORS), raise_at_line(number, error("at a line"), where) as injection:
            scorer.partial_fit(BATCH)
        return scorer, injection.raised

    results = set()
    for number in lines(lambda number: interrupt(number)[1]):
        scorer, _ = interrupt(number)
        try:
            found = summarize(scorer, tmp_path / "summary")
        except StateError:
            check_unusable(scorer, tmp_path)
            results.add("unusable")
            continue
        assert found in (before, after), f"line {number}: a third state"
        if found == before:
            scorer.partial_fit(BATCH)
            assert summarize(scorer, tmp_path / "summary") == after, f"line {number}: the batch cannot be repeated"
        results.add("before" if found == before else "after")
    assert {"before", "unusable"} <= results


def test_scorer_rejected_batch_leaves_no_ids_and_changes_no_later_result(tmp_path: Path) -> None:
    scorers = make_scorer(), make_scorer()
    rejected = Batch.of([f"new{i}" for i in range(500)] + ["none"], [100] * 501, op=[Op.ADD] * 500 + [Op.REMOVE])
    before = summarize(scorers[0], tmp_path / "summary")
    for _ in range(3):
        with pytest.raises(UnknownVertexError):
            scorers[0].partial_fit(rejected)
        assert summarize(scorers[0], tmp_path / "summary") == before
    assert "new0" not in [target for target, _ in scorers[0].recommend(0, 1000)]
    for scorer in scorers:
        scorer.partial_fit(BATCH)
    first, second = (summarize(scorer, tmp_path / "summary") for scorer in scorers)
    assert first == second


def test_scorer_follows_a_batch_whose_warning_is_an_error(tmp_path: Path) -> None:
    scorer, silent = make_scorer(), make_scorer()
    edges = [("x", "x"), ("x", 100)]
    with pytest.raises(SelfLoopWarning):
        scorer.partial_fit(edges)
    with pytest.warns(SelfLoopWarning):
        silent.partial_fit(edges)
    assert summarize(scorer, tmp_path / "first") == summarize(silent, tmp_path / "second")


def test_scorer_follows_a_batch_of_a_session_whose_listener_fails(tmp_path: Path) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    with Session(tmp_path / "state", dim=4, threads=1) as session:
        scorer = LinkScorer(session.model, apply=session.apply)
        scorer.partial_fit(make_stream())
        session.add_listener(fail)
        before = scorer.score(PAIRS)
        with pytest.raises(ZeroDivisionError):
            scorer.partial_fit([("x", "y")] * 5)
        assert scorer.score(PAIRS)[3] > before[3]


def test_scorer_of_an_interrupted_session_is_unusable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise MemoryError

    with Session(tmp_path / "state", dim=4, threads=1) as session:
        scorer = LinkScorer(session.model, apply=session.apply)
        scorer.partial_fit(make_stream())
        with monkeypatch.context() as patch:
            patch.setattr("ripplevec.rules.ripple.RippleRule.apply", fail)
            with pytest.raises(MemoryError):
                scorer.partial_fit([("x", "y")])
        check_unusable(scorer, tmp_path)


@pytest.mark.parametrize("sharded", [False, True])
def test_scorer_reuses_the_rows_of_removed_vertices(sharded: bool, tmp_path: Path) -> None:
    parameters: dict[str, Any] = {"dim": 4, "threads": 1}
    model = ShardedEmbedder(shards=2, address=IN_PROCESS, **parameters) if sharded else Embedder(**parameters)
    scorer = LinkScorer(model)
    scorer.partial_fit(make_stream())
    for number in range(20):
        visitors = [f"visitor {number}.{i}" for i in range(30)]
        pages = [f"page {number}.{i % 7}" for i in range(30)]
        scorer.partial_fit(Batch.of(visitors, pages))
        leaving = visitors + sorted(set(pages))
        scorer.partial_fit(Batch.vertices(leaving, Op.REMOVE_VERTEX))
        assert len(scorer.recommend("new", 1000)) == 10
        assert scorer._state.ids.row_count <= 30 + 37
        np.testing.assert_allclose(scorer.score([(visitors[0], pages[0])]), scorer.score([("unknown", "none")]))
    assert len(scorer._state.ids) == len(scorer.model)


def test_scorer_vertex_in_a_reused_row_has_no_history_of_the_removed_one(tmp_path: Path) -> None:
    scorer = make_scorer()
    scorer.partial_fit([(5, 100)] * 20)
    used = scorer._state.ids.find_row(100)
    scorer.partial_fit(Batch.vertices([100], Op.REMOVE_VERTEX))
    scorer.partial_fit([(6, "fresh"), (6, "other")])
    assert scorer._state.ids.find_row("fresh") == used
    fresh, other = scorer.score([(5, "fresh"), (5, "other")])
    assert fresh == pytest.approx(other, rel=0.3)
    scorer.save(tmp_path / "scorer")
    loaded = LinkScorer.load(tmp_path / "scorer")
    np.testing.assert_array_equal(loaded.score([(5, "fresh"), (5, "other")]), [fresh, other])


def test_scorer_vertex_removed_and_added_by_one_batch_is_known(tmp_path: Path) -> None:
    scorer = make_scorer()
    scorer.partial_fit(Batch.of([0, 0], [0, 100], op=[Op.REMOVE_VERTEX, Op.ADD]))
    assert 0 in scorer.model
    assert scorer._state.ids.find_row(0) >= 0


def test_scorer_batch_does_not_copy_all_targets() -> None:
    scorer = LinkScorer(Embedder(dim=2, threads=1, anchor_growth=0, start_size=10**6))
    targets = np.arange(1, 100_001)
    scorer.partial_fit(np.stack([np.zeros_like(targets), targets], axis=1), learn=False)
    scorer.partial_fit([(0, 1)])
    tracemalloc.start()
    try:
        scorer.partial_fit([(0, 2)])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < targets.nbytes / 4


def test_scorer_saved_with_removed_vertices_continues_like_the_original(tmp_path: Path) -> None:
    scorer = make_scorer()
    scorer.partial_fit(Batch.vertices([0, 103, 7], Op.REMOVE_VERTEX))
    scorer.save(tmp_path / "scorer")
    loaded = LinkScorer.load(tmp_path / "scorer")
    for follower in (scorer, loaded):
        follower.partial_fit(Batch.of(["n", 1, 2], [101, "m", 103]))
    assert summarize(scorer, tmp_path / "first") == summarize(loaded, tmp_path / "second")


def test_scorer_saved_before_rows_were_reused_is_loaded(tmp_path: Path) -> None:
    scorer = make_scorer()
    scorer.save(tmp_path / "scorer")
    arrays, meta = read_arrays(tmp_path / "scorer", kind=SAVED_KIND)
    del arrays["history_begin"]
    write_arrays(tmp_path / "scorer", arrays, meta | {"scorer_version": 2}, kind=SAVED_KIND)
    loaded = LinkScorer.load(tmp_path / "scorer")
    np.testing.assert_array_equal(loaded.score(PAIRS), scorer.score(PAIRS))


@pytest.mark.parametrize("damaged", [[0, 0], "free"])
def test_scorer_saved_with_damaged_targets_raises_format_error(damaged: Any, tmp_path: Path) -> None:
    scorer = make_scorer()
    scorer.partial_fit(Batch.vertices([0], Op.REMOVE_VERTEX))
    scorer.save(tmp_path / "scorer")
    arrays, meta = read_arrays(tmp_path / "scorer", kind=SAVED_KIND)
    arrays["targets"] = arrays["ids_free"] if damaged == "free" else np.array(damaged)
    write_arrays(tmp_path / "scorer", arrays, meta, kind=SAVED_KIND)
    with pytest.raises(FormatError, match="at most once"):
        LinkScorer.load(tmp_path / "scorer")
