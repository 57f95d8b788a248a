"""Link predictors on a small stream: what each remembers, and the order of scores and updates."""

from __future__ import annotations

import numpy as np
import pytest

from ripplevec.lab.temporal import TimedStream, evaluate, make_negatives
from ripplevec.lab.temporal.predictors import (
    CosinePredictor,
    CountingPredictor,
    EdgeBank,
    Popularity,
    Recency,
    ScorerPredictor,
)
from ripplevec.lab.temporal.streamwalk import StreamWalkPredictor

SRC, DST, TIME = np.array([1, 2, 1, 1]), np.array([5, 6, 7, 5]), np.array([0, 10, 20, 30])
CANDIDATES = np.array([[5, 6, 7, 8]])


def scores_after(predictor: CountingPredictor, source: int) -> list[float]:
    predictor.process(SRC, DST, TIME, None, learn=True, one_by_one=False)
    return predictor.process(
        np.array([source]), np.array([8]), np.array([31]), CANDIDATES, learn=False, one_by_one=False
    )[0].tolist()


def test_edge_bank_remembers_pairs() -> None:
    assert scores_after(EdgeBank(), 1) == [1, 0, 1, 0]
    assert scores_after(EdgeBank(), 2) == [0, 1, 0, 0]


def test_edge_bank_with_window_forgets_old_pairs() -> None:
    """The window is the latest 15 % of the training part, 4.5 of 30: it contains the last event only."""
    assert scores_after(EdgeBank(window=True), 1) == [1, 0, 0, 0]
    assert scores_after(EdgeBank(window=True), 2) == [0, 0, 0, 0]


def test_popularity_counts_events_of_targets() -> None:
    assert scores_after(Popularity(), 1) == [2, 1, 1, 0]
    decayed = scores_after(Popularity(half_life=1), 1)
    assert decayed[0] > decayed[2] > decayed[1] > decayed[3] == 0
    assert decayed[2] == pytest.approx(2 * decayed[1])


def test_popularity_decays_alike_in_one_batch_and_in_many() -> None:
    single, batched = Popularity(half_life=3), Popularity(half_life=3)
    batched.record(SRC, DST, TIME)
    for i in range(len(SRC)):
        single.record(SRC[i : i + 1], DST[i : i + 1], TIME[i : i + 1])
    scores = [predictor.score(np.array([1]), CANDIDATES) for predictor in (single, batched)]
    np.testing.assert_allclose(scores[0] / scores[0].max(), scores[1] / scores[1].max())


def test_recency_ranks_pairs_before_other_targets() -> None:
    scores = scores_after(Recency(), 1)
    assert sorted(range(4), key=lambda i: -scores[i]) == [0, 2, 1, 3]


def test_counting_predictors_score_event_by_event_on_request() -> None:
    lines = np.repeat(CANDIDATES, 4, axis=0)
    batch, single = (
        EdgeBank().process(SRC, DST, TIME, lines, learn=False, one_by_one=one_by_one) for one_by_one in (False, True)
    )
    assert not batch.any()
    assert single.tolist() == [[0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 1, 0]]


@pytest.fixture(scope="module")
def habits() -> TimedStream:
    """Each of 40 sources returns to its own target, or a neighboring one, of 40."""
    rng = np.random.default_rng(0)
    src = rng.integers(0, 40, 3000)
    return TimedStream("habits", src, 40 + (src + rng.integers(0, 3, 3000)) % 40, np.arange(3000))


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize(
    ("create", "least"),
    [
        (lambda: ScorerPredictor(dim=8, threads=1), 0.5),
        (lambda: CosinePredictor(dim=8, threads=1), 0.3),
        (lambda: StreamWalkPredictor(dim=16), 0.3),
        (lambda: EdgeBank(), 0.3),
    ],
)
def test_predictors_learn_habits(habits: TimedStream, create: object, least: float, one_by_one: bool) -> None:
    """A guess among the target and 20 negatives has an MRR of 0.17."""
    negatives = make_negatives(habits, "test", 20)
    assert evaluate(create(), habits, "test", negatives, one_by_one=one_by_one).mrr > least  # type: ignore[operator]


def test_scorer_predictor_scores_batches_from_the_state_before_them(habits: TimedStream) -> None:
    predictors = [ScorerPredictor(dim=8, threads=1) for _ in range(2)]
    scores = []
    for predictor, one_by_one in zip(predictors, (False, True), strict=True):
        predictor.process(habits.src[:400], habits.dst[:400], habits.time[:400], None, learn=True, one_by_one=False)
        candidates = np.tile(np.arange(40, 80), (100, 1))
        part = slice(400, 500)
        scores.append(
            predictor.process(
                habits.src[part], habits.dst[part], habits.time[part], candidates, learn=False, one_by_one=one_by_one
            )
        )
    np.testing.assert_allclose(scores[0][0], scores[1][0], atol=1e-6)  # the first event has the same state
    assert not np.allclose(scores[0][50:], scores[1][50:])
    assert predictors[0].scorer.weights == predictors[1].scorer.weights
