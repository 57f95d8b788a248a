"""The operator of a spectral view, matrix-free.

The eigenvectors y of the regularised normalised adjacency S = (D+τ)^-½ (A + (τ/n) 11ᵀ) (D+τ)^-½ are worked with as
x = (D+τ)^-½ y. Then the trivial one is constant, and on the rest S acts as the step that a refresh makes row by row:

    W x = (A x − c) / (d + τ),   c = (1/n) Σ d x,   W self-adjoint in the inner product Σ (d+τ) x x'.

Rows without edges take no part: they are zero, before and after.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

from ripplet.graph.adjacency import Adjacency
from ripplet.parallel import blocks, for_blocks
from ripplet.views import _kernels as kernels

BLOCK = 8_192  # rows per block: reductions run over these, in order, whatever the number of threads
LANCZOS_STEPS = 16

Matrix = NDArray[Any]


class Operator:
    """W for one graph and one τ, on the first `rows` rows."""

    def __init__(self, adjacency: Adjacency, rows: int, tau: float, threads: int = 1) -> None:
        links = adjacency.links
        self.adjacency, self.links, self.rows, self.tau, self.threads = adjacency, links, rows, tau, threads
        self.active = links.count[:rows] > 0
        self.size = int(self.active.sum())
        self.measure = np.where(self.active, links.strength[:rows] + tau, 0.0)

    def combine(self, source: Matrix, target: Matrix, factors: tuple[float, float, float]) -> None:
        """target ← f₀ · W source + f₁ · source + f₂ · target."""
        centre = self.centre(source)

        def work(first: int, last: int) -> None:
            kernels.combine(self.links, source, centre, self.tau, factors, target, first, last)

        self._each(work)

    def step(self, source: Matrix) -> Matrix:
        """W source."""
        target = np.zeros_like(source)
        self.combine(source, target, (1.0, 0.0, 0.0))
        return target

    def centre(self, source: Matrix) -> NDArray[np.float64]:
        """c = (1/n) Σ d x, per column."""
        return self._sum(source, 0.0) / max(self.size, 1)

    def deflate(self, target: Matrix) -> None:
        """Take the trivial eigenvector (the constant) out, in place."""
        mean = self._sum(target, self.tau) / max(self.measure.sum(), 1e-300)
        self._each(lambda first, last: kernels.subtract(self.links, target, mean, first, last))

    def gram(self, left: Matrix, right: Matrix) -> NDArray[np.float64]:
        """Σ (d+τ) left rightᵀ, k×k in float64, blocks added up in order."""
        return cross(left, right, self.threads, self.measure)

    def squares(self, source: Matrix) -> NDArray[np.float64]:
        """Σ x², per column."""
        parts: dict[int, NDArray[np.float64]] = {}

        def work(first: int, last: int) -> None:
            parts[first] = np.square(source[first:last], dtype=np.float64).sum(axis=0)

        self._each(work)
        return in_order(parts, self.rows)

    def turn(self, target: Matrix, turn: NDArray[np.float64]) -> None:
        """target ← target · turn, in place, block by block."""
        matrix = turn.astype(target.dtype)

        def work(first: int, last: int) -> None:
            target[first:last] = target[first:last] @ matrix

        self._each(work)

    def noise(self, seed: int, columns: int, kind: Any) -> Matrix:
        """Columns that no graph has seen: the same for the same seed, independent of threads."""
        target = np.zeros((self.rows, columns), kind)
        words = np.random.Generator(np.random.Philox(seed)).integers(0, 2**64, self.rows, np.uint64)
        self._each(lambda first, last: kernels.noise(self.links, words, target, first, last))
        return target

    def lowest(self) -> float:
        """A safe lower bound of the spectrum: −1 always holds and is near where τ is small, else Lanczos tells."""
        if self.size < LANCZOS_STEPS + 2 or self.tau * self.size < self.links.strength[: self.rows].sum():
            return -1.0
        root = np.sqrt(self.measure)
        inverse = np.divide(1.0, root, out=np.zeros_like(root), where=self.active)
        diagonal, off, basis = [], [], []
        vector = self.noise(0, 1, np.float64)[:, 0]
        vector -= root * (root @ vector) / (root @ root)
        beta = float(np.linalg.norm(vector))
        for _ in range(LANCZOS_STEPS):
            vector /= beta
            basis.append(vector)
            following = root * self.step((inverse * vector)[:, None])[:, 0]
            diagonal.append(float(vector @ following))
            for earlier in basis:
                following -= earlier * (earlier @ following)
            beta = float(np.linalg.norm(following))
            if beta < 1e-12:
                break
            off.append(beta)
            vector = following
        size = len(diagonal)
        values, vectors = eigh_tridiagonal(diagonal, off[: size - 1])
        return float(max(values[0] - beta * abs(vectors[-1, 0]), -1.0))

    def _sum(self, source: Matrix, tau: float) -> NDArray[np.float64]:
        parts: dict[int, NDArray[np.float64]] = {}

        def work(first: int, last: int) -> None:
            parts[first] = np.empty(source.shape[1])
            kernels.weighted_sum(self.links, source, tau, first, last, parts[first])

        self._each(work)
        return in_order(parts, self.rows)

    def _each(self, work: Callable[[int, int], None]) -> None:
        for_blocks(work, self.rows, size=BLOCK, threads=self.threads)


def cross(left: Matrix, right: Matrix, threads: int, measure: NDArray[np.float64]) -> NDArray[np.float64]:
    """Σ measure · left rightᵀ over rows, k×k in float64, blocks added up in order."""
    parts: dict[int, NDArray[np.float64]] = {}

    def work(first: int, last: int) -> None:
        parts[first] = (left[first:last] * measure[first:last, None]).T @ right[first:last].astype(np.float64)

    for_blocks(work, len(left), size=BLOCK, threads=threads)
    return in_order(parts, len(left)) if parts else np.zeros((left.shape[1], right.shape[1]))


def in_order(parts: dict[int, NDArray[np.float64]], rows: int) -> NDArray[np.float64]:
    """The sum of what the blocks gave, first to last."""
    total = np.zeros_like(parts[0])
    for first, _ in blocks(rows, BLOCK):
        total += parts[first]
    return total
