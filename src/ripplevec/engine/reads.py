"""What may be asked of a state: who is there, who is connected, where vertices stand. Nothing here changes it.

Whoever reads a model asks by these methods and treats rows as numbers without a meaning of their own, so that a state
may also lie elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Id, IdColumn
from ripplevec.changes import BatchOutcome, Changes
from ripplevec.graph.adjacency import merge_duplicates
from ripplevec.graph.batch_validation import GraphLookup
from ripplevec.graph.graph import Graph
from ripplevec.rules.base import Rule
from ripplevec.rules.vector_store import VectorStore
from ripplevec.search.query import Query, SearchResults, SearchTarget, query_from_row, query_from_vector

Rows = NDArray[np.int64]


class VertexInfo(NamedTuple):
    """What is known of one vertex beside its name and its vector."""

    arrival: int
    degree: int
    strength: float
    placed: bool


class EngineReads:
    """Graph, vectors and rule, for readers. Rows come from `find`, `rows_of` and `rows_by_arrival`, and hold until a batch."""

    graph: Graph
    rule: Rule
    store: VectorStore
    sequence: int
    anchors: int

    # ------------------------------------------------------------------ who is there

    def __len__(self) -> int:
        return len(self.graph)

    @property
    def edges(self) -> int:
        """How many edges there are."""
        return self.graph.adjacency.edge_count

    @property
    def next_arrival(self) -> int:
        """The arrival number that the next new vertex will get."""
        return self.graph.next_arrival

    @property
    def ready(self) -> bool:
        """Whether arrivals can be placed: there has been a start."""
        return self.rule.ready

    @property
    def graph_lookup(self) -> GraphLookup:
        """The graph as far as it is asked whether batches can be applied."""
        return self.graph

    def find_row(self, name: Id) -> int:
        """The row of a vertex, −1 where it is not known."""
        return self.graph.ids.find_row(name)

    def find_rows(self, column: IdColumn) -> Rows:
        """The rows of vertices, −1 where one is not known."""
        return self.graph.ids.find_rows(column)

    def rows_of(self, column: IdColumn) -> Rows:
        """The rows of known vertices, or an error naming those that are not known."""
        return self.graph.rows_of(column)

    def rows_by_arrival(self, wanted: Callable[[Rows], NDArray[np.bool_]] | None = None) -> Rows:
        """The rows of vertices in order of arrival: of all, or of those whose arrival numbers are wanted."""
        return self.graph.rows_by_arrival(wanted)

    def id_column_of(self, rows: Rows) -> IdColumn:
        """The names of rows as a column of ids."""
        return self.graph.ids.to_column(rows)

    def ids_of(self, rows: Rows) -> list[Id]:
        """The names of rows as plain ints and strs."""
        return self.graph.ids.to_list(rows)

    # ------------------------------------------------------------------ what is known of them

    def arrival_numbers(self, rows: Rows) -> Rows:
        """The arrival numbers of rows."""
        return self.graph.arrival[rows]

    def degrees(self, rows: Rows) -> NDArray[np.int64]:
        """How many edges rows have, in any direction."""
        return self.graph.adjacency.links.degree[rows].astype(np.int64)

    def placed(self, rows: Rows) -> NDArray[np.bool_]:
        """Which of the rows have a vector."""
        return self.store.placed[rows] != 0

    def vertex_info(self, row: int) -> VertexInfo:
        """All that is known of one row."""
        links = self.graph.adjacency.links
        return VertexInfo(
            int(self.graph.arrival[row]),
            int(links.degree[row]),
            float(links.strength[row]) / self.graph.adjacency.weight_scale.unit,
            bool(self.store.placed[row]),
        )

    def neighbors(self, row: int, most: int | None = None) -> tuple[Rows, NDArray[np.float32]]:
        """Who a row is connected to and the weights of the edges, the latest first: all of them, or `most`."""
        adjacency = self.graph.adjacency
        links, slots = adjacency.links, adjacency.slots(np.array([row]))[::-1][:most]
        return links.neighbor[slots].astype(np.int64), links.weight[slots] / np.float32(adjacency.weight_scale.unit)

    # ------------------------------------------------------------------ where they stand

    def get_vectors(self, rows: Rows) -> NDArray[np.float32]:
        """The vectors of rows as readers get them."""
        return self.rule.to_served(self.store.vectors[rows])

    def get_vector(self, row: int) -> NDArray[np.float32]:
        """The vector of one row as readers get it."""
        return self.rule.to_served(self.store.vectors[row : row + 1])[0]

    def preview(self, rows: Rows, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """The vector a newcomer with edges to these rows would be placed at; a row may be there more than once."""
        adjacency = self.graph.adjacency
        edges = merge_duplicates(rows, weights * np.float32(adjacency.weight_scale.unit), adjacency.duplicate_policy)
        return self.rule.to_served(self.rule.preview(self.store, *edges)[None])[0]

    def nearest(
        self, ask: Callable[[SearchTarget, Query, int], SearchResults], asked: int | NDArray[np.float64], count: int
    ) -> tuple[Rows, NDArray[np.float32]]:
        """The rows of highest cosine with a row (itself left out) or with a served vector, best first, by a search."""
        target = SearchTarget(self.store, self.rule, self.sequence, self.anchors)
        if isinstance(asked, int):
            query = query_from_row(self.rule, self.store.vectors[asked], asked)
        else:
            query = query_from_vector(self.rule, asked)
        rows, cosines = ask(target, query, min(count, max(len(self), 1)))
        found = rows[0] >= 0
        return rows[0][found], cosines[0][found]

    # ------------------------------------------------------------------ what a batch did

    def build_changes(self, outcome: BatchOutcome) -> Changes:
        """What the last batch, or an anchor, changed, for whoever follows the stream."""
        arrival = self.graph.arrival[outcome.moved]
        order = np.argsort(arrival, kind="stable")
        rows = outcome.moved[order]
        return Changes(
            self.graph.ids.to_column(rows),
            self.store.vectors[rows],
            self.rule.served_transform(),
            arrival[order] >= outcome.first_new,
            outcome.removed,
            self.sequence,
            outcome.anchored,
        )

    def empty_changes(self, sequence: int) -> Changes:
        """What a batch changed that had been applied before, under this number: nothing."""
        nobody = np.empty(0, np.int64)
        vectors, serve_them = self.store.vectors[nobody], self.rule.served_transform()
        return Changes(nobody, vectors, serve_them, np.empty(0, np.bool_), [], sequence, False)

    def gather(self) -> EngineReads:
        """All of it in one place: here it is."""
        return self

    def check(self) -> None:
        """Raise where the state contradicts itself."""
        self.graph.check()
