"""Start on a large graph: a few filter passes from random columns, at cutoffs known from the spectral density.

`solve_leading_eigenpairs` searches for the cutoff of its filter from pass to pass, and ends with a pass that confirms
the result. On a large graph every pass is expensive. Here, the Lanczos steps that bound the spectrum also estimate the
smallest wanted eigenvalue. The first pass therefore has a good cutoff, and the iteration stops when another pass would
gain little. The number of passes depends on the spectrum, but not on the size of the graph.
"""

from __future__ import annotations

import numpy as np

from ripplevec.views.base import Progress
from ripplevec.views.operators import Operator, SpectrumEstimate
from ripplevec.views.solvers import (
    GUARD_COLUMNS,
    MAX_PASSES,
    MIN_CUTOFF_RATIO,
    Eigenpairs,
    apply_chebyshev_filter,
    largest_filter_degree,
    normalize_columns,
    rayleigh_ritz,
)

MIN_VERTICES = 20_000  # up to here, a start that iterates to convergence takes about a second
DEGREE = 14  # of the filters: with less, a third pass is needed more often; with more, sums hardly increase
GAIN_OVER_NOISE = 10.0  # gain of the smallest wanted eigenvalue, relative to the total of all others in random columns
MAX_GAIN_RATIO = 2e3  # of the first filter, largest to smallest wanted eigenvalue: the columns stay independent
MAX_LATER_AMPLIFICATION = 1e6  # of later filters; higher, because Ritz vectors hold little of each other's directions
TOLERANCE = 0.02  # relative change of the eigenvalue sum at which it stops; the error is then about a sixth of it


def is_large(operator: Operator, columns: int) -> bool:
    """Return whether a graph is large enough for `solve_large`, also in relation to the number of columns."""
    return operator.active_count > max(MIN_VERTICES, 2 * (columns + GUARD_COLUMNS))


def solve_large(operator: Operator, columns: int, progress: Progress | None = None) -> Eigenpairs:
    """Return approximate largest eigenvalues of W except the trivial one, and eigenvectors."""
    spectrum = operator.estimate_spectrum()
    floor = MIN_CUTOFF_RATIO * abs(spectrum.high)
    block = operator.make_noise(0, columns + GUARD_COLUMNS, np.float32)
    operator.deflate(block)
    cutoff, degree = _plan_first_filter(spectrum, columns + GUARD_COLUMNS, operator.active_count)
    previous = 0.0
    for iteration in range(MAX_PASSES):
        apply_chebyshev_filter(operator, block, spectrum.low, max(cutoff, floor), degree)
        operator.deflate(block)
        values = rayleigh_ritz(operator, block)
        total, cutoff = float(values[:columns].sum()), max(float(values[columns - 1]), floor)
        if progress:
            progress("start", 1 - 0.5 ** (iteration + 1))  # the number of passes is unknown
        if abs(total - previous) <= TOLERANCE * abs(total):
            break
        if not values.all():  # the block has lost rank
            normalize_columns(operator, block, iteration + 1)
        previous = total
        degree = largest_filter_degree(spectrum.low, cutoff, spectrum.high, MAX_LATER_AMPLIFICATION, DEGREE)
    return values[:columns], block[:, :columns].copy()


def _plan_first_filter(spectrum: SpectrumEstimate, columns: int, vertices: int) -> tuple[float, int]:
    """Return the cutoff and the degree of a filter that separates the wanted eigenvalues in random columns.

    All directions are equally strong in random columns, and there are many more unwanted than wanted ones. The gain of
    the smallest wanted eigenvalue must outweigh their number. The cutoff is the highest one with this gain.
    """
    gain = GAIN_OVER_NOISE * np.sqrt(vertices / columns)
    wanted, low, high = spectrum.quantile(columns / vertices), spectrum.low, spectrum.high
    for degree in range(DEGREE, 0, -1):
        position = np.cosh(np.arccosh(gain) / degree)  # of the wanted eigenvalue, if [low, cutoff] is mapped to [−1, 1]
        cutoff = float((2 * wanted + low * (position - 1)) / (position + 1))
        if largest_filter_degree(low, cutoff, high, gain * MAX_GAIN_RATIO, degree) == degree:
            break
    return cutoff, degree
