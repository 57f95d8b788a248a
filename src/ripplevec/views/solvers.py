"""Eigensolvers: the leading eigenpairs of a view operator or of a Laplacian, and the steps of subspace iteration.

`solve_leading_eigenpairs` uses a dense solver for a small graph, and otherwise subspace iteration: a Chebyshev filter
and a Rayleigh–Ritz step in turn. An anchor uses the same two steps. `lanczos_all_copies` serves the Laplacian start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, eigh
from scipy.linalg.lapack import dtrtri
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from ripplevec.views.base import Progress
from ripplevec.views.operators import Operator

MAX_DENSE_SIZE = 400  # vertices up to which a dense solver is the fastest
LANCZOS_TOLERANCE = 1e-8  # relative accuracy of an eigenvalue
COPY_SEARCH_COUNT, COPY_SEARCH_SUBSPACE = 4, 80  # eigenpairs and subspace of a search for missed copies
COPY_SEARCH_TOLERANCE = 1e-5  # relative distance above the smallest wanted eigenvalue at which a copy counts as missed
RANK_TOLERANCE = 1e-9  # squared lengths below this share of the largest count as rank deficiency
CHOLESKY_TOLERANCE = 1e-6  # above this, columns are independent enough to orthonormalize by Cholesky alone

# Parameters of the subspace iteration. Unlike Lanczos, it finds all copies of a repeated eigenvalue, which graphs with
# many small components have.
MAX_PASSES = 20  # iterations, each one filter and one Rayleigh–Ritz step
TOLERANCE = 1e-3  # relative change of the eigenvalue sum at which it stops; the error is then several times smaller
GUARD_COLUMNS = 10  # extra columns, because the last ones converge slowly
MAX_AMPLIFICATION = 1e4  # ratio of filter gains above which the weaker directions are lost in float32 rounding
MAX_FILTER_DEGREE = 20
FIRST_CUTOFF_RATIO = 0.1  # first guess of the lower end of the wanted eigenvalues, relative to the largest
MIN_CUTOFF_RATIO = 1e-3  # minimum of this lower end, relative to the largest

Eigenpairs = tuple[NDArray[np.float64], NDArray[Any]]
"""Eigenvalues, and the eigenvectors as columns."""


def solve_leading_eigenpairs(
    operator: Operator, columns: int, progress: Progress | None = None, *, tolerance: float = TOLERANCE
) -> Eigenpairs:
    """Return the largest eigenvalues of W except the trivial one, and eigenvectors; zero beyond those of the graph."""
    if operator.active_count > max(MAX_DENSE_SIZE, 2 * columns + 2):
        return _iterate_subspace(operator, columns, progress, tolerance)
    mu, vectors = np.zeros(columns), np.zeros((operator.rows, columns))
    count = min(columns, operator.active_count - 1)
    if count <= 0:
        return mu, operator.to_device(vectors)
    active = np.flatnonzero(operator.active)
    root = np.sqrt(operator.row_weights[active])
    values, eigenvectors = _solve_dense(operator, active, root)
    mu[:count] = values[: -count - 1 : -1]
    vectors[active, :count] = fix_signs(eigenvectors[:, : -count - 1 : -1]) / root[:, None]
    return mu, operator.to_device(vectors)


def lanczos_all_copies(
    apply: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    size: int,
    count: int,
    shift: float,
    progress: Progress | None = None,
) -> Eigenpairs:
    """Return the largest eigenpairs of a symmetric operator by Lanczos, largest first; deterministic.

    Lanczos from one vector may miss copies of a repeated eigenvalue. Further runs therefore search the complement of
    the pairs found so far, until they find nothing larger than the smallest wanted value. `shift` is larger than the
    distance of any two eigenvalues.
    """
    values, vectors = _run_lanczos(apply, size, count, max(2 * count + 1, 20), progress=progress)
    while values.size and size > values.size + COPY_SEARCH_COUNT:
        floor = values.min() + COPY_SEARCH_TOLERANCE * abs(values).max() if values.size == count else -np.inf
        found, more = _search_complement(apply, vectors, shift, floor)
        missed = found > floor
        if not missed.any():
            break
        values, vectors = np.append(values, found[missed]), np.hstack([vectors, more[:, missed]])
        order = np.argsort(-values, kind="stable")[:count]
        values, vectors = values[order], vectors[:, order]
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[:, order]


def _search_complement(
    apply: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    known: NDArray[np.float64],
    shift: float,
    floor: float,
) -> Eigenpairs:
    """Return the largest eigenpairs in the complement of known eigenvectors; roughly if none is above the floor."""
    size = known.shape[0]

    def apply_outside(y: NDArray[np.float64]) -> NDArray[np.float64]:
        inside = known @ (known.T @ y)
        applied = apply(y - inside)
        return applied - known @ (known.T @ applied) - shift * inside

    rough = _run_lanczos(apply_outside, size, 1, COPY_SEARCH_SUBSPACE, tolerance=COPY_SEARCH_TOLERANCE)
    if rough[0].size and rough[0][0] <= floor:
        return rough
    return _run_lanczos(apply_outside, size, COPY_SEARCH_COUNT, COPY_SEARCH_SUBSPACE)


def _run_lanczos(
    apply: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    size: int,
    count: int,
    subspace: int,
    *,
    tolerance: float = LANCZOS_TOLERANCE,
    progress: Progress | None = None,
) -> Eigenpairs:
    """Return the largest eigenpairs of a symmetric operator by Lanczos from one vector, unordered; deterministic."""
    subspace, calls = min(subspace, size), 0

    def counted(y: NDArray[np.float64]) -> NDArray[np.float64]:
        nonlocal calls
        calls += 1
        if progress and calls % 50 == 0:
            progress("start", 1 - subspace / (subspace + calls))  # the total number of calls is unknown
        return apply(y.ravel())

    linear = LinearOperator((size, size), matvec=counted, dtype=np.float64)
    rng = np.random.Generator(np.random.Philox(0))  # also for restarts, which would otherwise use system entropy
    options = {"k": count, "which": "LA", "v0": rng.standard_normal(size), "ncv": subspace, "tol": tolerance}
    try:
        return eigsh(linear, rng=rng, **options)
    except ArpackNoConvergence as partial:  # converged pairs are correct
        return partial.eigenvalues, partial.eigenvectors


def apply_chebyshev_filter(operator: Operator, block: NDArray[Any], low: float, high: float, degree: int) -> None:
    """Apply to a block, in place, the Chebyshev polynomial of W that is small on [low, high] and grows above it.

    Columns are independent; processing a few at a time bounds the workspace.
    """
    half, middle = (high - low) / 2, (high + low) / 2
    workspace = operator.allocate_workspace(block)
    for part in operator.column_chunks(block):
        columns = block[:, part]
        previous, current = columns, workspace[:, : columns.shape[1]]
        operator.combine(previous, current, (1 / half, -middle / half, 0.0))
        for _ in range(degree - 1):
            operator.combine(current, previous, (2 / half, -2 * middle / half, -1.0))
            previous, current = current, previous
        if current is not columns:
            columns[:] = current


def largest_filter_degree(low: float, high: float, top: float, amplification: float, limit: int) -> int:
    """Return the largest filter degree, up to a limit, with at most this amplification at the top of the spectrum."""
    position = (2 * top - high - low) / (high - low)  # of the top, when [low, high] is mapped to [−1, 1]
    return min(limit, max(1, int(np.arccosh(amplification) / np.arccosh(max(position, 1 + 1e-9)))))


def rayleigh_ritz(operator: Operator, block: NDArray[Any]) -> NDArray[np.float64]:
    """Return the Ritz values of W on the span of a block, largest first; replace the block by the Ritz vectors.

    Beyond the rank of the block, values and vectors are zero.
    """
    values, transform = solve_projected(operator.gram(block, block), _project_operator(operator, block))
    operator.transform_columns(block, transform)
    return values


def solve_projected(gram: NDArray[np.float64], projected: NDArray[np.float64]) -> Eigenpairs:
    """Return Ritz values, largest first, and the columns that turn a block into Ritz vectors; zero beyond its rank.

    `gram` are the inner products of the block's columns, `projected` those with W times the block.
    """
    columns, whitening = len(gram), _whitening_matrix(gram)
    whitened = whitening.T @ projected @ whitening
    values, vectors = np.linalg.eigh((whitened + whitened.T) / 2)
    values, vectors = values[::-1], whitening @ vectors[:, ::-1]
    transform = np.zeros((columns, columns))
    transform[:, : values.size] = fix_signs(vectors)
    return np.concatenate([values, np.zeros(columns - values.size)]), transform


def normalize_columns(operator: Operator, block: NDArray[Any], seed: int) -> None:
    """Prepare a block for the filter, in place: normalize its columns, and fill empty ones with noise."""
    operator.deflate(block)
    norms = operator.column_norms(block)
    empty = norms <= 1e-6 * max(norms.max(initial=0.0), 1e-300)
    if empty.any():
        block[:, np.flatnonzero(empty)] = operator.make_noise(seed, int(empty.sum()), block.dtype)
        operator.deflate(block)
        norms = operator.column_norms(block)
    operator.scale_columns(block, np.maximum(norms, np.finfo(block.dtype).tiny), np.divide)


def fix_signs(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Flip columns so that the entry of largest magnitude is positive; the sign of an eigenvector is arbitrary."""
    if not vectors.size:
        return vectors
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return vectors * np.where(largest < 0, -1.0, 1.0)


