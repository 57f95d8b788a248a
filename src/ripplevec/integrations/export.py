"""Export of a model as plain arrays: all vertices with their vectors, and every edge once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Id
from ripplevec.embedder import Embedder


class GraphExport(NamedTuple):
    """All vertices and edges of a model at one moment.

    Vertices are in order of arrival. `src` and `dst` are positions in that order; in an undirected graph `src` is the
    earlier vertex.
    """

    ids: list[Id]
    vectors: NDArray[np.float32]
    src: NDArray[np.int64]
    dst: NDArray[np.int64]
    weight: NDArray[np.float32]
    directed: bool


def export_graph(model: Embedder) -> GraphExport:
    """Return all vertices and edges of a model. Writers wait until the arrays are copied."""
    with model.lock.reading():
        state = model.engine.gather()
        rows = state.rows_by_arrival()
        ids, vectors = state.ids_of(rows), state.get_vectors(rows)
        adjacency, size, directed = state.graph.adjacency, state.graph.row_count, state.graph.directed
        edges, unit = adjacency.to_packed(rows), adjacency.weight_scale.unit
    position = np.empty(size, np.int64)
    position[rows] = np.arange(len(rows))
    src, dst = np.repeat(np.arange(len(rows)), edges["degree"]), position[edges["neighbor"]]
    weight = (edges["outgoing" if directed else "weight"] / unit).astype(np.float32)
    keep = weight > 0 if directed else src < dst  # an edge is stored at both endpoints
    return GraphExport(ids, vectors, src[keep], dst[keep], weight[keep], directed)
