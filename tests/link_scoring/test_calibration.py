"""Calibration of probabilities: the correction, its order, and the counts it is computed from."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from ripplevec.link_scoring import _calibration as calibration
from ripplevec.link_scoring._calibration import FIRST_KNOT, KNOT_DISTANCE, KNOTS, MIN_SLOPE, PRIOR_EXAMPLES, Calibration

KNOT_LOG_ODDS = FIRST_KNOT + KNOT_DISTANCE * np.arange(KNOTS)


def sigmoid(log_odds: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-log_odds))


def empty_calibration() -> Calibration:
    return Calibration(np.zeros(KNOTS), np.zeros(KNOTS))


def test_correction_without_examples_changes_nothing() -> None:
    correction = calibration.compute_correction(empty_calibration())
    for log_odds in (-30.0, -12.0, -3.3, 0.0, 1.7, 6.0, 9.0):
        assert calibration.calibrate(correction, log_odds) == pytest.approx(sigmoid(np.array(log_odds)), rel=1e-6)


def test_correction_recovers_the_true_probabilities() -> None:
    """Predictions that are too extreme by a factor, and shifted, become right within two points."""
    rng = np.random.default_rng(0)
    state, predicted = empty_calibration(), rng.normal(-1, 2, 50_000)
    true = sigmoid(0.5 * predicted - 0.7)
    for log_odds, outcome in zip(predicted.tolist(), (rng.random(50_000) < true).tolist(), strict=True):
        calibration.count_example(state, log_odds, float(outcome), 1.0)
    correction = calibration.compute_correction(state)
    found = np.array([calibration.calibrate(correction, log_odds) for log_odds in (-4.0, -2.0, 0.0, 1.0, 2.0)])
    np.testing.assert_allclose(found, sigmoid(0.5 * np.array([-4.0, -2, 0, 1, 2]) - 0.7), atol=0.02)


def test_correction_equals_isotonic_regression_with_a_least_slope() -> None:
    rng = np.random.default_rng(1)
    examples = rng.uniform(10, 500, KNOTS)
    state = Calibration(examples, examples * np.clip(sigmoid(KNOT_LOG_ODDS) * rng.uniform(0.3, 2, KNOTS), 0, 1))
    total = examples + PRIOR_EXAMPLES
    shares = (state.occurred + PRIOR_EXAMPLES * sigmoid(KNOT_LOG_ODDS)) / total
    expected = IsotonicRegression().fit(np.arange(KNOTS), shares, sample_weight=total).predict(np.arange(KNOTS))
    assert (np.diff(expected) == 0).any()
    log_odds = np.log(expected / (1 - expected))
    for knot in range(1, KNOTS):
        log_odds[knot] = max(log_odds[knot], log_odds[knot - 1] + MIN_SLOPE * KNOT_DISTANCE)
    np.testing.assert_allclose(calibration.compute_correction(state), log_odds, rtol=1e-6)


def test_correction_keeps_the_order_of_different_scores() -> None:
    rng = np.random.default_rng(2)
    state = Calibration(rng.uniform(0, 1000, KNOTS), np.zeros(KNOTS))
    state.occurred[:] = state.examples * rng.random(KNOTS)  # no order at all
    correction = calibration.compute_correction(state)
    scores = [calibration.calibrate(correction, log_odds) for log_odds in np.linspace(-20, 12, 500)]
    assert (np.diff(scores) > 0).all()


def test_example_is_counted_at_the_knots_around_it() -> None:
    state = empty_calibration()
    calibration.count_example(state, FIRST_KNOT + KNOT_DISTANCE * 3.25, 1.0, 4.0)
    assert state.examples[3:5].tolist() == [3, 1]
    assert state.examples.sum() == state.occurred.sum() == 4
    calibration.count_example(state, 99.0, 0.0, 2.0)
    assert state.examples[-1] == 2
    assert state.occurred[-1] == 0


def test_decayed_counts_keep_their_shares() -> None:
    state = Calibration(np.full(KNOTS, 8.0), np.full(KNOTS, 2.0))
    calibration.decay_counts(state, 0.5)
    assert (state.examples == 4).all()
    assert (state.occurred == 1).all()


def test_log_odds_that_are_not_finite_are_counted_at_a_knot() -> None:
    state = empty_calibration()
    for log_odds in (np.nan, -np.inf, np.inf):
        calibration.count_example(state, log_odds, 1.0, 1.0)
    assert state.examples.sum() == 3.0
    assert (state.examples[0], state.examples[-1]) == (2.0, 1.0)