def _solve_dense(operator: Operator, active: NDArray[np.int64], root: NDArray[np.float64]) -> Eigenpairs:
    """Return all eigenpairs of the matrix S (see `operators.py`), smallest first; the trivial 1 is shifted to −2."""
    trivial, inverse = root / np.linalg.norm(root), 1 / root
    regularized = operator.adjacency.to_csr()[active][:, active].toarray() + operator.tau / active.size
    return solve_symmetric(regularized * np.outer(inverse, inverse) - 3 * np.outer(trivial, trivial))


def solve_symmetric(matrix: NDArray[np.float64]) -> Eigenpairs:
    """Return all eigenpairs of a symmetric matrix, smallest first.

    LAPACK's default method fails for some matrices with repeated eigenvalues (a graph of many cliques has them); the
    slower divide and conquer does not.
    """
    try:
        values, vectors = eigh(matrix)
    except LinAlgError:
        values, vectors = eigh(matrix, driver="evd")
    return values, vectors


def _iterate_subspace(
    operator: Operator, columns: int, progress: Progress | None, tolerance: float = TOLERANCE
) -> Eigenpairs:
    """Run Chebyshev-filtered subspace iteration from random columns until the eigenvalue sum converges."""
    low, top = operator.spectrum_bounds()
    block = operator.make_noise(0, min(columns + GUARD_COLUMNS, operator.active_count - 1), np.float32)
    operator.deflate(block)
    high, previous = FIRST_CUTOFF_RATIO * top, 0.0
    for iteration in range(MAX_PASSES):
        high = max(high, MIN_CUTOFF_RATIO * abs(top))
        degree = largest_filter_degree(low, high, top, MAX_AMPLIFICATION, MAX_FILTER_DEGREE)
        apply_chebyshev_filter(operator, block, low, high, degree)
        operator.deflate(block)
        values = rayleigh_ritz(operator, block)
        total, high = float(values[:columns].sum()), float(values[-1])
        if progress:
            progress("start", (iteration + 1) / MAX_PASSES)
        if abs(total - previous) < tolerance * abs(total):
            break
        previous = total
    return values[:columns], block[:, :columns].copy()


