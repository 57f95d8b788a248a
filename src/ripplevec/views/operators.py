"""Matrix-free operator W of a spectral view: its implementation on the CPU, and the choice between CPU, GPU and shards.

An eigenvector y of the regularized normalized adjacency S = (D+τ)^-½ (A + (τ/n) 11ᵀ) (D+τ)^-½ is represented as
x = (D+τ)^-½ y. The trivial eigenvector is then constant, and on all others S acts as the local step of a refresh:

    W x = (A x − c) / (d + τ),   c = (1/n) Σ d x,   W self-adjoint in the inner product Σ (d+τ) x x'.

Rows without edges are excluded; they stay zero. Sums over rows add fixed blocks in order, so that they have the same
bits for any number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from math import ceil
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

from ripplevec.errors import check_choice
from ripplevec.graph.adjacency import Adjacency, Totals, WeightScale
from ripplevec.util.parallel import block_ranges, for_each_block
from ripplevec.views import _kernels as kernels
from ripplevec.views.aligned_matrix import aligned_zeros, as_strided_columns

DEVICES = ("auto", "cpu", "cuda")
"""Values of the parameter `device` of a view."""

DEVICE_VARIABLE = "RIPPLEVEC_DEVICE"
"""Environment variable that sets the device of views with `device="auto"`; the CPU by default."""

BLOCK_ROWS = 8_192  # reductions add blocks of this many rows in order, independent of the number of threads
SUB_BLOCK_ROWS = 1_024  # rows converted to float64 at a time, few enough to stay in the cache
LANCZOS_STEPS = 16  # for the estimated bounds of the spectrum
WORKSPACE_BYTES = 5 * 2**29  # limit of the workspace beside a block; wider blocks are processed a few columns at a time
COLUMN_GROUP = 16  # columns that stay together: one cache line of float32
MAX_ENTRY = 2.0**16  # upper bound of a valid entry: row lengths are bounded (see `views/coordinates.py`)

Matrix = NDArray[Any]


class SpectrumEstimate(NamedTuple):
    """Estimated spectrum of an operator. An eigenvalue lies outside the bounds only in rare cases."""

    low: float
    high: float
    values: NDArray[np.float64]  # representative eigenvalues, largest first
    shares: NDArray[np.float64]  # share of all eigenvalues that each of them represents

    def quantile(self, share: float) -> float:
        """Return the eigenvalue above which this share of all eigenvalues lies, rounded down to a representative."""
        position = int(np.searchsorted(np.cumsum(self.shares), share))
        return float(self.values[min(position, self.values.size - 1)])


UNKNOWN_SPECTRUM = SpectrumEstimate(-1.0, 1.0, np.zeros(1), np.ones(1))
"""For graphs that are too small for an estimate."""


class Operator:
    """The operator W of one graph and one τ, on the first `rows` rows.

    "Block" below means a matrix with one row per vertex. `row_weights` are the weights d+τ of the inner product, zero
    for rows without edges; `active` marks the rows with edges.
    """

    def __init__(self, adjacency: Adjacency, rows: int, tau: float, threads: int = 1) -> None:
        links = adjacency.links
        self.adjacency, self.links, self.rows, self.tau, self.threads = adjacency, links, rows, tau, threads
        self.active = links.degree[:rows] > 0
        self.active_count = int(self.active.sum())
        self.mean_degree = float(links.degree[:rows].sum()) / max(self.active_count, 1)
        self.total_strength = float(links.strength[:rows].sum())
        self.row_weights = np.where(self.active, links.strength[:rows] + tau, 0.0)

    def to_device(self, rows: Matrix) -> Matrix:
        """Return rows in the memory that this operator computes in; on the CPU, the argument itself."""
        return rows

    def to_host(self, block: Matrix, rows: Matrix | None = None) -> Matrix:
        """Return a block in host memory; written into `rows` if given (ignored on the CPU, where no copy is needed)."""
        return block

    def column_chunks(self, block: Matrix) -> list[slice]:
        """Split the columns of a block into chunks that fit into `WORKSPACE_BYTES`, equal in width except the last.

        Chunks are as wide as possible: the graph is read once per chunk, and wide rows use memory bandwidth better.
        """
        columns, room = block.shape[1], WORKSPACE_BYTES // max(self.rows * block.itemsize, 1)
        widest = max(room // COLUMN_GROUP, 1) * COLUMN_GROUP
        chunks = ceil(columns / widest)
        width = columns if chunks == 1 else ceil(columns / chunks / COLUMN_GROUP) * COLUMN_GROUP
        return [slice(first, last) for first, last in block_ranges(columns, width)]

    def allocate_workspace(self, block: Matrix) -> Matrix:
        """Return a zero matrix as wide as the widest column chunk of a block."""
        return aligned_zeros(self.rows, self.column_chunks(block)[0].stop, block.dtype)

    def combine(self, source: Matrix, target: Matrix, factors: tuple[float, float, float]) -> None:
        """Compute target ← f₀ · W source + f₁ · source + f₂ · target."""
        self.combine_with_center(self.center(source), source, target, factors)

    def combine_with_center(
        self, center: NDArray[np.float64], source: Matrix, target: Matrix, factors: tuple[float, float, float]
    ) -> None:
        """Like `combine`, with a given center: on a shard, the center of the rows of all shards."""
        read, write = as_strided_columns(source), as_strided_columns(target)
        self._for_each_block(lambda a, b: kernels.combine(self.links, read, center, self.tau, factors, write, a, b))

    def apply(self, source: Matrix) -> Matrix:
        """Return W source."""
        target = aligned_zeros(len(source), source.shape[1], source.dtype)
        self.combine(source, target, (1.0, 0.0, 0.0))
        return target

    def center(self, source: Matrix) -> NDArray[np.float64]:
        """Return c = (1/n) Σ d x, per column."""
        return self.sum_weighted(source, 0.0) / max(self.active_count, 1)

    def deflate(self, target: Matrix) -> None:
        """Remove the component along the trivial (constant) eigenvector, in place."""
        self.subtract_from_rows(target, self.sum_weighted(target, self.tau) / max(self.row_weights.sum(), 1e-300))

    def subtract_from_rows(self, target: Matrix, value: NDArray[np.float64]) -> None:
        """Subtract one value per column from every row that has edges, in place."""
        write = as_strided_columns(target)
        self._for_each_block(lambda first, last: kernels.subtract_from_rows(self.links, write, value, first, last))

    def clear_unusable_rows(self, target: Matrix) -> None:
        """Zero the rows without edges, and rows with an entry that is not finite or exceeds `MAX_ENTRY`, in place.

        No computation of this package produces such entries; a single one would contaminate all other rows.
        """

        def work(first: int, last: int) -> None:
            rows = target[first:last]
            usable = (np.abs(rows) <= MAX_ENTRY).all(axis=1)  # also false for NaN
            rows[~(self.active[first:last] & usable)] = 0

        self._for_each_block(work)

    def scale_columns(self, target: Matrix, factors: NDArray[np.float64], how: np.ufunc = np.multiply) -> None:
        """Multiply each column by its factor, or divide by it with `how=np.divide`, in place."""
        converted = factors.astype(target.dtype)
        self._for_each_block(lambda first, last: how(target[first:last], converted, out=target[first:last]))

    def gram(self, left: Matrix, right: Matrix) -> NDArray[np.float64]:
        """Return the inner products Σ (d+τ) leftᵀ right of columns, k×k in float64; blocks are added in order."""
        return weighted_cross_products(left, right, self.threads, self.row_weights)

    def column_norms(self, source: Matrix) -> NDArray[np.float64]:
        """Return √Σ (d+τ) x² per column."""
        return np.sqrt(self.squared_column_norms(source))

    def squared_column_norms(self, source: Matrix) -> NDArray[np.float64]:
        """Return Σ (d+τ) x² per column."""

        def part(first: int, last: int) -> NDArray[np.float64]:
            return self.row_weights[first:last] @ np.square(source[first:last], dtype=np.float64)

        return sum_over_blocks(part, self.rows, self.threads)

    def column_square_sums(self, source: Matrix) -> NDArray[np.float64]:
        """Return Σ x² per column."""
        return sum_over_blocks(
            lambda a, b: np.square(source[a:b], dtype=np.float64).sum(axis=0), self.rows, self.threads
        )

    def max_row_length(self, source: Matrix) -> float:
        """Return the length of the longest row; NaN if any entry is NaN."""
        longest: dict[int, float] = {}

        def work(first: int, last: int) -> None:
            squares = [
                np.square(source[first + a : first + b], dtype=np.float64).sum(axis=1)
                for a, b in block_ranges(last - first, SUB_BLOCK_ROWS)
            ]
            longest[first] = float(np.max([part.max(initial=0.0) for part in squares]))

        self._for_each_block(work)
        return float(np.sqrt(np.max(list(longest.values()), initial=0.0)))

    def transform_columns(self, target: Matrix, matrix: NDArray[np.float64]) -> None:
        """Compute target ← target · matrix (k×k), in place, block by block."""
        converted = matrix.astype(target.dtype)

        def work(first: int, last: int) -> None:
            target[first:last] = target[first:last] @ converted

        self._for_each_block(work)

    def make_noise(self, seed: int, columns: int, dtype: Any) -> Matrix:
        """Return random columns: equal for equal seeds, independent of the number of threads."""
        target = aligned_zeros(self.rows, columns, dtype)
        self.fill_noise(target, np.random.Generator(np.random.Philox(seed)).integers(0, 2**64, self.rows, np.uint64))
        return target

    def fill_noise(self, target: Matrix, words: NDArray[np.uint64]) -> None:
        """Fill a block with hashes of each row's random word and the column, in place."""
        self._for_each_block(lambda first, last: kernels.fill_noise(self.links, words, target, first, last))

    def spectrum_lower_bound(self) -> float:
        """Return a lower bound of the spectrum: −1 for small τ, where it is tight, else a Lanczos bound."""
        return -1.0 if self.tau * self.active_count < self.total_strength else self.spectrum_bounds()[0]

    def spectrum_bounds(self) -> tuple[float, float]:
        """Return bounds of the spectrum without the trivial eigenvalue; see `estimate_spectrum`."""
        estimate = self.estimate_spectrum()
        return estimate.low, estimate.high

    def estimate_spectrum(self) -> SpectrumEstimate:
        """Estimate the spectrum without the trivial eigenvalue by a few Lanczos steps from a random vector."""
        if self.active_count < LANCZOS_STEPS + 2:
            return UNKNOWN_SPECTRUM
        root = np.sqrt(self.row_weights)
        inverse = self.to_device(np.divide(1.0, root, out=np.zeros_like(root), where=self.active))
        root, vector = self.to_device(root), self.make_noise(0, 1, np.float64)[:, 0]
        diagonal, off_diagonal, basis = [], [], np.empty_like(vector, shape=(LANCZOS_STEPS, self.rows))
        vector -= root * (root @ vector) / (root @ root)
        beta = float(np.linalg.norm(vector))
        for step in range(LANCZOS_STEPS):
            basis[step] = vector / beta
            vector = self._apply_symmetric(basis[step], inverse)
            diagonal.append(float(basis[step] @ vector))
            vector -= (basis[: step + 1] @ vector) @ basis[: step + 1]
            beta = float(np.linalg.norm(vector))
            if beta < 1e-12:
                break
            off_diagonal.append(beta)
        return spectrum_from_lanczos(diagonal, off_diagonal, beta)

    def sum_weighted(self, source: Matrix, tau: float) -> NDArray[np.float64]:
        """Return Σ (d+τ) x per column, for a given τ (0 for the center)."""
        parts: dict[int, NDArray[np.float64]] = {}
        read = as_strided_columns(source)

        def work(first: int, last: int) -> None:
            parts[first] = np.empty(source.shape[1])
            kernels.sum_weighted_rows(self.links, read, tau, first, last, parts[first])

        self._for_each_block(work)
        return add_in_block_order(parts, self.rows)

    def _apply_symmetric(self, vector: Matrix, inverse: Matrix) -> Matrix:
        """Return (D+τ)^½ W (D+τ)^-½ vector, given inverse = (D+τ)^-½."""
        source, target = inverse * vector, np.empty_like(vector)
        self._for_each_block(lambda first, last: kernels.multiply_vector(self.links, source, target, first, last))
        target -= float(self.links.strength[: self.rows] @ source) / self.active_count
        target *= inverse
        return target

    def _for_each_block(self, work: Callable[[int, int], None]) -> None:
        for_each_block(work, self.rows, size=BLOCK_ROWS, threads=self.threads)


