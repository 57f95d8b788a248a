"""Read access to the state of a model: vertices, edges, vectors and changes.

Code that reads a model uses these methods only and treats rows as opaque numbers. `EngineReads` is written once, over a
few operations on rows: `LocalReads` implements them in this process, `cluster/driver_reads.py` on shards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import AttributeRows, Batch, Id, IdColumn, id_column, ids_to_list, take_ids
from ripplevec.changes import BatchOutcome, Changes
from ripplevec.engine.counters import EngineCounters
from ripplevec.engine.digest import HashedArray, compute_digest
from ripplevec.engine.local_rows import LocalRows
from ripplevec.errors import InvalidValueError, LostStateError, UnknownVertexError
from ripplevec.graph.adjacency import RowArray, WeightScale, merge_duplicates
from ripplevec.graph.batch_validation import BatchAdmission, GraphLookup
from ripplevec.rules.base import Rule
from ripplevec.rules.ripple import RippleRule
from ripplevec.rules.vector_store import VectorStore
from ripplevec.search.searcher import Query, SearchResults, SearchTarget, query_from_row, query_from_vector
from ripplevec.temporal.edge_aging import EdgeAging, select_digest_arrays
from ripplevec.util.numba_intrinsics import widen_half
from ripplevec.views._kernels import scale_to_unit

Search = Callable[[SearchTarget, Query, int], SearchResults]
"""A search function; it comes from `Searcher.open_search`."""

ROWS_PER_READ = 1 << 16
"""Rows whose vectors are read at once, to bound the memory."""


class VertexInfo(NamedTuple):
    """Properties of one vertex, besides its id and its vector."""

    arrival: int
    degree: int
    strength: float  # sum of the edge weights
    placed: bool  # whether it has a vector


class EngineReads(EngineCounters):
    """Read methods of an engine.

    Rows come from `find_row`, `find_rows`, `rows_of` and `rows_by_arrival`, and are valid until the next batch.
    """

    rule: Rule
    aging: EdgeAging | None = None
    correction: Any = None  # a `GradualCorrection`, or on shards a `RemoteCorrection`, in progress
    lost: LostStateError | None = None  # the loss of a part of the state; see `ClusterEngine`
    attribute_dim = 0  # dimensions of the attribute part of vectors; see `AttributedEngine`

    def may_trigger_anchor(self, batch: Batch) -> bool:
        """Return whether a batch may make an anchor due that is computed before the batch is complete."""
        is_small = 2 * len(batch) < self.growth_slack and batch.op is None and self.aging is None
        return not is_small and self._may_exceed_interval(batch)

    def _may_exceed_interval(self, batch: Batch) -> bool:
        """Return whether the graph may grow by a batch so much that an anchor at once is due."""
        raise NotImplementedError

    def open_admission(self, admitted: Sequence[Batch] = ()) -> BatchAdmission:
        """Open the check of the next batches, after batches that only add edges and are not applied yet."""
        times = None if self.aging is None else self.aging.create_time_limit()
        return BatchAdmission(self.graph_lookup, admitted, times)

    # ------------------------------------------------------------------ operations on rows, by subclasses

    @property
    def dim(self) -> int:
        """Number of dimensions of a vector."""
        raise NotImplementedError

    @property
    def next_arrival(self) -> int:
        """Arrival number of the next new vertex."""
        raise NotImplementedError

    @property
    def graph_lookup(self) -> GraphLookup:
        """The graph, as needed to check whether a batch can be applied."""
        raise NotImplementedError

    @property
    def duplicate_policy(self) -> int:
        """How the weights of a repeated edge are combined: a value of `DUPLICATE_POLICIES`."""
        raise NotImplementedError

    def find_rows(self, column: IdColumn) -> RowArray:
        """Return the rows of vertices, −1 for unknown ones."""
        raise NotImplementedError

    def rows_by_arrival(self, select: Callable[[RowArray], NDArray[np.bool_]] | None = None) -> RowArray:
        """Return the rows of all vertices, or of those whose arrival numbers `select` marks, in order of arrival."""
        raise NotImplementedError

    def id_column_of(self, rows: RowArray) -> IdColumn:
        """Return the ids of rows as a column."""
        raise NotImplementedError

    def read_rows(self, rows: RowArray, attribute: str) -> NDArray[Any]:
        """Return one attribute of each row; see `LocalRows.read_rows`."""
        raise NotImplementedError

    def read_row(self, row: int, attributes: Sequence[str]) -> list[Any]:
        """Return some attributes of one row, as numbers; see `read_rows`."""
        raise NotImplementedError

    def read_edges(self, rows: RowArray, attribute: str) -> NDArray[Any]:
        """Return one attribute of all edges of rows, row by row; see `LocalRows.read_edges`."""
        raise NotImplementedError

    def list_neighbors(self, row: int, limit: int | None) -> tuple[RowArray, NDArray[np.float32]]:
        """Return the neighbors of a row and the stored edge weights, latest edge first: all, or `limit` of them."""
        raise NotImplementedError

    def has_edges(self, src: RowArray, dst: RowArray) -> NDArray[np.bool_]:
        """Return, pair by pair, whether there is an edge between two rows (from src to dst, if directed)."""
        raise NotImplementedError

    def find_nearest(self, search: Search, query: Query, count: int) -> tuple[RowArray, NDArray[np.float32]]:
        """Return the rows of highest cosine with a query, highest first."""
        raise NotImplementedError

    def copy_vectors(self, rows: RowArray) -> tuple[Any, Callable[[Any], NDArray[np.float32]]]:
        """Return a copy of the stored vectors of rows, and the function that converts it to served vectors."""
        raise NotImplementedError

    def store_with(self, rows: RowArray) -> tuple[VectorStore, RowArray]:
        """Return a store that contains these rows, and their positions in it."""
        raise NotImplementedError

    def sizes(self) -> dict[str, int]:
        """Return counts and bytes; see `LocalRows.sizes`."""
        raise NotImplementedError

    def orthogonality_error(self) -> float:
        """Return how far the inner products of columns deviate from their intended values."""
        raise NotImplementedError

    def aging_arrays(self) -> dict[str, NDArray[Any] | HashedArray]:
        """Return the arrays of edge aging that enter the digest."""
        raise NotImplementedError

    def attribute_digest_arrays(self) -> dict[str, NDArray[Any] | HashedArray]:
        """Return the arrays of attributes that enter the digest."""
        return {}

    # ------------------------------------------------------------------ vertices and ids

    @property
    def ready(self) -> bool:
        """Whether the start has been computed, so that arrivals can be placed."""
        return self.rule.ready

    def find_row(self, vertex: Id) -> int:
        """Return the row of a vertex, −1 if it is unknown."""
        return int(self.find_rows(id_column([vertex]))[0])

    def rows_of(self, column: IdColumn) -> RowArray:
        """Return the rows of vertices; raise `UnknownVertexError` if some are unknown."""
        rows = self.find_rows(column)
        if rows.size and rows.min() < 0:
            missing = ids_to_list(take_ids(column, np.flatnonzero(rows < 0)))
            raise UnknownVertexError(missing, self._find_similar(missing[0]))
        return rows

    def _find_similar(self, vertex: Id) -> Id | None:
        """Return a known id with the same text and another type, a common mistake; None if there is none."""
        other = str(vertex) if isinstance(vertex, int) else int(vertex) if vertex.isdecimal() else None
        return other if other is not None and self.find_row(other) >= 0 else None

    def ids_of(self, rows: RowArray) -> list[Id]:
        """Return the ids of rows as a list of ints and strs."""
        return ids_to_list(self.id_column_of(rows))

    # ------------------------------------------------------------------ properties of vertices

    def arrival_numbers(self, rows: RowArray) -> RowArray:
        """Return the arrival numbers of rows."""
        return self.read_rows(rows, "arrival")

    def degrees(self, rows: RowArray) -> NDArray[np.int64]:
        """Return the number of edges of rows, in any direction."""
        return self.read_rows(rows, "degree").astype(np.int64)

    def placed(self, rows: RowArray) -> NDArray[np.bool_]:
        """Return which rows have a vector."""
        return self.read_rows(rows, "placed") != 0

    def vertex_info(self, row: int) -> VertexInfo:
        """Return the properties of one vertex."""
        arrival, degree, strength, placed = self.read_row(row, ("arrival", "degree", "strength", "placed"))
        return VertexInfo(int(arrival), int(degree), float(strength) / self.weight_scale.unit, bool(placed))

    def neighbors(self, row: int, limit: int | None = None) -> tuple[RowArray, NDArray[np.float32]]:
        """Return the neighbors of a row and the edge weights, latest edge first: all, or `limit` of them."""
        rows, weights = self.list_neighbors(row, limit)
        return rows, weights / np.float32(self.weight_scale.unit)

    # ------------------------------------------------------------------ vectors

    def get_vectors(self, rows: RowArray) -> NDArray[np.float32]:
        """Return the vectors of rows as users see them."""
        vectors, correction = self.rule.to_served(self.read_rows(rows, "vectors")), self.correction
        if correction is not None and correction.swapped:  # never on shards
            old = correction.serves_old(rows)
            vectors[old] = correction.read_old(rows[old])
        return vectors

    def get_vector(self, row: int) -> NDArray[np.float32]:
        """Return the vector of one row as users see it."""
        return self.get_vectors(np.array([row]))[0]

    def unit_vectors(self, rows: RowArray) -> NDArray[np.float32]:
        """Return the vectors of rows, scaled to length one and not rotated: their dot products are the cosines."""
        stored = widen_half(self.read_rows(rows, "vectors"))
        units = np.empty(stored.shape, np.float32)
        scale_to_unit(stored, self.rule.scaling, units)
        return units

    def check_attributes(self, attributes: AttributeRows | None) -> None:
        """Raise `InvalidValueError` if the model has no dimensions for attributes, or not for these."""
        if attributes is not None:
            raise InvalidValueError(
                "attributes: expected none, because no dimensions of this model are for them, got attributes. "
                "Give attributes to fit, or create the model with attribute_dim=…"
            )

    def preview(
        self, rows: RowArray, weights: NDArray[np.float32], attributes: AttributeRows | None = None
    ) -> NDArray[np.float32]:
        """Return the vector of a new vertex with edges to these rows; a row may occur more than once.

        `check_attributes` has accepted the attributes.
        """
        del attributes  # none; see `AttributedEngine`
        stored = weights * np.float32(self.weight_scale.unit)
        neighbors, stored = merge_duplicates(rows, stored, self.duplicate_policy)
        return self.rule.to_served(self.rule.preview(self, neighbors, stored)[None])[0]

    def nearest(
        self, search: Search, like: int | NDArray[np.float64], count: int
    ) -> tuple[RowArray, NDArray[np.float32]]:
        """Return the rows of highest cosine with a row (itself excluded) or with a vector, highest first."""
        if isinstance(like, int):
            query = query_from_row(self.rule, self.read_rows(np.array([like]), "vectors")[0], like)
        else:
            query = query_from_vector(self.rule, like)
        return self.find_nearest(search, query, count)

    def nearest_among(
        self, rows: RowArray, like: int | NDArray[np.float64], count: int
    ) -> tuple[RowArray, NDArray[np.float32]]:
        """Return those of the given rows with the highest cosine with a row (itself excluded) or with a vector."""
        rows = rows[self.placed(rows) & (rows != (like if isinstance(like, int) else -1))]
        query = (self.get_vector(like) if isinstance(like, int) else like).astype(np.float32)
        cosines = np.full(rows.size, -np.inf, np.float32)  # a zero vector has no cosine and is near no vertex
        for first in range(0, rows.size, ROWS_PER_READ):
            vectors = self.get_vectors(rows[first : first + ROWS_PER_READ])
            lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
            np.divide(vectors @ query, lengths, cosines[first : first + ROWS_PER_READ], where=lengths > 0)
        best = np.argsort(-cosines, kind="stable")[:count]
        best = best[cosines[best] > -np.inf]
        return rows[best], cosines[best]

    # ------------------------------------------------------------------ changes

    def build_changes(self, outcome: BatchOutcome) -> Changes:
        """Build the changes of the last batch or anchor."""
        arrival = self.arrival_numbers(outcome.moved)
        order = np.argsort(arrival, kind="stable")
        rows = outcome.moved[order]
        vectors, to_served = self.copy_vectors(rows)
        return Changes(
            self.id_column_of(rows),
            vectors,
            to_served,
            arrival[order] >= outcome.first_new,
            outcome.removed,
            self.sequence,
            outcome.anchored,
        )

    def empty_changes(self, sequence: int) -> Changes:
        """Build the empty changes of a batch that had already been applied under this sequence number."""
        no_rows, vectors = np.empty(0, np.int64), np.empty((0, self.dim), self.rule.precision)
        return Changes(no_rows, vectors, self.rule.served_transform(), np.empty(0, np.bool_), [], sequence, False)

    # ------------------------------------------------------------------ the whole model

    def diagnostics(self) -> dict[str, Any]:
        """Return sizes, counters and quality measures."""
        sizes = self.sizes()
        return {
            "vertices": len(self),
            "edges": self.edges,
            "unplaced": sizes["unplaced"],
            "ready": self.ready,
            "orthogonality_error": self.orthogonality_error(),
            "growth_since_anchor": self.growth,
            "anchors": self.anchors,
            "anchors_refused": self.anchors_refused,
            "rows_shortened": self.rows_shortened,
            "sequence": self.sequence,
            "events": self.events,
            "changes": self.changes,
            **({} if self.aging is None else {"time": self.aging.time}),
            **self.describe_views(),
            "bytes": sizes["bytes"],
        }

    def describe_views(self) -> dict[str, Any]:
        """Return the name of the views and the scores of all recipes; nothing if the rule has none, or no start yet."""
        return self.rule.describe_choice() if self.ready and isinstance(self.rule, RippleRule) else {}

    def digest(self) -> str:
        """Return a hash of graph, vectors, attributes, coordinates and counters.

        It does not depend on the memory layout. Vectors and edges are read block by block.
        """
        progress = None if self.correction is None else self.correction.progress()
        arrays = self.rule.state() | self.aging_arrays() | self.attribute_digest_arrays()
        return compute_digest(self, arrays, self.counters(), progress)

    def gather(self) -> LocalReads:
        """Return the state on one machine."""
        raise NotImplementedError

    def check(self) -> None:
        """Check internal invariants; raise if one fails."""
        raise NotImplementedError


class LocalReads(LocalRows, EngineReads):
    """Read methods of a state in the memory of this process."""

    store: VectorStore

    def __len__(self) -> int:
        return len(self.graph)

    @property
    def vectors(self) -> NDArray[Any]:
        """The stored vectors of all rows."""
        return self.store.vectors

    @property
    def dim(self) -> int:
        """Number of dimensions of a vector."""
        return int(self.store.vectors.shape[1])

    @property
    def edges(self) -> int:
        """Number of edges."""
        return self.graph.adjacency.edge_count

    @property
    def weight_scale(self) -> WeightScale:
        """Scale of the stored weights."""
        return self.graph.adjacency.weight_scale

    @property
    def duplicate_policy(self) -> int:
        """How the weights of a repeated edge are combined."""
        return self.graph.adjacency.duplicate_policy

    @property
    def graph_lookup(self) -> GraphLookup:
        """The graph, as needed to check whether a batch can be applied."""
        return self.graph

    def find_row(self, vertex: Id) -> int:
        """Return the row of a vertex, −1 if it is unknown."""
        return self.graph.ids.find_row(vertex)  # faster than a column of one id

    def get_vector(self, row: int) -> NDArray[np.float32]:
        """Return the vector of one row as users see it."""
        correction = self.correction
        if correction is not None and correction.swapped:  # the row may still be served as before the correction
            return EngineReads.get_vectors(self, np.array([row]))[0]
        return self.rule.to_served(self.store.vectors[row : row + 1])[0]  # faster than an array of one row

    def has_edges(self, src: RowArray, dst: RowArray) -> NDArray[np.bool_]:
        """Return, pair by pair, whether there is an edge between two rows (from src to dst, if directed)."""
        return self.graph.adjacency.has_edges(src, dst)

    def count_connected(self) -> int:
        """Return the number of vertices that have edges."""
        return int(np.count_nonzero(self.graph.adjacency.links.degree[: self.graph.row_count]))

    def find_nearest(self, search: Search, query: Query, count: int) -> tuple[RowArray, NDArray[np.float32]]:
        """Return the rows of highest cosine with a query, highest first."""
        target = SearchTarget(self.store, self.rule, self.sequence, self.anchors)
        rows, cosines = search(target, query, min(count, max(len(self), 1)))
        found = rows[0] >= 0
        return rows[0][found], cosines[0][found]

    def copy_vectors(self, rows: RowArray) -> tuple[Any, Callable[[Any], NDArray[np.float32]]]:
        """Return a copy of the stored vectors of rows, and the function that converts it to served vectors."""
        return self.store.copy_rows(rows), self.rule.served_transform()

    def store_with(self, rows: RowArray) -> tuple[VectorStore, RowArray]:
        """Return the store, which contains all rows."""
        return self.store, rows

    def sizes(self) -> dict[str, int]:
        """Return counts and bytes, those of edge aging included."""
        sizes = super().sizes()
        return sizes | {"bytes": sizes["bytes"] + (0 if self.aging is None else self.aging.nbytes)}

    def orthogonality_error(self) -> float:
        """Return how far the inner products of columns deviate from their intended values."""
        return self.rule.orthogonality_error(self.store)

    def aging_arrays(self) -> dict[str, NDArray[Any] | HashedArray]:
        """Return the arrays of edge aging that enter the digest."""
        return {} if self.aging is None else {**select_digest_arrays(self.aging.state())}

    def gather(self) -> LocalReads:
        """Return the state on one machine: here, the engine itself."""
        return self

    def check(self) -> None:
        """Check internal invariants; raise if one fails."""
        self.graph.check()
