"""Vertices for the map: a reproducible sample, vertices by id, and the neighborhood of one vertex."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Id, id_column
from ripplevec.embedder import Embedder
from ripplevec.engine.engine import Engine

_GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)  # its multiples are spread evenly over 64 bits (Fibonacci hashing)


class VertexSample(NamedTuple):
    """Placed vertices: their ids, arrival numbers and vectors."""

    ids: list[Id]
    arrival: NDArray[np.int64]
    vectors: NDArray[np.float32]


class Neighborhood(NamedTuple):
    """The arrival number and degree of a vertex, and some of its neighbors with their edge weights."""

    arrival: int
    degree: int
    neighbors: list[tuple[Id, float]]


def sample_vertices(model: Embedder, fraction: float) -> VertexSample:
    """Return about this fraction of the vertices in order of arrival.

    The sample is reproducible, and a smaller fraction yields a subset of it.
    """
    with model.lock.reading():
        return _read_rows(model.engine, model.engine.rows_by_arrival(partial(is_sampled, fraction=fraction)))


def read_vertices(model: Embedder, ids: list[Id]) -> VertexSample:
    """Return those of the given vertices that exist and are placed."""
    with model.lock.reading():
        engine = model.engine
        rows = engine.find_rows(id_column(ids))
        return _read_rows(engine, rows[rows >= 0])


def read_neighborhood(model: Embedder, vertex: Id, limit: int) -> Neighborhood:
    """Return a vertex with up to `limit` of its neighbors, those of the latest edges first."""
    with model.lock.reading():
        engine = model.engine
        row = int(engine.rows_of(id_column([vertex]))[0])
        info, (rows, weights) = engine.vertex_info(row), engine.neighbors(row, limit)
        neighbors = list(zip(engine.ids_of(rows), weights.tolist(), strict=True))
    return Neighborhood(info.arrival, info.degree, neighbors)


def is_sampled(arrival: NDArray[np.int64], fraction: float) -> NDArray[np.bool_]:
    """Return which vertices belong to a sample of this fraction; depends on their arrival numbers only."""
    if fraction >= 1:
        return np.ones(len(arrival), bool)
    return arrival.astype(np.uint64) * _GOLDEN_RATIO < np.uint64(fraction * 2.0**64)


def _read_rows(engine: Engine, rows: NDArray[np.int64]) -> VertexSample:
    rows = rows[engine.placed(rows)]
    return VertexSample(engine.ids_of(rows), engine.arrival_numbers(rows), engine.get_vectors(rows))
