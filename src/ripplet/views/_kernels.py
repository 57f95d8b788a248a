"""Kernels of a view's operator W = (D+τ)⁻¹(A − (1/n) 1 dᵀ), over rows of the adjacency arena."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ripplet.graph._kernels import Links


class Frame(NamedTuple):
    """What a refresh needs to know between anchors, by view and by column."""

    bounds: NDArray[np.int64]  # view g has the columns bounds[g] … bounds[g+1]−1
    tau: NDArray[np.float64]  # per view: the regularisation τ
    top: NDArray[np.float64]  # per view: the largest eigenvalue μ₁
    ridge: NDArray[np.float64]  # per view: ρ
    mu: NDArray[np.float32]  # per column: μ/μ₁, not below a floor
    centre: NDArray[np.float32]  # per column: c


@njit(cache=True, nogil=True)
def combine(
    links: Links,
    source: NDArray[np.float32],
    centre: NDArray[np.float64],
    tau: float,
    factors: tuple[float, float, float],
    target: NDArray[np.float32],
    first: int,
    last: int,
) -> None:
    """target ← f₀ · W source + f₁ · source + f₂ · target, for the rows first … last−1; rows without edges become 0.

    A row of the target depends on its own old value alone, so the recurrence of a filter needs no third matrix.
    """
    total = np.empty(source.shape[1], source.dtype)
    kind = source.dtype.type
    on_source, on_target = kind(factors[1]), kind(factors[2])
    middle = centre.astype(source.dtype)
    for row in range(first, last):
        count = links.count[row]
        if count == 0:
            target[row] = 0
            continue
        total[:] = 0
        begin = links.begin[row]
        for slot in range(begin, begin + count):
            a, other = links.weight[slot], links.neighbour[slot]
            for j in range(total.size):
                total[j] += a * source[other, j]
        on_step = kind(factors[0] / (links.strength[row] + tau))
        for j in range(total.size):
            step = (total[j] - middle[j]) * on_step
            target[row, j] = step + on_source * source[row, j] + on_target * target[row, j]


@njit(cache=True, nogil=True)
def weighted_sum(
    links: Links, source: NDArray[np.float32], tau: float, first: int, last: int, out: NDArray[np.float64]
) -> None:
    """out ← Σ (d+τ) x over the rows first … last−1 that have edges, in float64."""
    out[:] = 0
    for row in range(first, last):
        if links.count[row]:
            share = links.strength[row] + tau
            for j in range(out.size):
                out[j] += share * source[row, j]


@njit(cache=True, nogil=True)
def subtract(links: Links, target: NDArray[np.float32], value: NDArray[np.float64], first: int, last: int) -> None:
    """Take one value off every row first … last−1 that has edges."""
    for row in range(first, last):
        if links.count[row]:
            for j in range(value.size):
                target[row, j] -= value[j]


@njit(cache=True, nogil=True)
def noise(links: Links, words: NDArray[np.uint64], target: NDArray[np.float32], first: int, last: int) -> None:
    """Fill rows that have edges with hashed numbers in [−1, 1), one word per row and column."""
    for row in range(first, last):
        for j in range(target.shape[1]):
            x = (words[row] ^ (np.uint64(j + 1) * np.uint64(0x9E3779B97F4A7C15))) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            x ^= x >> np.uint64(31)
            target[row, j] = (x >> np.uint64(11)) * (2.0 / 9007199254740992.0) - 1.0 if links.count[row] else 0.0


@njit(cache=True, nogil=True)
def serve(frame_bounds: NDArray[np.int64], weights: NDArray[np.float64], rows: NDArray[np.float32]) -> None:
    """Scale each view's part of each row to its weight, then the whole to one, in place; what is zero stays zero."""
    for i in range(len(rows)):
        whole = 0.0
        for g in range(weights.size):
            first, last = frame_bounds[g], frame_bounds[g + 1]
            length = 0.0
            for j in range(first, last):
                length += np.float64(rows[i, j]) * rows[i, j]
            if length > 0:
                scale = weights[g] / np.sqrt(length)
                whole += weights[g] * weights[g]
                for j in range(first, last):
                    rows[i, j] *= scale
        if whole > 0:
            scale = 1 / np.sqrt(whole)
            for j in range(rows.shape[1]):
                rows[i, j] *= scale
