"""The protocol of the Temporal Graph Benchmark: parts, negatives, ranks, and what a predictor may know."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import rankdata

from ripplevec.lab.temporal import TimedStream, evaluate, make_negatives, reciprocal_ranks
from ripplevec.lab.temporal.predictors import Popularity
from ripplevec.lab.temporal.protocol import BATCH_SIZE


@pytest.fixture(scope="module")
def stream() -> TimedStream:
    """2,000 events of 30 sources with 60 targets; some happen at the same time."""
    rng = np.random.default_rng(0)
    time = np.sort(rng.integers(0, 1000, 2000))
    return TimedStream("test", rng.integers(0, 30, 2000), rng.integers(30, 90, 2000), time)


def test_parts_split_the_stream_by_quantiles_of_time(stream: TimedStream) -> None:
    validation, test = stream.bounds()
    limits = np.quantile(stream.time, [0.7, 0.85])
    assert stream.time[validation - 1] <= limits[0] < stream.time[validation]
    assert stream.time[test - 1] <= limits[1] < stream.time[test]


def test_reciprocal_ranks_equal_mean_ranks_of_ties() -> None:
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 5, (200, 21)).astype(float)
    expected = 1 / (22 - rankdata(scores, axis=1)[:, 0])
    np.testing.assert_allclose(reciprocal_ranks(scores[:, 0], scores[:, 1:]), expected)


def test_reciprocal_ranks_equal_those_of_the_benchmark() -> None:
    """MRR of `tgb.linkproppred.evaluate.Evaluator` of py-tgb 2.3.0 on the same scores, half of them with many ties."""
    rng = np.random.default_rng(0)
    positive, negative = rng.integers(0, 6, 2000).astype(float) / 5, rng.integers(0, 6, (2000, 50)).astype(float) / 5
    positive[:1000], negative[:1000] = rng.random(1000), rng.random((1000, 50))
    ranks = reciprocal_ranks(positive, negative)
    assert ranks.mean() == pytest.approx(0.08388619124889374, abs=1e-7)
    assert (1 / ranks <= 10).mean() == pytest.approx(0.19900000095367432, abs=1e-7)


def test_reciprocal_ranks_of_a_predictor_equal_those_of_py_tgb(stream: TimedStream) -> None:
    evaluator = pytest.importorskip("tgb.linkproppred.evaluate", reason="py-tgb is not installed")
    recorder, negatives = ScoreRecorder(), make_negatives(stream, "test", 20)
    evaluation = evaluate(recorder, stream, "test", negatives)
    scores = np.concatenate(recorder.scores)
    given = {"y_pred_pos": scores[:, 0], "y_pred_neg": scores[:, 1:], "eval_metric": ["mrr", "hits@"]}
    expected = evaluator.Evaluator("tgbl-wiki").eval(given)
    assert evaluation.mrr == pytest.approx(expected["mrr"], abs=1e-6)
    assert evaluation.hits_at_10 == pytest.approx(expected["hits@10"], abs=1e-6)


class ScoreRecorder:
    """Popularity with many ties; it keeps the scores it has returned."""

    def __init__(self) -> None:
        self.popularity, self.scores = Popularity(half_life=20), []

    def process(self, src: Any, dst: Any, time: Any, candidates: Any, *, learn: bool, one_by_one: bool) -> Any:
        scores = self.popularity.process(src, dst, time, candidates, learn=learn, one_by_one=one_by_one).round(1)
        self.scores += [] if candidates is None else [scores]
        return scores


@pytest.mark.parametrize(("part", "count"), [("val", 10), ("test", 10), ("test", 58), ("test", 999)])
def test_negatives_equal_those_of_py_tgb(stream: TimedStream, part: str, count: int, tmp_path: Path) -> None:
    """58 is about the number of other targets, 999 more than there are."""
    generator = pytest.importorskip("tgb.linkproppred.negative_generator", reason="py-tgb or PyG is not installed")
    torch = pytest.importorskip("torch")
    columns = [torch.from_numpy(column) for column in (stream.src, stream.dst, stream.time)]
    validation, test = stream.bounds()
    training, *parts = (
        generator.TemporalData(src=columns[0][events], dst=columns[1][events], t=columns[2][events])
        for events in (slice(0, validation), slice(validation, test), slice(test, None))
    )
    first, last = int(stream.targets[0]), int(stream.targets[-1])
    sampler = generator.NegativeEdgeGenerator("x", first, last, count, "hist_rnd", 42, historical_data=training)
    for name, data in zip(("val", "test"), parts, strict=True):
        sampler.generate_negative_samples(data, name, str(tmp_path))
    expected = pickle.loads((tmp_path / f"x_{part}_ns.pkl").read_bytes())
    events = slice(validation, test) if part == "val" else slice(test, None)
    keys = zip(stream.src[events].tolist(), stream.dst[events].tolist(), stream.time[events].tolist(), strict=True)
    for key, drawn in zip(keys, make_negatives(stream, part, count), strict=True):
        assert drawn.tolist() == expected[key].tolist(), key


def test_missing_negatives_do_not_count() -> None:
    assert reciprocal_ranks(np.array([0.5]), np.array([[0.9, np.nan, 0.1, np.nan]])) == pytest.approx(1 / 2)


@pytest.mark.parametrize("part", ["val", "test"])
def test_negatives_are_half_historical_and_never_true(stream: TimedStream, part: str) -> None:
    validation, test = stream.bounds()
    first, last = (validation, test) if part == "val" else (test, 2000)
    negatives = make_negatives(stream, part, 10)
    assert len(negatives) == last - first
    for i, drawn in enumerate(negatives, first):
        same = (stream.src == stream.src[i]) & (stream.time == stream.time[i])
        history = stream.dst[:validation][stream.src[:validation] == stream.src[i]]
        assert not set(drawn.tolist()) & set(stream.dst[same & (np.arange(2000) >= first)].tolist())
        assert len(set(drawn.tolist())) == 10
        assert np.isin(drawn[:5], history).all()
        assert not np.isin(drawn[5:], history).any()


def test_negatives_are_all_targets_if_there_are_not_enough(stream: TimedStream) -> None:
    for i, drawn in enumerate(make_negatives(stream, "test", 999), stream.bounds()[1]):
        same = (stream.src == stream.src[i]) & (stream.time == stream.time[i])
        assert sorted(drawn.tolist()) == sorted(set(range(30, 90)) - set(stream.dst[same].tolist()))


def test_published_negatives_take_precedence(stream: TimedStream) -> None:
    test = stream.bounds()[1]
    keys = zip(stream.src[test:].tolist(), stream.dst[test:].tolist(), stream.time[test:].tolist(), strict=True)
    published = {"test": {key: np.array([31.0, 32.0]) for key in keys}}
    given = TimedStream("test", stream.src, stream.dst, stream.time, published)
    assert all(drawn.tolist() == [31, 32] for drawn in make_negatives(given, "test", 10))


class Recorder:
    """A predictor that records what it is given, and scores a candidate by its id."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, bool, bool]] = []

    def process(self, src: Any, dst: Any, time: Any, candidates: Any, *, learn: bool, one_by_one: bool) -> Any:
        self.calls.append((len(src), candidates is not None, learn))
        return np.empty((0, 0)) if candidates is None else candidates.astype(float)


@pytest.mark.parametrize("part", ["val", "test"])
def test_evaluation_learns_in_training_and_scores_in_its_part_only(stream: TimedStream, part: str) -> None:
    recorder, negatives = Recorder(), make_negatives(stream, part, 10)
    evaluation = evaluate(recorder, stream, part, negatives)
    validation, test = stream.bounds()
    first = validation if part == "val" else test
    assert sum(size for size, _, learn in recorder.calls if learn) == validation
    assert sum(size for size, scored, _ in recorder.calls if scored) == len(negatives) == len(evaluation.hits)
    assert sum(size for size, scored, _ in recorder.calls if not scored) == first == evaluation.updated
    assert not any(scored and learn for _, scored, learn in recorder.calls)
    assert max(size for size, _, _ in recorder.calls) <= BATCH_SIZE
    expected = [1 / (1 + (drawn > target).sum()) for target, drawn in zip(stream.dst[first:], negatives, strict=False)]
    np.testing.assert_allclose(evaluation.reciprocal_ranks, expected)
    assert evaluation.mrr == pytest.approx(np.mean(expected))
    assert evaluation.hits_at_10 == pytest.approx(np.mean(np.array(expected) >= 0.1))
