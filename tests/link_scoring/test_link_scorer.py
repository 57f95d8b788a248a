"""The link scorer: what it learns, calibration, determinism, saving, errors, and models on shards and in sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder, LinkScorer, Session
from ripplevec.batch import Batch, Op
from ripplevec.cluster.sharded_embedder import IN_PROCESS, ShardedEmbedder
from ripplevec.errors import FormatError, InvalidValueError, UnknownVertexError
from ripplevec.link_scoring.link_scorer import SAVED_KIND
from ripplevec.util.checked_directory import read_arrays, write_arrays

SOURCES, TARGETS = 40, 25


def make_stream(events: int, seed: int = 0) -> np.ndarray:
    """Return events of sources 0 … 39 with targets 100 … 124: mostly the last target again, else a popular one."""
    rng = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, TARGETS + 1)
    latest = rng.integers(0, TARGETS, SOURCES)
    pairs = []
    for source in rng.integers(0, SOURCES, events).tolist():
        if rng.random() > 0.6:
            latest[source] = rng.choice(TARGETS, p=popularity / popularity.sum())
        pairs.append((source, 100 + latest[source]))
    return np.array(pairs)


def follow(scorer: LinkScorer, events: np.ndarray, size: int = 50) -> None:
    for first in range(0, len(events), size):
        scorer.partial_fit(events[first : first + size])


@pytest.fixture(scope="module")
def trained() -> LinkScorer:
    scorer = LinkScorer(Embedder(dim=8, threads=1))
    follow(scorer, make_stream(4000))
    return scorer


def test_scores_are_calibrated_on_later_events() -> None:
    """Among pairs with a score near p, a share p of them is the next event of its source."""
    scorer, stream = LinkScorer(Embedder(dim=8, threads=1)), make_stream(8000)
    follow(scorer, stream[:4000])
    candidates = np.arange(100, 100 + TARGETS)
    predictions = [
        scorer.partial_fit(stream[first : first + 50], learn=False, candidates=candidates)
        for first in range(4000, 8000, 50)
    ]
    scores = np.concatenate([prediction.candidate_scores for prediction in predictions])
    outcomes = stream[4000:, 1][:, None] == candidates
    assert scores.sum(axis=1).mean() == pytest.approx(1, abs=0.2)
    for low, high in ((0, 0.02), (0.02, 0.1), (0.4, 1)):
        chosen = (scores >= low) & (scores < high)
        assert chosen.sum() > 1000
        assert outcomes[chosen].mean() == pytest.approx(scores[chosen].mean(), abs=0.05)
    surprise = -np.log(scores[outcomes]).mean()
    assert surprise < 0.8 * np.log(TARGETS)  # better than a guess among all targets


@pytest.mark.parametrize("update", ["event", "batch"])
def test_calibration_brings_later_scores_closer_to_what_happens(tmp_path: Path, update: str) -> None:
    """On a stretch that nothing is learned from, scores are compared with shares, with the correction and without."""
    stream, candidates, errors = make_stream(6000), np.arange(100, 100 + TARGETS), {}
    scorer = LinkScorer(Embedder(dim=8, threads=1), update=update)  # type: ignore[arg-type]
    follow(scorer, stream[:4000])
    scorer.save(tmp_path / "scorer")
    for corrected in (True, False):
        loaded = LinkScorer.load(tmp_path / "scorer")
        if not corrected:
            for counts in loaded._state.calibration:
                counts[:] = 0
        batches = (stream[first : first + 50] for first in range(4000, 6000, 50))
        predictions = [loaded.partial_fit(batch, learn=False, candidates=candidates) for batch in batches]
        scores = np.concatenate([prediction.candidate_scores for prediction in predictions])
        errors[corrected] = reliability_error(scores, stream[4000:, 1][:, None] == candidates)
    assert errors[True] < 0.8 * errors[False]
    assert errors[True] < 0.2


def reliability_error(scores: np.ndarray, outcomes: np.ndarray) -> float:
    """Return the sum over ranges of scores of |expected − observed| events, as a share of all events."""
    ranges = np.digitize(scores, [0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
    excess = scores - outcomes
    return sum(abs(excess[ranges == number].sum()) for number in range(12)) / len(scores)


def test_first_batch_has_negative_examples() -> None:
    """A whole history in one batch: unknown pairs must not become certain."""
    scorer = LinkScorer(Embedder(dim=4, threads=1))
    scorer.partial_fit(make_stream(1000))
    assert scorer.score_candidates([0], range(100, 100 + TARGETS)).sum() < 4


def test_scores_prefer_repeated_recent_and_popular_targets(trained: LinkScorer) -> None:
    stream = make_stream(4000)
    latest = stream[stream[:, 0] == 5][-1, 1]
    scores = trained.score_candidates([5], range(100, 100 + TARGETS))[0]
    assert trained.recommend(5, 1)[0][1] == scores.max()
    assert scores[latest - 100] > 1 / TARGETS
    popular, rare = trained.score([("new", 100), ("new", 100 + TARGETS - 1)])
    assert popular > rare
    assert trained.weights["latest"] > 0


def test_prediction_scores_each_event_before_it_is_observed() -> None:
    """One batch gives the scores of single batches, except for vectors, which are those before the batch."""
    stream = make_stream(300)
    single, batched = (LinkScorer(Embedder(dim=4, threads=1, start_size=10_000)) for _ in range(2))  # no vectors
    expected = [single.partial_fit(stream[i : i + 1], learn=False, candidates=[100, 101]) for i in range(300)]
    found = batched.partial_fit(stream, learn=False, candidates=[100, 101])
    np.testing.assert_array_equal(found.scores, [prediction.scores[0] for prediction in expected])
    np.testing.assert_array_equal(
        found.candidate_scores, np.concatenate([prediction.candidate_scores for prediction in expected])
    )


def test_candidates_per_event_equal_shared_candidates(trained: LinkScorer) -> None:
    ids = np.array([100, 107, 999, 3])
    shared = trained.score_candidates([0, 1, "new"], ids)
    own = trained.score_candidates([0, 1, "new"], np.tile(ids, (3, 1)))
    np.testing.assert_allclose(shared, own, atol=1e-6)
    pairs = [(source, target) for source in (0, 1, "new") for target in ids.tolist()]
    np.testing.assert_allclose(trained.score(pairs).reshape(3, 4), shared, atol=1e-6)
    np.testing.assert_allclose(trained.surprise(pairs), -np.log(shared.ravel()), rtol=1e-4)


def test_recommend_ranks_targets_and_excludes_neighbors(trained: LinkScorer) -> None:
    names = [f"{name}" for name, _ in trained.recommend(5, 1000)]
    assert sorted(names) == sorted(str(100 + i) for i in range(TARGETS))
    scores = [score for _, score in trained.recommend(5, 1000)]
    assert scores == sorted(scores, reverse=True)
    neighbors = {name for name, _ in trained.model.neighbors(5)}
    found = {name for name, _ in trained.recommend(5, 1000, exclude="neighbors", among=range(100, 130))}
    assert found == set(range(100, 130)) - neighbors
    assert len(trained.recommend("new", 3)) == 3


def test_same_seed_and_batches_give_the_same_bits_and_another_seed_others() -> None:
    weights = []
    for seed in (0, 0, 1):
        scorer = LinkScorer(Embedder(dim=4, threads=1), seed=seed)
        follow(scorer, make_stream(500))
        weights.append(list(scorer.weights.values()))
    assert weights[0] == weights[1] != weights[2]


def test_without_learning_weights_stay_and_history_follows(trained: LinkScorer, tmp_path: Path) -> None:
    trained.save(tmp_path / "scorer")
    scorer = LinkScorer.load(tmp_path / "scorer")
    before, weights = scorer.score([(0, 124)])[0], scorer.weights
    scorer.partial_fit([(0, 124)] * 5, learn=False)
    assert scorer.weights == weights
    assert scorer.score([(0, 124)])[0] > before


def test_loaded_scorer_continues_like_the_saved_one(trained: LinkScorer, tmp_path: Path) -> None:
    trained.save(tmp_path / "first")
    scorers = [LinkScorer.load(tmp_path / "first") for _ in range(2)]
    follow(scorers[0], make_stream(200, seed=9))
    scorers[0].save(tmp_path / "second")
    follow(scorers[1], make_stream(200, seed=9))
    scorers[0] = LinkScorer.load(tmp_path / "second")
    for scorer in scorers:
        follow(scorer, make_stream(200, seed=10))
    assert scorers[0].weights == scorers[1].weights
    assert scorers[0].recommend(3, 20) == scorers[1].recommend(3, 20)
    assert scorers[0].model.digest() == scorers[1].model.digest()


def test_load_of_an_older_version_raises_and_says_what_to_do(trained: LinkScorer, tmp_path: Path) -> None:
    trained.save(tmp_path / "scorer")
    arrays, meta = read_arrays(tmp_path / "scorer", kind=SAVED_KIND)
    del meta["scorer_version"]  # the first version had none
    write_arrays(tmp_path / "scorer", arrays, meta, kind=SAVED_KIND)
    with pytest.raises(FormatError, match=r"expected a scorer of version 3, got version 1.*again from its stream"):
        LinkScorer.load(tmp_path / "scorer")


def test_damaged_history_raises_format_error(trained: LinkScorer, tmp_path: Path) -> None:
    for name in ("history_partner", "targets"):
        trained.save(tmp_path / "scorer")
        arrays, meta = read_arrays(tmp_path / "scorer", kind=SAVED_KIND)
        damaged = arrays | {name: np.full_like(arrays[name], 10**9)}
        write_arrays(tmp_path / "scorer", damaged, meta, kind=SAVED_KIND)
        with pytest.raises(FormatError, match=r"expected -?[01] to"):
            LinkScorer.load(tmp_path / "scorer")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ids_text", 0xFF),
        ("history_events", -1.0),
        ("history_events", np.nan),
        ("history_repeats", -3e38),
        ("history_tick", -1),
        ("history_tick", 2**62),
        ("learned_weights", np.nan),
        ("learned_weights", 1e300),
        ("learned_covariance", np.inf),
        ("learned_covariance", -1.0),
        ("learned_examples", np.nan),
        ("learned_occurred", -1.0),
    ],
)
def test_damaged_values_raise_format_error(trained: LinkScorer, tmp_path: Path, name: str, value: float) -> None:
    trained.partial_fit([("ann", "tea")])
    trained.save(tmp_path / "scorer")
    arrays, meta = read_arrays(tmp_path / "scorer", kind=SAVED_KIND)
    damaged = arrays[name].copy()
    damaged.reshape(-1)[0] = value
    write_arrays(tmp_path / "scorer", arrays | {name: damaged}, meta, kind=SAVED_KIND)
    with pytest.raises(FormatError):
        LinkScorer.load(tmp_path / "scorer")


@pytest.mark.parametrize("key", ["events", "negatives", "seed", "update"])
@pytest.mark.parametrize("value", [None, "x", -1, 2**70, 1.5, True, []])
def test_damaged_settings_raise_format_error(trained: LinkScorer, tmp_path: Path, key: str, value: Any) -> None:
    trained.save(tmp_path / "scorer")
    arrays, meta = read_arrays(tmp_path / "scorer", kind=SAVED_KIND)
    write_arrays(tmp_path / "scorer", arrays, meta | {key: value}, kind=SAVED_KIND)
    with pytest.raises(FormatError):
        LinkScorer.load(tmp_path / "scorer")


def test_scorer_by_batch_predicts_from_the_state_before_the_batch(tmp_path: Path) -> None:
    scorer = LinkScorer(Embedder(dim=8, threads=1), update="batch")
    follow(scorer, make_stream(1000))
    scorer.save(tmp_path / "scorer")
    assert LinkScorer.load(tmp_path / "scorer").update == "batch"
    batch = make_stream(60, seed=4)
    expected = scorer.score(batch)
    candidates = scorer.score_candidates(batch[:, 0], [100, 101])
    prediction = scorer.partial_fit(batch, candidates=[100, 101], learn=False)
    np.testing.assert_allclose(prediction.scores, expected, atol=1e-6)
    np.testing.assert_allclose(prediction.candidate_scores, candidates, atol=1e-6)
    assert not np.allclose(scorer.score(batch), expected)


def test_load_of_something_else_raises_format_error(trained: LinkScorer, tmp_path: Path) -> None:
    trained.model.save(tmp_path / "model")
    with pytest.raises(FormatError):
        LinkScorer.load(tmp_path / "model")


def test_rejected_batch_leaves_the_scorer_unchanged(trained: LinkScorer, tmp_path: Path) -> None:
    trained.save(tmp_path / "scorer")
    scorer = LinkScorer.load(tmp_path / "scorer")
    pairs = [(0, 100), (1, 101)]
    before, weights = scorer.score(pairs), scorer.weights
    with pytest.raises(UnknownVertexError):
        scorer.partial_fit(Batch.of([0, 1, 500], [100, 101, 501], op=[Op.ADD, Op.ADD, Op.REMOVE]))
    assert scorer.weights == weights
    np.testing.assert_array_equal(scorer.score(pairs), before)


def test_removals_are_applied_to_the_model_and_not_scored() -> None:
    scorer = LinkScorer(Embedder(dim=4, threads=1))
    scorer.partial_fit(make_stream(200))
    vertices = len(scorer.model)
    prediction = scorer.partial_fit(Batch.of([0, 1], [0, 101], op=[Op.REMOVE_VERTEX, Op.ADD]))
    assert prediction.scores.shape == (1,)
    assert len(scorer.model) == vertices - 1
    assert np.isfinite(scorer.score([(0, 101)])).all()


def test_scorer_on_shards_equals_one_machine() -> None:
    stream = make_stream(400)
    parameters = {"dim": 4, "threads": 1, "start_size": 20, "anchor_growth": 0}
    scorers = [
        LinkScorer(Embedder(**parameters)),
        LinkScorer(ShardedEmbedder(shards=2, address=IN_PROCESS, **parameters)),
    ]
    for scorer in scorers:
        follow(scorer, stream)
    assert scorers[0].weights == pytest.approx(scorers[1].weights, abs=1e-6)
    assert scorers[0].score([(0, 100)]) == pytest.approx(scorers[1].score([(0, 100)]), abs=1e-6)
    with pytest.raises(InvalidValueError, match="one machine"):
        scorers[1].save("unused")


def test_scorer_applies_batches_through_a_session(tmp_path: Path) -> None:
    with Session(tmp_path / "state", dim=4, threads=1) as session:
        scorer = LinkScorer(session.model, apply=session.apply)
        follow(scorer, make_stream(200))
        assert session.model.sequence == 4
        assert scorer.recommend(0, 2)


def test_bad_values_raise(trained: LinkScorer) -> None:
    for bad in (
        lambda: LinkScorer(Embedder(dim=2), negatives=0),
        lambda: LinkScorer(Embedder(dim=2), seed=-1),
        lambda: LinkScorer(Embedder(dim=2), update="day"),  # type: ignore[arg-type]
        lambda: trained.recommend(0, 0),
        lambda: trained.recommend(0, exclude="self"),  # type: ignore[arg-type]
        lambda: trained.score_candidates([0, 1], np.array([[100, 101]])),
    ):
        with pytest.raises(InvalidValueError, match="expected"):
            bad()
