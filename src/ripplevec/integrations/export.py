"""A model as others take it over: all vertices with their vectors, and every edge once, of one moment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Id
from ripplevec.embedder import Embedder


class Whole(NamedTuple):
    """Vertices in order of arrival; edges as places among them, the earlier vertex first where nobody said which."""

    ids: list[Id]
    vectors: NDArray[np.float32]
    src: NDArray[np.int64]
    dst: NDArray[np.int64]
    weight: NDArray[np.float32]
    directed: bool


def whole(model: Embedder) -> Whole:
    """All of a model. Writers wait meanwhile."""
    with model.lock.reading():
        state = model.engine.gather()
        rows = state.rows_by_arrival()
        ids, vectors = state.names(rows), state.serve(rows)
        adjacency, size, directed = state.graph.adjacency, state.graph.rows, state.graph.directed
        edges, unit = adjacency.packed(rows), adjacency.scale.unit
    place = np.empty(size, np.int64)
    place[rows] = np.arange(len(rows))
    src, dst = np.repeat(np.arange(len(rows)), edges["degree"]), place[edges["neighbor"]]
    weight = (edges["outgoing" if directed else "weight"] / unit).astype(np.float32)  # an edge is held at both ends
    kept = weight > 0 if directed else src < dst
    return Whole(ids, vectors, src[kept], dst[kept], weight[kept], directed)
