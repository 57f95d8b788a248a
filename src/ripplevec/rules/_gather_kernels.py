"""Gathering: the sum over a vertex's neighbors, and the row that a view's own operator makes of it.

These are the inner loops of everything that moves a vector. They are compiled into whoever calls them: to hand over
two dozen arrays costs more than to add up a row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ripplevec.graph._block_kernels import Links
from ripplevec.influence._kernels import sample_slot
from ripplevec.util.numba_intrinsics import as_float, prefetch, store_float
from ripplevec.views._kernels import RefreshCoefficients

AHEAD = 12  # neighbors of the next row whose vectors are asked for; a longer list is on its way by itself


class KernelState(NamedTuple):
    """The state that a batch works on."""

    links: Links
    arrival: NDArray[np.int64]
    placed: NDArray[np.uint8]
    vectors: NDArray[np.float32]
    coefficients: RefreshCoefficients


@njit(cache=True, nogil=True, forceinline=True)
def prefetch_rows(state: KernelState, rows: NDArray[np.int64], i: int, lines_too: bool) -> None:
    """Ask memory for what the rows after the i-th will read: their lines, their neighbors, these neighbors' vectors.

    With `lines_too`, also what is noted of these neighbors. A row is reached by three steps that each wait for the one
    before. Taken for different rows at a time, they overlap.
    """
    links, vectors = state.links, state.vectors
    if i + 6 < rows.size:
        prefetch(links.begin, rows[i + 6], 0)
    if i + 3 < rows.size:
        prefetch(links.neighbor, links.begin[rows[i + 3]], 0)
        prefetch(links.neighbor, links.begin[rows[i + 3]], 1)
    if i + 1 < rows.size:
        begin = links.begin[rows[i + 1]]
        for slot in range(begin, begin + min(links.degree[rows[i + 1]], AHEAD)):
            other = links.neighbor[slot]
            if lines_too:
                prefetch(state.arrival, other, 0)
            prefetch(vectors, other, 0)  # the first line: the processor sees for itself that more are read


@njit(cache=True, nogil=True, forceinline=True)
def _add_all(state: KernelState, begin: int, end: int, total: NDArray[np.float32]) -> tuple[float, float]:
    """Add a·x of the slots begin … end−1 to the total, one after the other; Σa and Σa²."""
    links, vectors = state.links, state.vectors
    sum_a, sum_aa = 0.0, 0.0
    slot = begin
    while slot + 4 <= end:  # four at a time: the total is loaded and stored a quarter as often
        a, p = links.weight[slot], vectors[links.neighbor[slot]]
        b, q = links.weight[slot + 1], vectors[links.neighbor[slot + 1]]
        c, r = links.weight[slot + 2], vectors[links.neighbor[slot + 2]]
        d, s = links.weight[slot + 3], vectors[links.neighbor[slot + 3]]
        for j in range(total.size):
            sum_j = total[j] + a * as_float(p[j])
            sum_j = sum_j + b * as_float(q[j])
            sum_j = sum_j + c * as_float(r[j])
            total[j] = sum_j + d * as_float(s[j])
        slot += 4
    for rest in range(slot, end):
        a, p = links.weight[rest], vectors[links.neighbor[rest]]
        for j in range(total.size):
            total[j] += a * as_float(p[j])
    for at in range(begin, end):
        sum_a += links.weight[at]
        sum_aa += np.float64(links.weight[at]) * links.weight[at]
    return sum_a, sum_aa


@njit(cache=True, nogil=True, forceinline=True)
def gather(state: KernelState, row: int, limit: int, key: int, total: NDArray[np.float32]) -> tuple[float, float]:
    """Sum a·x over all neighbors (over `limit` sampled ones, scaled up, where there are more); Σa and Σa²."""
    links = state.links
    begin, count = links.begin[row], links.degree[row]
    total[:] = 0
    if count <= limit:
        return _add_all(state, begin, begin + count, total)
    sum_a, sum_aa = 0.0, 0.0
    for i in range(limit):
        slot = begin + sample_slot(key, state.arrival[row], i, count)
        a, aa = _add_all(state, slot, slot + 1, total)
        sum_a += a
        sum_aa += aa
    if sum_a > 0:
        scale = links.strength[row] / sum_a
        for j in range(total.size):
            total[j] *= scale
        sum_a *= scale
        sum_aa *= scale * scale  # the effective number of neighbors stays that of the sample
    return sum_a, sum_aa


@njit(cache=True, nogil=True, forceinline=True)
def gather_placed(state: KernelState, row: int, before: int, total: NDArray[np.float32]) -> tuple[float, float]:
    """Sum a·x over the neighbors that are placed and have an arrival number below `before`; Σa and Σa²."""
    links = state.links
    first, end = links.begin[row], links.begin[row] + links.degree[row]
    total[:] = 0
    sum_a, sum_aa = 0.0, 0.0
    while first < end:  # nearly always all of them, in one stretch
        last = first
        while last < end and state.placed[links.neighbor[last]] and state.arrival[links.neighbor[last]] < before:
            last += 1
        if last > first:
            a, aa = _add_all(state, first, last, total)
            sum_a += a
            sum_aa += aa
        first = last + 1
    return sum_a, sum_aa


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def local_step(
    coefficients: RefreshCoefficients, total: NDArray[np.float32], sum_a: float, sum_aa: float, out: NDArray[np.float32]
) -> int:
    """Turn a sum over neighbors into a row: z = (Σax − c)/((d+τ)μ₁), times μ'(1 + ρ/b)/(μ'² + ρ/b).

    A view's part that comes out longer than the view's bound is shortened to it. Returns 1 where one was, else 0.
    """
    one = total.dtype.type(1)
    mu, center = (
        coefficients.columns[0],
        coefficients.columns[1],
    )  # unpacked together they would not be known to be contiguous
    shortened = 0
    for g in range(len(coefficients.views)):
        tau, top, ridge, _, unremarkable = coefficients.views[g]
        over = total.dtype.type(1.0 / ((sum_a + tau) * top))
        r = total.dtype.type(ridge * sum_aa / (sum_a * sum_a))
        limit, large = total.dtype.type(unremarkable), False
        for j in range(
            np.uint64(coefficients.bounds[g]), np.uint64(coefficients.bounds[g + 1])
        ):  # never negative: no check of that
            m = mu[j]
            value = (total[j] - center[j]) * over * (m * (one + r) / (m * m + r))
            store_float(out, j, value)
            large |= not abs(value) <= limit  # cheaper than a sum of squares, and true for NaN
        if large:
            shortened |= _shorten(coefficients, g, total, sum_a, sum_aa, out)
    return shortened


@njit(cache=True, nogil=True, error_model="numpy")
def _shorten(
    coefficients: RefreshCoefficients,
    g: int,
    total: NDArray[np.float32],
    sum_a: float,
    sum_aa: float,
    out: NDArray[np.float32],
) -> int:
    """Work out the part of view g again, in double precision, and scale it to the bound if it is longer than that.

    A part that is not finite even so, because the sum over neighbors is not, becomes zero. Returns 1 where the part
    was changed, else 0.
    """
    tau, top, ridge, longest, _ = coefficients.views[g]
    mu, center = coefficients.columns[0], coefficients.columns[1]
    over, r = 1.0 / ((sum_a + tau) * top), ridge * sum_aa / (sum_a * sum_a)
    first, last = coefficients.bounds[g], coefficients.bounds[g + 1]
    values = np.empty(last - first)
    squared = 0.0
    for j in range(first, last):
        m = np.float64(mu[j])
        values[j - first] = (np.float64(total[j]) - center[j]) * over * (m * (1.0 + r) / (m * m + r))
        squared += values[j - first] * values[j - first]
    if squared <= longest * longest:
        return 0
    scale = longest / np.sqrt(squared) if np.isfinite(squared) else 0.0
    for j in range(first, last):
        store_float(out, j, np.float32(values[j - first] * scale) if scale > 0.0 else np.float32(0.0))
    return 1
