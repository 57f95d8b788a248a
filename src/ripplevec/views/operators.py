"""The operator of a spectral view, matrix-free.

The eigenvectors y of the regularized normalized adjacency S = (D+τ)^-½ (A + (τ/n) 11ᵀ) (D+τ)^-½ are worked with as
x = (D+τ)^-½ y. Then the trivial one is constant, and on the rest S acts as the step that a refresh makes row by row:

    W x = (A x − c) / (d + τ),   c = (1/n) Σ d x,   W self-adjoint in the inner product Σ (d+τ) x x'.

Rows without edges take no part: they are zero, before and after.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

from ripplevec.graph.adjacency import Adjacency
from ripplevec.util.parallel import block_ranges, for_each_block
from ripplevec.views import _kernels as kernels
from ripplevec.views.aligned_matrix import aligned_zeros, as_strided_columns

BLOCK_ROWS = 8_192  # rows per block: reductions run over these, in order, whatever the number of threads
SUB_BLOCK_ROWS = 1_024  # rows of a block turned into float64 together: they stay in the cache
LANCZOS_STEPS = 16
WORKSPACE_BYTES = 5 * 2**29  # bytes of memory beside a block: the whole of it up to here, some columns at a time beyond
COLUMN_GROUP = 16  # columns that are never parted: a cache line of float32
MAX_ENTRY = 2.0**16  # no entry of a row is larger: rows are bounded (see `views/coordinates.py`)

Matrix = NDArray[Any]


class Operator:
    """W for one graph and one τ, on the first `rows` rows."""

    def __init__(self, adjacency: Adjacency, rows: int, tau: float, threads: int = 1) -> None:
        links = adjacency.links
        self.adjacency, self.links, self.rows, self.tau, self.threads = adjacency, links, rows, tau, threads
        self.active = links.degree[:rows] > 0
        self.active_count = int(self.active.sum())
        self.mean_degree = float(links.degree[:rows].sum()) / max(self.active_count, 1)
        self.total_strength = float(links.strength[:rows].sum())
        self.row_weights = np.where(self.active, links.strength[:rows] + tau, 0.0)

    def to_device(self, rows: Matrix) -> Matrix:
        """Rows where this operator works on them: here, where they are."""
        return rows

    def to_host(self, block: Matrix, rows: Matrix | None = None) -> Matrix:
        """A block for the world: in the memory of these rows, if they are where it came from."""
        return block

    def column_chunks(self, block: Matrix) -> list[slice]:
        """The columns of a block in shares, all of one width but the last, as many at a time as WORKSPACE_BYTES has room for.

        The wider the better: the graph is read once for each, and few bytes at many places take longer than many at
        few.
        """
        columns, room = block.shape[1], WORKSPACE_BYTES // max(self.rows * block.itemsize, 1)
        widest = max(room // COLUMN_GROUP, 1) * COLUMN_GROUP
        shares = ceil(columns / widest)
        width = columns if shares == 1 else ceil(columns / shares / COLUMN_GROUP) * COLUMN_GROUP
        return [slice(first, last) for first, last in block_ranges(columns, width)]

    def allocate_workspace(self, block: Matrix) -> Matrix:
        """Zeros beside a block, as wide as its widest part."""
        return aligned_zeros(self.rows, self.column_chunks(block)[0].stop, block.dtype)

    def combine(self, source: Matrix, target: Matrix, factors: tuple[float, float, float]) -> None:
        """target ← f₀ · W source + f₁ · source + f₂ · target."""
        self.combine_with_center(self.center(source), source, target, factors)

    def combine_with_center(
        self, center: NDArray[np.float64], source: Matrix, target: Matrix, factors: tuple[float, float, float]
    ) -> None:
        """`combine` where the center is known already: that of all rows, if these are not all there are."""
        read, write = as_strided_columns(source), as_strided_columns(target)
        self._each(lambda a, b: kernels.combine(self.links, read, center, self.tau, factors, write, a, b))

    def apply(self, source: Matrix) -> Matrix:
        """W source."""
        target = aligned_zeros(len(source), source.shape[1], source.dtype)
        self.combine(source, target, (1.0, 0.0, 0.0))
        return target

    def center(self, source: Matrix) -> NDArray[np.float64]:
        """c = (1/n) Σ d x, per column."""
        return self.sum_weighted(source, 0.0) / max(self.active_count, 1)

    def deflate(self, target: Matrix) -> None:
        """Take the trivial eigenvector (the constant) out, in place."""
        self.subtract_from_rows(target, self.sum_weighted(target, self.tau) / max(self.row_weights.sum(), 1e-300))

    def subtract_from_rows(self, target: Matrix, value: NDArray[np.float64]) -> None:
        """Take one value per column off every row that has edges, in place."""
        write = as_strided_columns(target)
        self._each(lambda first, last: kernels.subtract(self.links, write, value, first, last))

    def clear_unusable_rows(self, target: Matrix) -> None:
        """Make the rows without edges zero, in place, and rows that no step of this package can have made.

        These are rows with an entry that is not finite or beyond `MAX_ENTRY`. One of them would spread to all others.
        """

        def work(first: int, last: int) -> None:
            rows = target[first:last]
            usable = (np.abs(rows) <= MAX_ENTRY).all(axis=1)  # false for NaN, too
            rows[~(self.active[first:last] & usable)] = 0

        self._each(work)

    def scale_columns(self, target: Matrix, factors: NDArray[np.float64], how: np.ufunc = np.multiply) -> None:
        """Multiply (or divide) every column by its factor, in place."""
        exact = factors.astype(target.dtype)
        self._each(lambda first, last: how(target[first:last], exact, out=target[first:last]))

    def gram(self, left: Matrix, right: Matrix) -> NDArray[np.float64]:
        """Σ (d+τ) left rightᵀ, k×k in float64, blocks added up in order."""
        return cross(left, right, self.threads, self.row_weights)

    def column_norms(self, source: Matrix) -> NDArray[np.float64]:
        """√Σ (d+τ) x², per column."""
        return np.sqrt(self.squared_column_norms(source))

    def squared_column_norms(self, source: Matrix) -> NDArray[np.float64]:
        """Σ (d+τ) x², per column."""

        def part(first: int, last: int) -> NDArray[np.float64]:
            return self.row_weights[first:last] @ np.square(source[first:last], dtype=np.float64)

        return total(part, self.rows, self.threads)

    def column_square_sums(self, source: Matrix) -> NDArray[np.float64]:
        """Σ x², per column."""
        return total(lambda a, b: np.square(source[a:b], dtype=np.float64).sum(axis=0), self.rows, self.threads)

    def max_row_length(self, source: Matrix) -> float:
        """The length of the longest row; NaN where an entry is."""
        longest: dict[int, float] = {}

        def work(first: int, last: int) -> None:
            squares = [
                np.square(source[first + a : first + b], dtype=np.float64).sum(axis=1)
                for a, b in block_ranges(last - first, SUB_BLOCK_ROWS)
            ]
            longest[first] = float(np.max([part.max(initial=0.0) for part in squares]))

        self._each(work)
        return float(np.sqrt(np.max(list(longest.values()), initial=0.0)))

    def transform_columns(self, target: Matrix, turn: NDArray[np.float64]) -> None:
        """target ← target · turn, in place, block by block."""
        matrix = turn.astype(target.dtype)

        def work(first: int, last: int) -> None:
            target[first:last] = target[first:last] @ matrix

        self._each(work)

    def make_noise(self, seed: int, columns: int, kind: Any) -> Matrix:
        """Columns that no graph has seen: the same for the same seed, independent of threads."""
        target = aligned_zeros(self.rows, columns, kind)
        self.fill_noise(target, np.random.Generator(np.random.Philox(seed)).integers(0, 2**64, self.rows, np.uint64))
        return target

    def fill_noise(self, target: Matrix, words: NDArray[np.uint64]) -> None:
        """Numbers that are hashes of a row's word and the column, in place."""
        self._each(lambda first, last: kernels.noise(self.links, words, target, first, last))

    def spectrum_lower_bound(self) -> float:
        """A safe lower bound of the spectrum: −1 always holds and is near where τ is small, else Lanczos tells."""
        return -1.0 if self.tau * self.active_count < self.total_strength else self.spectrum_bounds()[0]

    def spectrum_bounds(self) -> tuple[float, float]:
        """Bounds of the spectrum without the trivial value, from a few steps of Lanczos: hardly ever crossed."""
        if self.active_count < LANCZOS_STEPS + 2:
            return -1.0, 1.0
        root = np.sqrt(self.row_weights)
        inverse = self.to_device(np.divide(1.0, root, out=np.zeros_like(root), where=self.active))
        root, vector = self.to_device(root), self.make_noise(0, 1, np.float64)[:, 0]
        diagonal, off, basis = [], [], np.empty_like(vector, shape=(LANCZOS_STEPS, self.rows))
        vector -= root * (root @ vector) / (root @ root)
        beta = float(np.linalg.norm(vector))
        for step in range(LANCZOS_STEPS):
            basis[step] = vector / beta
            vector = self._symmetric(basis[step], inverse)
            diagonal.append(float(basis[step] @ vector))
            vector -= (basis[: step + 1] @ vector) @ basis[: step + 1]
            beta = float(np.linalg.norm(vector))
            if beta < 1e-12:
                break
            off.append(beta)
        return bounds(diagonal, off, beta)

    def _symmetric(self, vector: Matrix, inverse: Matrix) -> Matrix:
        """(D+τ)^½ W (D+τ)^-½ of one vector, given (D+τ)^-½."""
        source, target = inverse * vector, np.empty_like(vector)
        self._each(lambda first, last: kernels.multiply(self.links, source, target, first, last))
        target -= float(self.links.strength[: self.rows] @ source) / self.active_count
        target *= inverse
        return target

    def sum_weighted(self, source: Matrix, tau: float) -> NDArray[np.float64]:
        """Σ (d+τ) x, per column, with a τ that need not be the operator's own."""
        parts: dict[int, NDArray[np.float64]] = {}
        read = as_strided_columns(source)

        def work(first: int, last: int) -> None:
            parts[first] = np.empty(source.shape[1])
            kernels.sum_weighted_rows(self.links, read, tau, first, last, parts[first])

        self._each(work)
        return in_order(parts, self.rows)

    def _each(self, work: Callable[[int, int], None]) -> None:
        for_each_block(work, self.rows, size=BLOCK_ROWS, threads=self.threads)


