"""Read access to the state of a model: vertices, edges, vectors and changes.

Code that reads a model uses these methods only and treats rows as opaque numbers. A state on several machines can then
provide the same methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Id, IdColumn
from ripplevec.changes import BatchOutcome, Changes
from ripplevec.graph.adjacency import RowArray, merge_duplicates
from ripplevec.graph.batch_validation import GraphLookup
from ripplevec.graph.graph import Graph
from ripplevec.rules.base import Rule
from ripplevec.rules.vector_store import VectorStore
from ripplevec.search.searcher import Query, SearchResults, SearchTarget, query_from_row, query_from_vector


class VertexInfo(NamedTuple):
    """Properties of one vertex, besides its id and its vector."""

    arrival: int
    degree: int
    strength: float  # sum of the edge weights
    placed: bool  # whether it has a vector


class EngineReads:
    """Read methods of an engine.

    Rows come from `find_row`, `find_rows`, `rows_of` and `rows_by_arrival`, and are valid until the next batch.
    """

    graph: Graph
    rule: Rule
    store: VectorStore
    sequence: int
    anchors: int

    # ------------------------------------------------------------------ vertices and ids

    def __len__(self) -> int:
        return len(self.graph)

    @property
    def edges(self) -> int:
        """Number of edges."""
        return self.graph.adjacency.edge_count

    @property
    def next_arrival(self) -> int:
        """Arrival number of the next new vertex."""
        return self.graph.next_arrival

    @property
    def ready(self) -> bool:
        """Whether the start has been computed, so that arrivals can be placed."""
        return self.rule.ready

    @property
    def graph_lookup(self) -> GraphLookup:
        """The graph, as needed to check whether a batch can be applied."""
        return self.graph

    def find_row(self, vertex: Id) -> int:
        """Return the row of a vertex, −1 if it is unknown."""
        return self.graph.ids.find_row(vertex)

    def find_rows(self, column: IdColumn) -> RowArray:
        """Return the rows of vertices, −1 for unknown ones."""
        return self.graph.ids.find_rows(column)

    def rows_of(self, column: IdColumn) -> RowArray:
        """Return the rows of vertices; raise `UnknownVertexError` if some are unknown."""
        return self.graph.rows_of(column)

    def rows_by_arrival(self, select: Callable[[RowArray], NDArray[np.bool_]] | None = None) -> RowArray:
        """Return the rows of all vertices, or of those whose arrival numbers `select` marks, in order of arrival."""
        return self.graph.rows_by_arrival(select)

    def id_column_of(self, rows: RowArray) -> IdColumn:
        """Return the ids of rows as a column."""
        return self.graph.ids.to_column(rows)

    def ids_of(self, rows: RowArray) -> list[Id]:
        """Return the ids of rows as a list of ints and strs."""
        return self.graph.ids.to_list(rows)

    # ------------------------------------------------------------------ properties of vertices

    def arrival_numbers(self, rows: RowArray) -> RowArray:
        """Return the arrival numbers of rows."""
        return self.graph.arrival[rows]

    def degrees(self, rows: RowArray) -> NDArray[np.int64]:
        """Return the number of edges of rows, in any direction."""
        return self.graph.adjacency.links.degree[rows].astype(np.int64)

    def placed(self, rows: RowArray) -> NDArray[np.bool_]:
        """Return which rows have a vector."""
        return self.store.placed[rows] != 0

    def vertex_info(self, row: int) -> VertexInfo:
        """Return the properties of one vertex."""
        links = self.graph.adjacency.links
        return VertexInfo(
            int(self.graph.arrival[row]),
            int(links.degree[row]),
            float(links.strength[row]) / self.graph.adjacency.weight_scale.unit,
            bool(self.store.placed[row]),
        )

    def neighbors(self, row: int, limit: int | None = None) -> tuple[RowArray, NDArray[np.float32]]:
        """Return the neighbors of a row and the edge weights, latest edge first: all, or `limit` of them."""
        adjacency = self.graph.adjacency
        links, slots = adjacency.links, adjacency.slots(np.array([row]))[::-1][:limit]
        return links.neighbor[slots].astype(np.int64), links.weight[slots] / np.float32(adjacency.weight_scale.unit)

    # ------------------------------------------------------------------ vectors

    def get_vectors(self, rows: RowArray) -> NDArray[np.float32]:
        """Return the vectors of rows as users see them."""
        return self.rule.to_served(self.store.vectors[rows])

    def get_vector(self, row: int) -> NDArray[np.float32]:
        """Return the vector of one row as users see it."""
        return self.rule.to_served(self.store.vectors[row : row + 1])[0]

    def preview(self, rows: RowArray, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the vector of a new vertex with edges to these rows; a row may occur more than once."""
        adjacency = self.graph.adjacency
        edges = merge_duplicates(rows, weights * np.float32(adjacency.weight_scale.unit), adjacency.duplicate_policy)
        return self.rule.to_served(self.rule.preview(self.store, *edges)[None])[0]

    def nearest(
        self, search: Callable[[SearchTarget, Query, int], SearchResults], like: int | NDArray[np.float64], count: int
    ) -> tuple[RowArray, NDArray[np.float32]]:
        """Return the rows of highest cosine with a row (itself excluded) or with a vector, highest first.

        `search` comes from `Searcher.open_search`.
        """
        target = SearchTarget(self.store, self.rule, self.sequence, self.anchors)
        if isinstance(like, int):
            query = query_from_row(self.rule, self.store.vectors[like], like)
        else:
            query = query_from_vector(self.rule, like)
        rows, cosines = search(target, query, min(count, max(len(self), 1)))
        found = rows[0] >= 0
        return rows[0][found], cosines[0][found]

    # ------------------------------------------------------------------ changes

    def build_changes(self, outcome: BatchOutcome) -> Changes:
        """Build the changes of the last batch or anchor."""
        arrival = self.graph.arrival[outcome.moved]
        order = np.argsort(arrival, kind="stable")
        rows = outcome.moved[order]
        return Changes(
            self.graph.ids.to_column(rows),
            self.store.copy_rows(rows),
            self.rule.served_transform(),
            arrival[order] >= outcome.first_new,
            outcome.removed,
            self.sequence,
            outcome.anchored,
        )

    def empty_changes(self, sequence: int) -> Changes:
        """Build the empty changes of a batch that had already been applied under this sequence number."""
        no_rows = np.empty(0, np.int64)
        vectors, to_vectors = self.store.vectors[no_rows], self.rule.served_transform()
        return Changes(no_rows, vectors, to_vectors, np.empty(0, np.bool_), [], sequence, False)

    def gather(self) -> EngineReads:
        """Return the state on one machine: here, the engine itself."""
        return self

    def check(self) -> None:
        """Check internal invariants; raise if one fails."""
        self.graph.check()
