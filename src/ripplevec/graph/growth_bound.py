"""How much a batch may make a graph grow, told before it is applied."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch, Id, IdColumn, Op, ids_to_list, take_ids

Rows = NDArray[np.int64]


def growth_by(
    batch: Batch,
    find: Callable[[IdColumn], Rows],
    degrees: Callable[[Rows], Rows],
    ignored: Callable[[Rows, Rows], NDArray[np.bool_]] | None,
) -> tuple[int, int]:
    """At most how many vertices a batch adds, and at most how many edges it adds, changes or removes.

    The graph says which rows names have (−1: none), how many edges rows have and, where an edge that is there already
    changes nothing, which pairs of rows have one.
    """
    src, dst = find(batch.src), find(batch.dst)
    vertices = len(_unknown(batch.src, src) | _unknown(batch.dst, dst))
    op = np.zeros(len(batch), np.int8) if batch.op is None else batch.op
    edges = int(np.count_nonzero(op <= Op.REMOVE))
    gone = src[(op == Op.REMOVE_VERTEX) & (src >= 0)]
    if gone.size:  # with their edges, and with those that the batch itself has added to them
        edges += edges + int(degrees(gone).sum())
    if ignored is not None and batch.op is None:
        known = np.flatnonzero((src >= 0) & (dst >= 0))
        edges -= int(np.count_nonzero(ignored(src[known], dst[known])))
    return vertices, edges


def _unknown(column: IdColumn, rows: Rows) -> set[Id]:
    return set(ids_to_list(take_ids(column, np.flatnonzero(rows < 0))))
