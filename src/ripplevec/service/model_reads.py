"""Model reads for endpoints: each returns its values with the sequence number that they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Id, id_column
from ripplevec.embedder import Embedder
from ripplevec.engine.engine import Engine
from ripplevec.errors import UnknownVertexError
from ripplevec.service.path_ids import IdKind, candidate_ids


def resolve_id(model: Embedder, text: str, kind: IdKind) -> Id:
    """Return the id of the vertex that a path means; a text id takes precedence over an integer id."""
    for candidate in candidate_ids(text, kind):
        if candidate in model:
            return candidate
    raise UnknownVertexError([text])


def read_vertex(engine: Engine, text: str, kind: IdKind) -> dict[str, Any]:
    """Return the vector, degree and age of one vertex; its age is the number of vertices that arrived after it.

    The caller holds the read lock.
    """
    for candidate in candidate_ids(text, kind):
        row = engine.find_row(candidate)
        if row >= 0:
            info = engine.vertex_info(row)
            return {
                "id": candidate,
                "vector": engine.get_vector(row).tolist(),
                "degree": info.degree,
                "strength": info.strength,
                "placed": info.placed,
                "arrival": info.arrival,
                "age": engine.next_arrival - 1 - info.arrival,
                "sequence": engine.sequence,
            }
    raise UnknownVertexError([text])


def read_vectors(model: Embedder, ids: Sequence[Id]) -> tuple[int, NDArray[np.bool_], NDArray[np.float32]]:
    """Return the sequence number, a mask of the ids that exist, and the vectors of those."""
    column = id_column(list(ids))
    with model.lock.reading():
        engine = model.engine
        rows = engine.find_rows(column)
        exists = rows >= 0
        return engine.sequence, exists, engine.get_vectors(rows[exists])


def read_degrees(model: Embedder, ids: Sequence[Id]) -> tuple[int, NDArray[np.int64]]:
    """Return the sequence number, and the numbers of edges of vertices."""
    column = id_column(list(ids))
    with model.lock.reading():
        engine = model.engine
        return engine.sequence, engine.degrees(engine.rows_of(column))


def read_ages(model: Embedder, ids: Sequence[Id]) -> tuple[int, NDArray[np.int64]]:
    """Return the sequence number, and for each vertex the number of vertices that arrived after it."""
    with model.lock.reading():
        return model.engine.sequence, model.age(ids)


def read_neighbors(model: Embedder, vertex: Id, limit: int | None) -> tuple[int, list[tuple[Id, float]]]:
    """Return the sequence number, and the neighbors of a vertex with the weights of the edges."""
    with model.lock.reading():
        return model.engine.sequence, model.neighbors(vertex, limit)


def preview_vector(
    model: Embedder, neighbors: Sequence[Id], weights: Any, attributes: Any = None
) -> tuple[int, NDArray[np.float32]]:
    """Return the sequence number, and the vector that a new vertex with these neighbors and attributes would get."""
    with model.lock.reading():
        return model.engine.sequence, model.preview(neighbors, weights, attributes=attributes)


def score_pairs(
    model: Embedder, pairs: Sequence[tuple[Id, Id]], newcomers: Mapping[Id, Sequence[Id]]
) -> tuple[int, NDArray[np.float32]]:
    """Return the sequence number, and the scores of candidate edges."""
    with model.lock.reading():
        return model.engine.sequence, model.score(pairs, newcomers=newcomers)


def read_model_stats(model: Embedder) -> dict[str, Any]:
    """Return the statistics of the model that are available in constant time."""
    with model.lock.reading():
        engine = model.engine
        return {
            "sequence": engine.sequence,
            "vertices": len(engine),
            "edges": engine.edges,
            "dim": model.dim,
            "attribute_dim": engine.attribute_dim,
            "rule": model.rule,
            "started": engine.ready,
            "start_size": engine.start_size,
            "connected": None if engine.ready else engine.count_connected(),
            "anchors": engine.anchors,
            "growth_since_anchor": float(engine.growth),
            "events": engine.events,
            "changes": engine.changes,
        }


def read_digest(model: Embedder) -> tuple[int, str]:
    """Return the sequence number and the digest of the state at that number."""
    with model.lock.exclude_writers():
        return model.engine.sequence, model.engine.digest()
