"""Kernels of the link scorer, compared with plain NumPy."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from ripplevec.link_scoring import _kernels as kernels
from ripplevec.link_scoring._calibration import KNOTS, Calibration, calibrate, compute_correction
from ripplevec.link_scoring._kernels import FEATURES, RECENT, WIDTH, Candidates, History, Regression

VERTICES = 30


def empty_history() -> History:
    return History(
        np.full((VERTICES, 2, RECENT), -1),
        np.zeros((VERTICES, 2, RECENT), np.float32),
        np.zeros((VERTICES, 2, RECENT), np.int64),
        np.zeros((VERTICES, 2), np.float32),
        np.zeros(VERTICES, np.int64),
    )


@pytest.fixture(scope="module")
def events() -> np.ndarray:
    """300 events in which sources repeat targets, and vertices are both sources and targets."""
    rng = np.random.default_rng(0)
    return np.minimum(*rng.integers(0, VERTICES, (2, 300, 2)))


def record(history: History, events: np.ndarray) -> None:
    for now, (source, target) in enumerate(events.tolist()):
        kernels.record_event(history, source, target, now)


def recent_partners(events: np.ndarray, vertex: int, side: int) -> list[int]:
    """Return the latest distinct partners of a vertex on one side, latest first."""
    partners = [event[1 - side] for event in events.tolist() if event[side] == vertex]
    return list(dict.fromkeys(reversed(partners)))[:RECENT]


def reference_features(events: np.ndarray, source: int, target: int, cosine: float) -> dict[str, float]:
    """Compute the features from the list of all events; no partner must have been forgotten."""
    now = len(events)
    times = {"pair": [], "target": []}
    for time, (src, dst) in enumerate(events.tolist()):
        if dst == target:
            times["target"].append(time)
            if src == source:
                times["pair"].append(time)
    ranks = [
        partners.index(vertex) + 1 if vertex in partners else np.inf
        for partners, vertex in (
            (recent_partners(events, source, 0), target),
            (recent_partners(events, target, 1), source),
            (recent_partners(events, source, 1), target),
        )
    ]
    common = set(recent_partners(events, source, 0)) & set(recent_partners(events, target, 1))
    decayed = {
        name: sum(2.0 ** (-(now - time) / half_life) for time in times[name])
        for name, half_life in (("pair", kernels.REPEATS_HALF_LIFE), ("target", kernels.POPULARITY_HALF_LIFE))
    }
    idle = now - max(times["target"], default=0)
    values = [1, cosine, np.log1p(decayed["pair"]), *(1 / rank for rank in ranks)]
    values += [np.log1p(decayed["target"]), np.log1p(idle / kernels.POPULARITY_HALF_LIFE)]
    values += [float(ranks[0] == 1), np.log1p(len(common))]
    return dict(zip(FEATURES, values, strict=True))


def test_features_equal_those_of_the_list_of_events(events: np.ndarray) -> None:
    few = events[np.isin(events, np.arange(6)).all(axis=1)]  # few partners, so that none is forgotten
    history, found = empty_history(), np.empty(WIDTH)
    record(history, few)
    for source in range(8):
        for target in range(8):  # the last two have no history
            kernels.fill_features(history, source, target, len(few), 0.25, found)
            expected = reference_features(few, source, target, 0.25)
            np.testing.assert_allclose(found, list(expected.values()), rtol=1e-5, err_msg=f"{source} {target}")


def test_features_of_unknown_vertices_are_those_without_history(events: np.ndarray) -> None:
    history, found, expected = empty_history(), np.empty(WIDTH), np.empty(WIDTH)
    record(history, events)
    for source, target in ((-1, 3), (3, -1), (-1, -1)):
        kernels.fill_features(history, source, target, len(events), 0.0, found)
        kernels.fill_features(empty_history(), 0, 1, len(events), 0.0, expected)
        if target == 3:
            expected[6:8] = found[6:8]  # what is known of the target alone
            assert found[6] > 0
        np.testing.assert_array_equal(found, expected)


def test_recent_partners_are_the_latest_distinct_ones(events: np.ndarray) -> None:
    history = empty_history()
    record(history, events)
    forgotten = 0
    for vertex in range(VERTICES):
        for side in (kernels.SOURCE, kernels.TARGET):
            partners = recent_partners(events, vertex, side)
            assert history.partner[vertex, side].tolist() == partners + [-1] * (RECENT - len(partners))
            forgotten += len(partners) == RECENT
    assert forgotten


def test_learning_steps_solve_the_quadratic_approximation() -> None:
    """The recursive inverse equals the inverse of the summed curvatures, and steps follow the gradient."""
    rng = np.random.default_rng(1)
    regression, work = Regression(np.zeros(WIDTH), np.eye(WIDTH)), np.empty(WIDTH)
    curvature, weights = np.eye(WIDTH), np.zeros(WIDTH)
    for _ in range(200):
        features, outcome, importance = rng.normal(size=WIDTH), float(rng.integers(2)), rng.uniform(0.5, 5)
        p = 1 / (1 + np.exp(-weights @ features))
        curvature += importance * p * (1 - p) * np.outer(features, features)
        weights = weights + np.linalg.solve(curvature, importance * (outcome - p) * features)
        kernels.learn(regression, features, outcome, importance, work)
    np.testing.assert_allclose(regression.covariance, np.linalg.inv(curvature), atol=1e-9)
    np.testing.assert_allclose(regression.weights, weights, atol=1e-9)


def test_learning_recovers_the_weights_of_a_logistic_model() -> None:
    rng = np.random.default_rng(2)
    true = rng.normal(size=WIDTH)
    regression, work = Regression(np.zeros(WIDTH), np.eye(WIDTH)), np.empty(WIDTH)
    for features in rng.normal(size=(20_000, WIDTH)):
        kernels.learn(regression, features, float(rng.random() < 1 / (1 + np.exp(-true @ features))), 1.0, work)
    np.testing.assert_allclose(regression.weights, true, atol=0.1)


def test_forgetting_inflates_the_covariance_except_for_unused_weights() -> None:
    rng = np.random.default_rng(5)
    factor = rng.normal(size=(WIDTH, WIDTH)) / 10
    before = factor @ factor.T
    before[2], before[:, 2] = 0, 0
    before[2, 2] = 1  # a weight without examples
    after = before.copy()
    kernels.forget(after)
    growth = np.where(np.arange(WIDTH) == 2, 1, np.sqrt(1 + 1 / kernels.MEMORY))
    np.testing.assert_allclose(after, before * np.outer(growth, growth))


@pytest.mark.parametrize("by_batch", [False, True])
def test_observed_events_equal_single_steps(events: np.ndarray, by_batch: bool) -> None:
    rng = np.random.default_rng(3)
    src, dst = np.ascontiguousarray(events.T)
    cosines = rng.uniform(-1, 1, len(src)).astype(np.float32)
    alternatives = Candidates(
        rng.integers(-1, VERTICES, (len(src), RECENT + 3)), rng.uniform(-1, 1, (len(src), RECENT + 3)).astype("f4")
    )
    candidates = Candidates(rng.integers(-1, VERTICES, (len(src), 4)), np.zeros((len(src), 4), np.float32))
    (history, regression, calibration), expected_state = (
        (
            empty_history(),
            Regression(np.zeros(WIDTH), np.eye(WIDTH)),
            Calibration(np.full(KNOTS, 50.0), np.linspace(0, 30, KNOTS)),
        )
        for _ in range(2)
    )
    scores = np.empty((len(src), 5))
    observed = src, dst, 7, cosines, alternatives, 2.5, candidates, by_batch, scores
    kernels.observe_events(history, regression, calibration, *observed)
    expected, counts = observe_by_single_steps(*expected_state, events, cosines, alternatives, candidates, by_batch)
    np.testing.assert_allclose(scores, expected, atol=1e-9)
    np.testing.assert_allclose(regression.weights, expected_state[1].weights, atol=1e-9)
    for found, other in zip(calibration, expected_state[2], strict=True):
        np.testing.assert_allclose(found, other, rtol=1e-9)
    assert all(np.array_equal(*columns) for columns in zip(history, expected_state[0], strict=True))
    assert min(counts["listed"], counts["other"]) > 100


def observe_by_single_steps(
    history: History,
    regression: Regression,
    calibration: Calibration,
    events: np.ndarray,
    cosines: np.ndarray,
    alternatives: Candidates,
    candidates: Candidates,
    by_batch: bool,
) -> tuple[np.ndarray, dict[str, int]]:
    """Score, learn and record with one call per example; return the scores, and how many examples were learned."""
    expected, features, work = np.empty((len(events), 5)), np.empty(WIDTH), np.empty(WIDTH)
    correction = compute_correction(calibration)
    counts: defaultdict[str, int] = defaultdict(int)
    for i, (source, target) in enumerate(events.tolist()):
        now = 7 if by_batch else 7 + i
        for j, other in enumerate([target, *candidates.rows[i].tolist()]):
            kernels.fill_features(history, source, other, now, 0.0 if j else cosines[i], features)
            expected[i, j] = calibrate(correction, regression.weights @ features)
        kernels.forget(regression.covariance)
        for counter in calibration:
            counter *= 1 - 1 / kernels.MEMORY
        kernels.fill_features(history, source, target, now, cosines[i], features)
        examples = [(features.copy(), 1.0, 1.0)]
        for j, other in enumerate(alternatives.rows[i].tolist()):
            if other in (-1, target):
                continue
            kernels.fill_features(history, source, other, now, alternatives.cosines[i, j], features)
            listed = other in alternatives.rows[i, :RECENT]
            counts["listed" if j >= RECENT and listed else "other"] += 1
            if j < RECENT or not listed:
                examples.append((features.copy(), 0.0, 1.0 if j < RECENT else 2.5))
        for example, outcome, importance in examples:  # all of them with the weights before the event
            kernels.count_example(calibration, regression.weights @ example, outcome, importance)
        for example, outcome, importance in examples:
            kernels.learn(regression, example, outcome, importance, work)
        if not by_batch:
            kernels.record_event(history, source, target, now)
    for i, (source, target) in enumerate(events.tolist() if by_batch else []):
        kernels.record_event(history, source, target, 7 + i)
    return expected, counts


def test_alternatives_are_recent_targets_and_draws_from_all_targets(events: np.ndarray) -> None:
    history = empty_history()
    record(history, events)
    targets, src = np.array([3, 4, 9]), np.arange(20)
    chosen = kernels.choose_alternatives(history, targets, src, 50, np.uint64(5), 40)
    assert np.array_equal(chosen[:, :RECENT], history.partner[src, 0])
    drawn = chosen[:, RECENT:]
    assert set(drawn.ravel().tolist()) == {3, 4, 9}
    assert np.ptp(np.unique(drawn, return_counts=True)[1]) < 80  # 800 draws: about 267 each
    assert not np.array_equal(
        drawn, kernels.choose_alternatives(history, targets, src, 51, np.uint64(5), 40)[:, RECENT:]
    )
    assert (kernels.choose_alternatives(history, targets[:0], src, 50, np.uint64(5), 2)[:, RECENT:] == -1).all()


def test_cosines_equal_dot_products_and_are_zero_for_missing_vertices() -> None:
    rng = np.random.default_rng(4)
    units = rng.normal(size=(5, 8)).astype(np.float32)
    src, dst = np.array([0, 3, -1]), np.array([[1, -1], [3, 4], [0, 1]])
    found = np.empty((3, 2), np.float32)
    kernels.fill_cosines(units, src, dst, found)
    expected = [[units[0] @ units[1], 0], [units[3] @ units[3], units[3] @ units[4]], [0, 0]]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
