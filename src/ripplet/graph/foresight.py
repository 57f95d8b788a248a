"""How much a batch may make a graph grow, told before it is applied."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ripplet.events import Batch, IdColumn, Op, as_list, take
from ripplet.graph import _kernels as kernels
from ripplet.graph.graph import Graph

Rows = NDArray[np.int64]


def growth_by(graph: Graph, batch: Batch) -> tuple[int, int]:
    """At most how many vertices a batch adds, and at most how many edges it adds, changes or removes."""
    src, dst = graph.ids.find(batch.src), graph.ids.find(batch.dst)
    vertices = len(_unknown(batch.src, src) | _unknown(batch.dst, dst))
    op = np.zeros(len(batch), np.int8) if batch.op is None else batch.op
    edges = np.count_nonzero(op <= Op.REMOVE)
    gone = src[(op == Op.REMOVE_VERTEX) & (src >= 0)]
    if gone.size:  # with their edges, and with those that the batch itself has added to them
        edges += edges + int(graph.adjacency.links.count[gone].sum())
    if graph.adjacency.repeated == kernels.IGNORE and batch.op is None:
        known = np.flatnonzero((src >= 0) & (dst >= 0))
        edges -= np.count_nonzero(graph.adjacency.has_edges(src[known], dst[known]))
    return vertices, int(edges)


def _unknown(column: IdColumn, rows: Rows) -> set[int | str]:
    return set(as_list(take(column, np.flatnonzero(rows < 0))))
