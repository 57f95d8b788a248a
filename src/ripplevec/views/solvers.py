"""Leading eigenpairs from nothing: of a view's operator, dense for small graphs, else filtered blocks; and Lanczos."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from ripplevec.views.base import Progress
from ripplevec.views.operators import Operator
from ripplevec.views.subspace import apply_chebyshev_filter, fix_signs, rayleigh_ritz

DENSE = 400  # vertices: up to here a dense solver is quicker than any other
TOLERANCE = 1e-8  # of Lanczos

# Of the filtered blocks, which also find values that are repeated, as those of many small components are.
PASSES, SETTLED = 20, 1e-3  # until the sum of the values changes by less; what is left is then several times smaller
GUARD = 10  # more columns than wanted, because the last ones converge slowly
STEEPEST = 1e4  # how much stronger a filter may make one direction than another before it drowns in rounding
HIGHEST_DEGREE = 20
FIRST_GUESS, SMALLEST = 0.1, 1e-3  # of the top of the spectrum: where the wanted part may begin

Pairs = tuple[NDArray[np.float64], NDArray[Any]]


def solve_leading_eigenpairs(
    operator: Operator, columns: int, progress: Progress | None = None, *, settled: float = SETTLED
) -> Pairs:
    """The largest eigenvalues of W apart from the trivial one and their vectors, zero beyond what the graph has."""
    if operator.active_count > max(DENSE, 2 * columns + 2):
        return _blocks(operator, columns, progress, settled)
    mu, vectors = np.zeros(columns), np.zeros((operator.rows, columns))
    count = min(columns, operator.active_count - 1)
    if count <= 0:
        return mu, operator.to_device(vectors)
    active = np.flatnonzero(operator.active)
    root = np.sqrt(operator.row_weights[active])
    values, found = _dense(operator, active, root)
    mu[:count] = values[: -count - 1 : -1]
    vectors[active, :count] = fix_signs(found[:, : -count - 1 : -1]) / root[:, None]
    return mu, operator.to_device(vectors)


def _dense(operator: Operator, active: NDArray[np.int64], root: NDArray[np.float64]) -> Pairs:
    """All eigenpairs of the symmetric form, smallest first; the trivial value 1 has become −2, below all others."""
    trivial, inverse = root / np.linalg.norm(root), 1 / root
    spread = operator.adjacency.to_csr()[active][:, active].toarray() + operator.tau / active.size
    values, vectors = eigh(spread * np.outer(inverse, inverse) - 3 * np.outer(trivial, trivial))
    return values, vectors


def largest(
    apply: Callable[[NDArray[np.float64]], NDArray[np.float64]], size: int, count: int, progress: Progress | None
) -> Pairs:
    """The largest eigenpairs of a symmetric operator by Lanczos, in no order; the same ones every time."""
    subspace, calls = min(max(2 * count + 1, 20), size), 0

    def counted(y: NDArray[np.float64]) -> NDArray[np.float64]:
        nonlocal calls
        calls += 1
        if progress and calls % 50 == 0:
            progress("start", 1 - subspace / (subspace + calls))  # the number of calls is not known before
        return apply(y.ravel())

    linear = LinearOperator((size, size), matvec=counted, dtype=np.float64)
    rng = np.random.Generator(np.random.Philox(0))  # also for restarts, which would else be drawn from the system
    options = {"k": count, "which": "LA", "v0": rng.standard_normal(size), "ncv": subspace, "tol": TOLERANCE}
    try:
        return eigsh(linear, rng=rng, **options)
    except ArpackNoConvergence as partial:  # what has converged is right; the rest is left to the first anchor
        return partial.eigenvalues, partial.eigenvectors


def _blocks(operator: Operator, columns: int, progress: Progress | None, settled: float = SETTLED) -> Pairs:
    """Chebyshev-filtered subspace iteration from noise until the eigenvalues have settled."""
    low, top = operator.spectrum_bounds()
    block = operator.make_noise(0, min(columns + GUARD, operator.active_count - 1), np.float32)
    operator.deflate(block)
    high, before = FIRST_GUESS * top, 0.0
    for turn in range(PASSES):
        high = max(high, SMALLEST * abs(top))
        apply_chebyshev_filter(operator, block, low, high, _degree(low, high, top))
        operator.deflate(block)
        values = rayleigh_ritz(operator, block)
        total, high = float(values[:columns].sum()), float(values[-1])
        if progress:
            progress("start", (turn + 1) / PASSES)
        if abs(total - before) < settled * abs(total):
            break
        before = total
    return values[:columns], block[:, :columns].copy()


def _degree(low: float, high: float, top: float) -> int:
    """Of the filter that is small on [low, high] and as large at the top as a block in float32 bears."""
    reach = (2 * top - high - low) / (high - low)  # where the top lies when [low, high] is drawn out to [−1, 1]
    return min(HIGHEST_DEGREE, max(1, int(np.arccosh(STEEPEST) / np.arccosh(max(reach, 1 + 1e-9)))))