class RemoteAdjacency(Protocol):
    """A graph outside this process that supplies operators and the matrices they work on."""

    weight_scale: WeightScale

    def totals(self, rows: int) -> Totals:
        """Return sums over all rows."""

    def operator(self, tau: float) -> Operator:
        """Return the operator of a view with this τ."""


AdjacencyLike = Adjacency | RemoteAdjacency
"""A graph that a view can embed."""


def make_operator(device: str, adjacency: AdjacencyLike, rows: int, tau: float, threads: int) -> Operator:
    """Create the operator of a view. A GPU is used only on request, because its results differ in the last bits."""
    if not isinstance(adjacency, Adjacency):
        return adjacency.operator(tau)
    if resolve_device(device) == "cpu":
        return Operator(adjacency, rows, tau, threads)
    from ripplevec.views.gpu import GpuOperator

    return GpuOperator(adjacency, rows, tau, threads)


def resolve_device(device: str) -> str:
    """Return the device that a view computes on, "cpu" or "cuda"."""
    chosen = os.environ.get(DEVICE_VARIABLE, "cpu") if device == "auto" else device
    check_choice(DEVICE_VARIABLE, chosen, ("cpu", "cuda"))
    return chosen


def spectrum_from_lanczos(diagonal: list[float], off_diagonal: list[float], beta: float) -> SpectrumEstimate:
    """Return the estimate that Lanczos coefficients give; the bounds are the extreme Ritz values ± their residuals.

    The squared first components of the Ritz vectors are the weights of a Gauss quadrature of the spectral density that
    the start vector samples. For a random vector, these are the shares of all eigenvalues.
    """
    values, vectors = eigh_tridiagonal(diagonal, off_diagonal[: len(diagonal) - 1])
    residuals = beta * np.abs(vectors[-1])
    low, high = float(max(values[0] - residuals[0], -1.0)), float(min(values[-1] + residuals[-1], 1.0))
    return SpectrumEstimate(low, high, values[::-1], np.square(vectors[0, ::-1]))