def bounds(diagonal: list[float], off: list[float], beta: float) -> tuple[float, float]:
    """The ends of a spectrum within [−1, 1] by steps of Lanczos: the outer values, and how far off they may be."""
    values, vectors = eigh_tridiagonal(diagonal, off[: len(diagonal) - 1])
    slack = beta * np.abs(vectors[-1])
    return float(max(values[0] - slack[0], -1.0)), float(min(values[-1] + slack[-1], 1.0))


def cross(left: Matrix, right: Matrix, threads: int, measure: NDArray[np.float64]) -> NDArray[np.float64]:
    """Σ measure · left rightᵀ over rows, k×k in float64, blocks added up in order."""
    root = np.sqrt(measure)[:, None]

    def product(first: int, last: int) -> NDArray[np.float64]:
        scaled = left[first:last] * root[first:last]
        return scaled.T @ (scaled if left is right else right[first:last] * root[first:last])

    return total(product, len(left), threads) if len(left) else np.zeros((left.shape[1], right.shape[1]))


def total(part: Callable[[int, int], NDArray[np.float64]], rows: int, threads: int) -> NDArray[np.float64]:
    """The sum of `part(first, last)` over all rows, a few at a time: per block first to last, then over the blocks."""
    parts: dict[int, NDArray[np.float64]] = {}

    def work(first: int, last: int) -> None:
        parts[first] = np.sum(
            [part(first + a, first + b) for a, b in block_ranges(last - first, SUB_BLOCK_ROWS)], axis=0
        )

    for_each_block(work, rows, size=BLOCK_ROWS, threads=threads)
    return in_order(parts, rows)


def in_order(parts: dict[int, NDArray[np.float64]], rows: int) -> NDArray[np.float64]:
    """The sum of what the blocks gave, first to last."""
    total = np.zeros_like(parts[0])
    for first, _ in block_ranges(rows, BLOCK_ROWS):
        total += parts[first]
    return total
