"""Generators of growing graphs of any size; edges are computed independently, without storing earlier ones.

Every edge is a hash of its number. The target of an edge under preferential attachment is a copy of an endpoint of an
earlier edge, which is recomputed (Sanders and Schulz, 2016).
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

EDGES_PER_VERTEX = 10
EDGES_PER_ARRIVAL = 5  # of `make_arrivals`; `_cluster_model.py` relies on it
A, B, C = 0.57, 0.19, 0.19  # R-MAT probabilities of Graph500

Endpoints = tuple[NDArray[np.int64], NDArray[np.int64]]
EdgeGenerator = Callable[[int, int], Endpoints]


@njit(cache=True)
def _fill_preferential(first: int, src: NDArray[np.int64], dst: NDArray[np.int64]) -> None:
    """Compute edges of preferential attachment from the edge `first` on.

    A target is drawn from the slots of earlier vertices: slot 0 is vertex 0, odd slots are sources of earlier edges,
    even slots are their targets, which are computed in the same way.
    """
    for i in range(src.size):
        edge = first + i
        src[i] = edge // EDGES_PER_VERTEX + 1
        while True:
            slot = np.int64(mix(uint64(edge)) % uint64(2 * (edge - edge % EDGES_PER_VERTEX) + 1))
            if slot == 0:
                dst[i] = 0
                break
            edge = (slot - 1) // 2  # type: ignore[assignment]
            if slot % 2:
                dst[i] = edge // EDGES_PER_VERTEX + 1
                break


@njit(cache=True)
def _fill_rmat(first: int, scale: int, src: NDArray[np.int64], dst: NDArray[np.int64]) -> None:
    """Compute R-MAT edges from the edge `first` on: one quadrant, that is one bit of each endpoint, per level."""
    for i in range(src.size):
        u, v, word = 0, 0, mix(uint64(first + i))
        for _ in range(scale):
            word = mix(word)
            draw = (word >> uint64(11)) * (1.0 / 9007199254740992.0)
            u, v = 2 * u + (draw >= A + B), 2 * v + (A <= draw < A + B or draw >= A + B + C)
        src[i], dst[i] = u, v


def preferential_generator(edges: int) -> EdgeGenerator:
    """Return a generator of preferential attachment: each vertex has ten edges to endpoints of earlier edges."""

    def generate(first: int, last: int) -> Endpoints:
        src, dst = np.empty((2, last - first), np.int64)
        _fill_preferential(first, src, dst)
        return src, dst

    return generate


def rmat_generator(edges: int) -> EdgeGenerator:
    """Return a generator of R-MAT edges in the order they are drawn; about half of the ids become vertices."""
    scale = int(np.ceil(np.log2(max(edges // EDGES_PER_VERTEX, 2))))

    def generate(first: int, last: int) -> Endpoints:
        src, dst = np.empty((2, last - first), np.int64)
        _fill_rmat(first, scale, src, dst)
        return src, dst

    return generate


GRAPHS = {"preferential": preferential_generator, "rmat": rmat_generator}


def create_batch(endpoints: Endpoints, first: int) -> Batch:
    """Create a batch with text ids and weights between 0.5 and 1.5."""
    prefix, separator = (pa.scalar(text, pa.large_string()) for text in ("v", ""))
    src, dst = (
        pc.binary_join_element_wise(prefix, pa.array(side).cast(pa.large_string()), separator) for side in endpoints
    )
    weight = 0.5 + (np.arange(first, first + len(src)) * 0.618033988749895) % 1.0
    return Batch.of(src, dst, weight=weight)


def generate_batches(generate: EdgeGenerator, first: int, last: int, size: int) -> Any:
    """Yield the edges from `first` to before `last` in batches of `size`."""
    for start in range(first, last, size):
        yield create_batch(generate(start, min(start + size, last)), start)


def make_arrivals(first: int, last: int) -> Batch:
    """Return a batch of new vertices, each with edges to random earlier ones."""
    src = np.repeat(np.arange(first, last), EDGES_PER_ARRIVAL)
    share = np.random.Generator(np.random.Philox(first)).random(src.size)
    return Batch.of(src, (share * src).astype(np.int64))
