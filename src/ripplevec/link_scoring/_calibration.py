"""Numba kernels that calibrate probabilities: a monotone, piecewise linear correction of the log-odds.

Knots lie at fixed log-odds. Each knot counts the examples near it, and those of them that occurred; both counts decay.
The corrected log-odds of a knot are those of the observed share.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.util.numba_intrinsics import allocation_free, kernel

FIRST_KNOT, KNOT_DISTANCE, KNOTS = -12.0, 0.75, 25
"""Log-odds of the first knot, and the distance and number of knots: −12 to 6."""

PRIOR_EXAMPLES = 20.0
"""Examples that agree with the uncorrected probability, which a knot has in addition to those it counts."""

MIN_SLOPE = 0.05
"""Smallest slope of the correction, so that different scores stay different."""


class Calibration(NamedTuple):
    """Decayed number of examples near each knot, and of those that occurred."""

    examples: NDArray[np.float64]
    occurred: NDArray[np.float64]


@allocation_free(forceinline=True)
def locate(log_odds: float) -> tuple[int, float]:
    """Return the knot at or before log-odds, and the position between it and the next one, from 0 to 1."""
    position = (log_odds - FIRST_KNOT) / KNOT_DISTANCE
    if not position > 0.0:  # also if it is not a number: no index may be outside of the knots
        position = 0.0
    position = min(position, KNOTS - 1.0)
    knot = min(int(position), KNOTS - 2)
    return knot, position - knot


@allocation_free(inner=True)
def count_example(calibration: Calibration, log_odds: float, outcome: float, importance: float) -> None:
    """Count an example at the two knots next to its uncorrected log-odds, in proportion to their nearness."""
    knot, share = locate(log_odds)
    calibration.examples[knot] += importance * (1.0 - share)
    calibration.examples[knot + 1] += importance * share
    calibration.occurred[knot] += importance * (1.0 - share) * outcome
    calibration.occurred[knot + 1] += importance * share * outcome


@allocation_free(inner=True)
def decay_counts(calibration: Calibration, factor: float) -> None:
    """Let the examples so far count a little less."""
    for knot in range(KNOTS):
        calibration.examples[knot] *= factor
        calibration.occurred[knot] *= factor


@kernel
def compute_correction(calibration: Calibration) -> NDArray[np.float64]:
    """Return the corrected log-odds at the knots: of the observed shares, made increasing by pooling neighbors."""
    examples, occurred, width = np.empty(KNOTS), np.empty(KNOTS), np.empty(KNOTS, np.int64)
    pools = 0
    for knot in range(KNOTS):
        expected = 1.0 / (1.0 + np.exp(-(FIRST_KNOT + KNOT_DISTANCE * knot)))
        examples[pools] = calibration.examples[knot] + PRIOR_EXAMPLES
        occurred[pools] = calibration.occurred[knot] + PRIOR_EXAMPLES * expected
        width[pools] = 1
        while pools and occurred[pools - 1] * examples[pools] >= occurred[pools] * examples[pools - 1]:
            pools -= 1
            examples[pools] += examples[pools + 1]
            occurred[pools] += occurred[pools + 1]
            width[pools] += width[pools + 1]
        pools += 1
    correction, knot = np.empty(KNOTS), 0
    for pool in range(pools):
        share = min(max(occurred[pool] / examples[pool], 1e-12), 1.0 - 1e-12)
        for _ in range(width[pool]):
            correction[knot] = np.log(share / (1.0 - share))
            knot += 1
    for knot in range(1, KNOTS):
        correction[knot] = max(correction[knot], correction[knot - 1] + MIN_SLOPE * KNOT_DISTANCE)
    return correction


@allocation_free(inner=True)
def calibrate(correction: NDArray[np.float64], log_odds: float) -> float:
    """Return the corrected probability of uncorrected log-odds; beyond the last knots the correction is a shift."""
    knot, share = locate(log_odds)
    corrected = (1.0 - share) * correction[knot] + share * correction[knot + 1]
    last = FIRST_KNOT + KNOT_DISTANCE * (KNOTS - 1)
    corrected += min(log_odds - FIRST_KNOT, 0.0) + max(log_odds - last, 0.0)
    return 1.0 / (1.0 + np.exp(-corrected))
