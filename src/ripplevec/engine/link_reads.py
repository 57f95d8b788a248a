"""Scores of candidate edges, and recommendations: reads of a model by the cosines of its vectors.

A newcomer is a vertex that is not in the model. It is given by its neighbors, and has the vector that they would give
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Id, IdColumn, id_column, ids_to_list, take_ids
from ripplevec.engine.reads import EngineReads, Search
from ripplevec.errors import InvalidValueError, UnknownVertexError
from ripplevec.graph.adjacency import RowArray
from ripplevec.graph.graph import unit_weights
from ripplevec.search.exact import normalize_queries
from ripplevec.util.parallel import block_ranges

PAIRS_PER_BLOCK = 1 << 14
"""Pairs whose vectors are read at a time; bounds the memory of a call."""


class Newcomer(NamedTuple):
    """A vertex that is not in the model."""

    neighbors: RowArray
    vector: NDArray[np.float32]


def preview_newcomers(engine: EngineReads, newcomers: Mapping[Id, IdColumn]) -> dict[Id, Newcomer]:
    """Return the vectors of newcomers, given the neighbors of each."""
    previews = {}
    for vertex, neighbors in newcomers.items():
        if engine.find_row(vertex) >= 0:
            raise InvalidValueError.of("newcomers", "vertices that are not in the model", vertex)
        rows = engine.rows_of(neighbors)
        previews[vertex] = Newcomer(rows, engine.preview(rows, unit_weights(len(rows))))
    return previews


def score_pairs(
    engine: EngineReads, src: IdColumn, dst: IdColumn, newcomers: Mapping[Id, Newcomer]
) -> NDArray[np.float32]:
    """Return the cosine of each pair of vertices; 0 if one of them has no vector."""
    scores = np.empty(len(src), np.float32)
    for first, last in block_ranges(len(src), PAIRS_PER_BLOCK):
        part = slice(first, last)
        units = [_read_unit_vectors(engine, take_ids(column, part), newcomers) for column in (src, dst)]
        scores[part] = np.clip(np.einsum("ij,ij->i", *units), -1, 1)
    return scores


class Recommender:
    """Finds the best candidates for vertices, in one state of a model. Writers must be excluded meanwhile."""

    def __init__(
        self,
        engine: EngineReads,
        search: Search,
        among: IdColumn | None,
        newcomers: Mapping[Id, Newcomer],
        *,
        exclude_neighbors: bool,
    ) -> None:
        self._engine, self._search = engine, search
        self._newcomers, self._exclude_neighbors = newcomers, exclude_neighbors
        self._candidates = None if among is None else self._read_candidates(engine.rows_of(among))

    def recommend(self, vertex: Id, count: int) -> list[tuple[Id, float]]:
        """Return the candidates of highest cosine with a vertex, highest first."""
        row = self._engine.find_row(vertex)
        if row < 0 and vertex not in self._newcomers:
            raise UnknownVertexError([vertex])
        excluded = self._excluded_rows(vertex, row)
        if self._candidates is None:
            query = row if row >= 0 else self._newcomers[vertex].vector.astype(np.float64)
            rows, cosines = self._engine.nearest(self._search, query, count + excluded.size)
        else:
            rows, cosines = self._rank_candidates(vertex)
        kept = np.flatnonzero(~np.isin(rows, excluded))[:count]
        return list(zip(self._engine.ids_of(rows[kept]), cosines[kept].tolist(), strict=True))

    def _excluded_rows(self, vertex: Id, row: int) -> RowArray:
        itself = np.array([row] if row >= 0 else [], np.int64)
        if not self._exclude_neighbors:
            return itself
        neighbors = self._engine.neighbors(row)[0] if row >= 0 else self._newcomers[vertex].neighbors
        return np.concatenate([itself, neighbors])

    def _read_candidates(self, rows: RowArray) -> tuple[RowArray, NDArray[np.float64]]:
        """Return the candidates that have a vector, in order of arrival, and their vectors, scaled to length one."""
        rows = np.unique(rows)
        rows = rows[self._engine.placed(rows)]
        rows = rows[np.argsort(self._engine.arrival_numbers(rows), kind="stable")]
        return rows, normalize_queries(self._engine.get_vectors(rows))

    def _rank_candidates(self, vertex: Id) -> tuple[RowArray, NDArray[np.float32]]:
        """Return the candidates by descending cosine, and their cosines; among equals the earlier arrival is first."""
        assert self._candidates is not None
        rows, units = self._candidates
        query = _read_unit_vectors(self._engine, id_column([vertex]), self._newcomers)[0]
        if not query.any():
            return rows[:0], np.empty(0, np.float32)
        cosines = np.clip(units @ query, -1, 1).astype(np.float32)
        order = np.argsort(-cosines, kind="stable")
        return rows[order], cosines[order]


def _read_unit_vectors(engine: EngineReads, column: IdColumn, newcomers: Mapping[Id, Newcomer]) -> NDArray[np.float64]:
    """Return the vectors of vertices and newcomers, scaled to length one; zero for those without a vector."""
    rows = engine.find_rows(column)
    known, others = np.flatnonzero(rows >= 0), np.flatnonzero(rows < 0)
    names = ids_to_list(take_ids(column, others))
    if missing := [vertex for vertex in names if vertex not in newcomers]:
        raise UnknownVertexError(missing)
    vectors = np.zeros((len(column), engine.dim), np.float32)
    vectors[known] = engine.get_vectors(rows[known])
    for position, vertex in zip(others.tolist(), names, strict=True):
        vectors[position] = newcomers[vertex].vector
    return normalize_queries(vectors)