def _project_operator(operator: Operator, block: NDArray[Any]) -> NDArray[np.float64]:
    """Return the inner products of a block with W times the block; one triangle is computed, the other mirrored."""
    products, workspace = np.zeros((block.shape[1], block.shape[1])), operator.allocate_workspace(block)
    for part in operator.column_chunks(block):
        applied = workspace[:, : part.stop - part.start]
        operator.combine(block[:, part], applied, (1.0, 0.0, 0.0))
        products[: part.stop, part] = operator.gram(block[:, : part.stop], applied)
        products[part, : part.start] = products[: part.start, part].T
    return products


def _whitening_matrix(gram: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the matrix that orthonormalizes a block with this Gram matrix; its column count is the block's rank."""
    scale = 1 / np.sqrt(np.maximum(np.diag(gram), 1e-300))
    cosines = gram * np.outer(scale, scale)
    try:
        lower = np.linalg.cholesky(cosines)
        if np.square(np.diag(lower)).min() > CHOLESKY_TOLERANCE:
            return scale[:, None] * dtrtri(lower, lower=True)[0].T
    except np.linalg.LinAlgError:
        pass
    lengths, directions = np.linalg.eigh(cosines)
    kept = lengths > RANK_TOLERANCE * max(lengths[-1], 1e-300)
    return scale[:, None] * directions[:, kept] / np.sqrt(lengths[kept])
