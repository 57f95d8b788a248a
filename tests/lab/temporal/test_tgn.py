"""TGN of PyTorch Geometric: what it learns on a tiny stream, its budget, and the order of scores and updates."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="not installed: pip install '.[torch]'")
pytest.importorskip("torch_geometric", reason="not installed: pip install '.[torch]'")

from ripplevec.lab.temporal import TimedStream, evaluate, make_negatives
from ripplevec.lab.temporal.tgn import TgnPredictor


@pytest.fixture(scope="module")
def groups() -> TimedStream:
    """Twenty sources of even and odd number, which choose among ten targets of the same kind."""
    rng = np.random.default_rng(0)
    src = rng.integers(0, 20, 1500)
    return TimedStream("groups", src, 20 + src % 2 + 2 * rng.integers(0, 5, 1500), np.arange(1500))


def test_tgn_learns_which_targets_a_source_chooses(groups: TimedStream) -> None:
    """A guess among ten targets has an MRR of 0.29; among the five of the right kind, 0.46."""
    negatives = make_negatives(groups, "test", 9)
    predictor = TgnPredictor(30, epochs=60, seed=0)
    assert evaluate(predictor, groups, "test", negatives).mrr > 0.36
    assert predictor.epochs_done == 60


def test_tgn_is_deterministic_and_stops_at_its_budget(groups: TimedStream) -> None:
    negatives = make_negatives(groups, "test", 9)
    results = []
    for _ in range(2):
        predictor = TgnPredictor(30, seconds=1e-9, seed=3)
        results.append(evaluate(predictor, groups, "test", negatives).reciprocal_ranks)
        assert predictor.epochs_done == 1
    np.testing.assert_array_equal(*results)


def test_tgn_scores_do_not_depend_on_the_events_of_their_batch(groups: TimedStream) -> None:
    candidates = np.tile(np.arange(20, 30), (50, 1))
    scores = []
    for targets in (groups.dst[500:550], np.full(50, 29)):
        predictor = TgnPredictor(30, epochs=1, seed=0)
        predictor.process(groups.src[:500], groups.dst[:500], groups.time[:500], None, learn=True, one_by_one=False)
        events = groups.src[500:550], targets, groups.time[500:550]
        scores.append(predictor.process(*events, candidates, learn=False, one_by_one=False))
        after = predictor.process(*events, candidates, learn=False, one_by_one=False)
        assert not np.allclose(after, scores[-1])
    np.testing.assert_array_equal(*scores)


def test_tgn_refuses_updates_event_by_event(groups: TimedStream) -> None:
    with pytest.raises(ValueError, match="every batch"):
        TgnPredictor(30).process(groups.src, groups.dst, groups.time, None, learn=True, one_by_one=True)
