"""Inner loops of rule `ripple`: gather the weighted sum over a vertex's neighbors, and turn it into a row.

The kernels are inlined into their callers: passing two dozen arrays costs more than summing a row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph._block_kernels import Links
from ripplevec.influence._kernels import sample_slot
from ripplevec.util.numba_intrinsics import allocation_free, as_float, prefetch, store_float
from ripplevec.views._kernels import RefreshCoefficients

PREFETCHED_VECTORS = 12  # neighbors of the next row whose vectors are prefetched; hardware handles longer lists


class KernelState(NamedTuple):
    """The graph and vectors that kernels read and modify."""

    links: Links
    arrival: NDArray[np.int64]  # arrival number per row
    placed: NDArray[np.uint8]  # whether a row has a vector
    vectors: NDArray[np.float32]  # rows in internal coordinates; half precision as uint16
    coefficients: RefreshCoefficients


@allocation_free(forceinline=True)
def prefetch_rows(state: KernelState, rows: NDArray[np.int64], i: int, with_arrival: bool) -> None:
    """Prefetch the data of the rows after the i-th: list positions, neighbors, and the neighbors' vectors.

    With `with_arrival`, also the neighbors' arrival numbers. Each of these reads depends on the one before; issued for
    different rows at once, they overlap.
    """
    links, vectors = state.links, state.vectors
    if i + 6 < rows.size:
        prefetch(links.begin, rows[i + 6], 0)
    if i + 3 < rows.size:
        prefetch(links.neighbor, links.begin[rows[i + 3]], 0)
        prefetch(links.neighbor, links.begin[rows[i + 3]], 1)
    if i + 1 < rows.size:
        begin = links.begin[rows[i + 1]]
        for slot in range(begin, begin + min(links.degree[rows[i + 1]], PREFETCHED_VECTORS)):
            other = links.neighbor[slot]
            if with_arrival:
                prefetch(state.arrival, other, 0)
            prefetch(vectors, other, 0)  # only the first cache line; the hardware prefetcher fetches the rest


@allocation_free(forceinline=True)
def _add_slots(state: KernelState, begin: int, end: int, total: NDArray[np.float32]) -> tuple[float, float]:
    """Add a·x over slots begin … end−1 to `total`, in order; return Σa and Σa²."""
    links, vectors = state.links, state.vectors
    sum_a, sum_aa = 0.0, 0.0
    slot = begin
    while slot + 4 <= end:  # unrolled by four: the total is loaded and stored a quarter as often
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
    for slot in range(begin, end):
        sum_a += links.weight[slot]
        sum_aa += np.float64(links.weight[slot]) * links.weight[slot]
    return sum_a, sum_aa


@allocation_free(forceinline=True)
def gather(state: KernelState, row: int, limit: int, key: int, total: NDArray[np.float32]) -> tuple[float, float]:
    """Write Σ a·x over all neighbors to `total`; return Σa and Σa².

    With more than `limit` neighbors, sums a sample of `limit` of them, scaled up to the full strength.
    """
    links = state.links
    begin, count = links.begin[row], links.degree[row]
    total[:] = 0
    if count <= limit:
        return _add_slots(state, begin, begin + count, total)
    sum_a, sum_aa = 0.0, 0.0
    for i in range(limit):
        slot = begin + sample_slot(key, state.arrival[row], i, count)
        a, aa = _add_slots(state, slot, slot + 1, total)
        sum_a += a
        sum_aa += aa
    if sum_a > 0:
        scale = links.strength[row] / sum_a
        for j in range(total.size):
            total[j] *= scale
        sum_a *= scale
        sum_aa *= scale * scale  # keeps the effective number of neighbors of the sample
    return sum_a, sum_aa


@allocation_free(forceinline=True)
def gather_placed(state: KernelState, row: int, before: int, total: NDArray[np.float32]) -> tuple[float, float]:
    """Write Σ a·x over placed neighbors with arrival number below `before` to `total`; return Σa and Σa²."""
    links = state.links
    first, end = links.begin[row], links.begin[row] + links.degree[row]
    total[:] = 0
    sum_a, sum_aa = 0.0, 0.0
    while first < end:  # nearly always a single run over the whole list
        last = first
        while last < end and state.placed[links.neighbor[last]] and state.arrival[links.neighbor[last]] < before:
            last += 1
        if last > first:
            a, aa = _add_slots(state, first, last, total)
            sum_a += a
            sum_aa += aa
        first = last + 1
    return sum_a, sum_aa


@allocation_free(forceinline=True, error_model="numpy")
def local_step(
    coefficients: RefreshCoefficients, total: NDArray[np.float32], sum_a: float, sum_aa: float, out: NDArray[np.float32]
) -> int:
    """Compute a row from a neighbor sum: z = (Σax − c)/((d+τ)μ₁), times μ'(1 + ρ/b)/(μ'² + ρ/b).

    A view's part longer than the view's length bound is shortened to it. Returns 1 if a part was shortened, else 0.
    """
    one = total.dtype.type(1)
    # Indexed one by one: unpacked together, the compiler would not know that they are contiguous.
    mu, center = coefficients.per_column[0], coefficients.per_column[1]
    shortened = 0
    for g in range(len(coefficients.per_view)):
        tau, top, ridge, _, entry_limit = coefficients.per_view[g]
        over = total.dtype.type(1.0 / ((sum_a + tau) * top))
        r = total.dtype.type(ridge * sum_aa / (sum_a * sum_a))
        limit, large = total.dtype.type(entry_limit), False
        # Unsigned, so that no wrap-around check for negative indices is compiled.
        for j in range(np.uint64(coefficients.bounds[g]), np.uint64(coefficients.bounds[g + 1])):
            m = mu[j]
            value = (total[j] - center[j]) * over * (m * (one + r) / (m * m + r))
            store_float(out, j, value)
            large |= not abs(value) <= limit  # cheaper than a sum of squares, and true for NaN
        if large:
            shortened |= _shorten_part(coefficients, g, total, sum_a, sum_aa, out)
    return shortened


@allocation_free(forceinline=True, error_model="numpy")
def _step_in_double(total: float, center: float, mu: float, over: float, r: float) -> float:
    """Return one entry of `local_step`, in double precision."""
    m = np.float64(mu)
    return float((np.float64(total) - center) * over * (m * (1.0 + r) / (m * m + r)))


@allocation_free(inner=True, error_model="numpy")
def _shorten_part(
    coefficients: RefreshCoefficients,
    g: int,
    total: NDArray[np.float32],
    sum_a: float,
    sum_aa: float,
    out: NDArray[np.float32],
) -> int:
    """Recompute the part of view g in double precision and scale it to the length bound if it is longer.

    A part that is still not finite, because the neighbor sum is not, becomes zero. Returns 1 if the part was changed,
    else 0.
    """
    tau, top, ridge, bound, _ = coefficients.per_view[g]
    mu, center = coefficients.per_column[0], coefficients.per_column[1]
    over, r = 1.0 / ((sum_a + tau) * top), ridge * sum_aa / (sum_a * sum_a)
    first, last = coefficients.bounds[g], coefficients.bounds[g + 1]
    squared = 0.0
    for j in range(first, last):
        value = _step_in_double(total[j], center[j], mu[j], over, r)
        squared += value * value
    if squared <= bound * bound:
        return 0
    scale = bound / np.sqrt(squared) if np.isfinite(squared) else 0.0
    for j in range(first, last):
        value = _step_in_double(total[j], center[j], mu[j], over, r) * scale
        store_float(out, j, np.float32(value) if scale > 0.0 else np.float32(0.0))
    return 1