def weighted_cross_products(
    left: Matrix, right: Matrix, threads: int, row_weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return Σ weight · leftᵀ right over rows, k×k in float64; blocks are added in order."""
    root = np.sqrt(row_weights)[:, None]

    def product(first: int, last: int) -> NDArray[np.float64]:
        scaled = left[first:last] * root[first:last]
        return scaled.T @ (scaled if left is right else right[first:last] * root[first:last])

    return sum_over_blocks(product, len(left), threads) if len(left) else np.zeros((left.shape[1], right.shape[1]))


def sum_over_blocks(part: Callable[[int, int], NDArray[np.float64]], rows: int, threads: int) -> NDArray[np.float64]:
    """Return the sum of `part(first, last)` over all rows: over sub-blocks within each block, then over blocks.

    The order of additions does not depend on the number of threads.
    """
    parts: dict[int, NDArray[np.float64]] = {}

    def work(first: int, last: int) -> None:
        parts[first] = np.sum(
            [part(first + a, first + b) for a, b in block_ranges(last - first, SUB_BLOCK_ROWS)], axis=0
        )

    for_each_block(work, rows, size=BLOCK_ROWS, threads=threads)
    return add_in_block_order(parts, rows)


def add_in_block_order(parts: dict[int, NDArray[np.float64]], rows: int) -> NDArray[np.float64]:
    """Return the sum of partial results, keyed by the first row of their block, added from first to last."""
    total = np.zeros_like(parts[0])
    for first, _ in block_ranges(rows, BLOCK_ROWS):
        total += parts[first]
    return total
