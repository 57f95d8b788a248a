"""Growing graphs of any size, made up edge by edge: no edge depends on memory of the ones before.

Everything is a hash of the number of the edge. A target of preferential attachment is a copy of an end of an earlier
edge, which is found by working that edge out again (Sanders and Schulz, 2016).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit, uint64
from numpy.typing import NDArray

from ripplevec import Batch
from ripplevec.influence._kernels import mix

DEGREE = 10  # edges that a vertex comes with
A, B, C = 0.57, 0.19, 0.19  # of R-MAT, as Graph500 has them

Ends = tuple[NDArray[np.int64], NDArray[np.int64]]


@njit(cache=True)
def _attached(first: int, src: NDArray[np.int64], dst: NDArray[np.int64]) -> None:
    for i in range(src.size):
        edge = first + i
        src[i] = edge // DEGREE + 1
        while True:
            place = np.int64(mix(uint64(edge)) % uint64(2 * (edge - edge % DEGREE) + 1))
            if place == 0:
                dst[i] = 0
                break
            edge = (place - 1) // 2
            if place % 2:
                dst[i] = edge // DEGREE + 1
                break


@njit(cache=True)
def _recursive(first: int, scale: int, src: NDArray[np.int64], dst: NDArray[np.int64]) -> None:
    for i in range(src.size):
        u, v, word = 0, 0, mix(uint64(first + i))
        for _ in range(scale):
            word = mix(word)
            draw = (word >> uint64(11)) * (1.0 / 9007199254740992.0)
            u, v = 2 * u + (draw >= A + B), 2 * v + (A <= draw < A + B or draw >= A + B + C)
        src[i], dst[i] = u, v


def preferential(edges: int) -> Callable[[int, int], Ends]:
    """Every vertex comes with ten edges to ends of earlier edges: the well-connected are chosen more often."""

    def make(first: int, last: int) -> Ends:
        src, dst = np.empty((2, last - first), np.int64)
        _attached(first, src, dst)
        return src, dst

    return make


def rmat(edges: int) -> Callable[[int, int], Ends]:
    """R-MAT, in the order in which its edges are drawn; about half of its numbers become vertices."""
    scale = int(np.ceil(np.log2(max(edges // DEGREE, 2))))

    def make(first: int, last: int) -> Ends:
        src, dst = np.empty((2, last - first), np.int64)
        _recursive(first, scale, src, dst)
        return src, dst

    return make


GRAPHS = {"preferential": preferential, "rmat": rmat}


def batch_of(ends: Ends, first: int) -> Batch:
    """Edges with text for ids and weights between a half and one and a half."""
    prefix, nothing = (pa.scalar(text, pa.large_string()) for text in ("v", ""))
    src, dst = (pc.binary_join_element_wise(prefix, pa.array(side).cast(pa.large_string()), nothing) for side in ends)
    weight = 0.5 + (np.arange(first, first + len(src)) * 0.618033988749895) % 1.0
    return Batch.of(src, dst, weight=weight)


def batches(make: Callable[[int, int], Ends], first: int, last: int, size: int) -> Any:
    """The edges from `first` on, so many at a time."""
    for place in range(first, last, size):
        yield batch_of(make(place, min(place + size, last)), place)
