"""What the page sees of a model: a fair sample of its vertices, some of them by name, and who is around one."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Id, id_column
from ripplevec.embedder import Embedder
from ripplevec.engine.engine import Engine

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # multiples of it are spread evenly over 64 bits


class VertexSample(NamedTuple):
    """Some vertices that have a place: their names, their numbers in order of arrival, their vectors."""

    ids: list[Id]
    arrival: NDArray[np.int64]
    vectors: NDArray[np.float32]


class Neighborhood(NamedTuple):
    """A vertex, how many neighbors it has, and the first of them with the weights of their edges."""

    arrival: int
    degree: int
    neighbors: list[tuple[Id, float]]


def sample(model: Embedder, share: float) -> VertexSample:
    """About this share of the vertices, in order of arrival; the same ones every time, and fewer of them for less."""
    with model.lock.reading():
        return _glimpse(model.engine, model.engine.rows_by_arrival(partial(chosen, share=share)))


def named(model: Embedder, ids: list[Id]) -> VertexSample:
    """Those of the named vertices that exist and have a place."""
    with model.lock.reading():
        engine = model.engine
        rows = engine.find_rows(id_column(ids))
        return _glimpse(engine, rows[rows >= 0])


def around(model: Embedder, vertex: Id, most: int) -> Neighborhood:
    """Who a vertex is connected to: `most` of its neighbors, the latest edges first."""
    with model.lock.reading():
        engine = model.engine
        row = int(engine.rows_of(id_column([vertex]))[0])
        vertex_info, (rows, weights) = engine.vertex_info(row), engine.neighbors(row, most)
        neighbors = list(zip(engine.ids_of(rows), weights.tolist(), strict=True))
    return Neighborhood(vertex_info.arrival, vertex_info.degree, neighbors)


def anchors(model: Embedder) -> int:
    """How many anchors there have been."""
    return model.engine.anchors


def chosen(arrival: NDArray[np.int64], share: float) -> NDArray[np.bool_]:
    """Which vertices are in a sample of this share, by their numbers alone."""
    if share >= 1:
        return np.ones(len(arrival), bool)
    return arrival.astype(np.uint64) * _GOLDEN < np.uint64(share * 2.0**64)


def _glimpse(engine: Engine, rows: NDArray[np.int64]) -> VertexSample:
    rows = rows[engine.placed(rows)]
    return VertexSample(engine.ids_of(rows), engine.arrival_numbers(rows), engine.get_vectors(rows))
