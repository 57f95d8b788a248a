"""Leading eigenpairs of a view's operator from nothing: dense for tiny graphs, Lanczos, filtered blocks for large."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from ripplet.views.base import Progress
from ripplet.views.operators import Operator
from ripplet.views.subspace import chebyshev, fixed_signs, rayleigh_ritz

DENSE = 400  # vertices: up to here a dense solver is quicker than any other, and repeated values are no trouble to it
LANCZOS = 10_000  # vertices: above this Lanczos is slow and large; filtered blocks are neither
TOLERANCE = 1e-8
PASSES, DEGREE, SETTLED = 20, 12, 2e-4  # of the filtered blocks

Pairs = tuple[NDArray[np.float64], NDArray[np.float64]]


def leading_eigenpairs(operator: Operator, columns: int, progress: Progress | None = None) -> Pairs:
    """The largest eigenvalues of W apart from the trivial one and their vectors, zero beyond what the graph has."""
    mu, vectors = np.zeros(columns), np.zeros((operator.rows, columns))
    count = min(columns, operator.size - 1)
    if count <= 0:
        return mu, vectors
    if operator.size > max(LANCZOS, 2 * columns + 2):
        return _blocks(operator, columns, progress)
    active = np.flatnonzero(operator.active)
    solve = _dense if operator.size <= max(DENSE, 2 * columns + 2) else _lanczos
    values, found = solve(operator, active, count, progress)
    order = np.argsort(-values, kind="stable")[:count]
    count = order.size  # fewer where some have not converged
    mu[:count] = values[order]
    vectors[active, :count] = fixed_signs(found[:, order]) / np.sqrt(operator.measure[active])[:, None]
    return mu, vectors


def _scaled(operator: Operator, active: NDArray[np.int64]) -> tuple[csr_array, NDArray[np.float64]]:
    """(D+τ)^-½ A (D+τ)^-½ over the vertices with edges, and (D+τ)^½."""
    root = np.sqrt(operator.measure[active])
    matrix = operator.adjacency.to_csr()[active][:, active]
    scale = diags_array(1 / root)
    return csr_array(scale @ matrix @ scale), root


def _dense(operator: Operator, active: NDArray[np.int64], count: int, progress: Progress | None) -> Pairs:
    matrix, root = _scaled(operator, active)
    trivial = root / np.linalg.norm(root)
    full = matrix.toarray() + operator.tau / active.size * np.outer(1 / root, 1 / root)
    values, vectors = eigh(full - 3 * np.outer(trivial, trivial))  # the trivial value 1 becomes −2, below all others
    return values[1:], vectors[:, 1:]


def _lanczos(operator: Operator, active: NDArray[np.int64], count: int, progress: Progress | None) -> Pairs:
    matrix, root = _scaled(operator, active)
    trivial, inverse = root / np.linalg.norm(root), 1 / root

    def apply(y: NDArray[np.float64]) -> NDArray[np.float64]:
        spread = operator.tau / active.size * inverse * (inverse @ y)
        return matrix @ y + spread - 2 * trivial * (trivial @ y)

    return largest(apply, active.size, count, progress)


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


def _blocks(operator: Operator, columns: int, progress: Progress | None) -> Pairs:
    """Chebyshev-filtered subspace iteration from noise until the eigenvalues have settled."""
    block, low = operator.noise(0, columns, np.float32), operator.lowest()
    operator.deflate(block)
    values, block = rayleigh_ritz(operator, block)
    for turn in range(PASSES):
        high = max(float(values[-1]), low / 2, 1e-3)
        block = chebyshev(operator, block, low, high, DEGREE)
        operator.deflate(block)
        before, (values, block) = values, rayleigh_ritz(operator, block)
        if progress:
            progress("start", (turn + 1) / PASSES)
        if abs(values.sum() - before.sum()) < SETTLED * abs(values.sum()):
            break
    return values, block.astype(np.float64)
