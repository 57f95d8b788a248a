"""Reads of a model on shards, from the driver: the same methods as `EngineReads` on one machine.

All rows are row codes (see `routing.py`). They come from `find_row`, `find_rows`, `rows_of` and `rows_by_arrival`, and
are valid until the next batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch, Id, IdColumn, Op, id_column, ids_to_list, take_ids
from ripplevec.changes import BatchOutcome, Changes
from ripplevec.cluster.gather import GatheredState
from ripplevec.cluster.ingestion import NO_ROWS
from ripplevec.cluster.routing import assign_shards, scatter_id_columns, split_positions
from ripplevec.cluster.transport import Transport
from ripplevec.engine.counters import EngineCounters
from ripplevec.engine.digest import compute_digest
from ripplevec.engine.reads import VertexInfo
from ripplevec.errors import RipplevecError, UnknownVertexError
from ripplevec.graph.adjacency import DUPLICATE_POLICIES, RowArray, merge_duplicates
from ripplevec.graph.graph import Graph
from ripplevec.parameters import Parameters
from ripplevec.rules.anchor import max_column_cosine
from ripplevec.rules.ripple import RippleRule
from ripplevec.rules.vector_store import VectorStore
from ripplevec.search.searcher import Query, SearchResults, SearchTarget, query_from_row, query_from_vector


class ShardQueries:
    """Queries to all shards, with results assembled in the order of the requested rows."""

    transport: Transport

    def query(self, method: str, *columns: Sequence[Any], **constants: Any) -> list[Any]:
        """Call a method on every shard and wait for the results; shard i receives entry i of each column."""
        return self.transport.get(self.transport.call(method, *columns, **constants))

    def submit(self, method: str, *columns: Sequence[Any], **constants: Any) -> list[Any]:
        """Call a method on every shard and wait; the results stay in the object store until they are resolved."""
        results = self.transport.call(method, *columns, **constants)
        self.transport.wait(results)
        return results

    def query_rows(
        self, method: str, rows: RowArray, *columns: RowArray, **constants: Any
    ) -> tuple[list[Any], list[RowArray]]:
        """Query each shard about its rows; return the results, and the positions of these rows in `rows`."""
        positions = self._positions_by_shard(rows)
        return self.query(method, *self._split_columns(positions, rows, *columns), **constants), positions

    def read_rows(self, rows: RowArray, attribute: str) -> NDArray[Any]:
        """Return one attribute of each row; see `ShardGraph.read_rows` for `attribute`."""
        return scatter_parts(*self.query_rows("read_rows", rows, attribute=attribute))

    def read_edges(self, rows: RowArray, attribute: str) -> NDArray[Any]:
        """Return one attribute of all edges of rows, row by row; see `ShardGraph.read_edges`."""
        results, positions = self.query_rows("read_edges", rows, attribute=attribute)
        degree = scatter_parts([degrees for degrees, _ in results], positions)
        begin = np.cumsum(degree) - degree
        targets = [_concatenate_ranges(begin[part], result[0]) for part, result in zip(positions, results, strict=True)]
        return scatter_parts([values for _, values in results], targets)

    def _send_rows(self, method: str, rows: RowArray, *columns: NDArray[Any]) -> None:
        """Call a method on each shard with its rows and the matching entries of the columns, and wait."""
        self.query(method, *self._split_columns(self._positions_by_shard(rows), rows, *columns))

    def _split_columns(
        self, positions: list[RowArray], rows: RowArray, *columns: NDArray[Any]
    ) -> list[list[NDArray[Any]]]:
        """Split rows (decoded to rows on their shards) and further columns by shard."""
        shards = self.transport.size
        return [
            [rows[part] // shards for part in positions],
            *([column[part] for part in positions] for column in columns),
        ]

    def _positions_by_shard(self, rows: RowArray) -> list[RowArray]:
        return split_positions(rows % self.transport.size, self.transport.size)

    def _row_on_owner(self, code: int) -> list[int]:
        """Return, for each shard, the row of a vertex if it is on that shard, else −1."""
        shards = self.transport.size
        return [code // shards if code % shards == shard else -1 for shard in range(shards)]


def scatter_parts(parts: list[NDArray[Any]], positions: list[RowArray]) -> NDArray[Any]:
    """Assemble parts into one array, with each entry at its position."""
    joined = np.concatenate(parts)
    out = np.empty_like(joined)
    out[np.concatenate(positions)] = joined
    return out


def _concatenate_ranges(begin: RowArray, count: RowArray) -> RowArray:
    """Return begin[i], begin[i] + 1, … (count[i] values) for all i, concatenated."""
    ends = np.cumsum(count)
    return np.repeat(begin - (ends - count), count) + np.arange(int(count.sum()))


class RemoteGraph:
    """The graph on the shards, as far as the validation of a batch needs it; fetched with few queries."""

    def __init__(
        self,
        directed: bool,
        find_rows: Callable[[IdColumn], RowArray],
        rows_of: Callable[[IdColumn], RowArray],
        has_edges: Callable[[RowArray, RowArray], NDArray[np.bool_]],
    ) -> None:
        self.directed, self.rows_of, self.has_edges, self._find_rows = directed, rows_of, has_edges, find_rows
        self._rows: dict[Id, int] = {}
        self._edges: dict[tuple[Id, Id], bool] = {}

    def prefetch_batch(self, batch: Batch) -> None:
        """Fetch, for `has_vertex` and `has_edge`, whether the vertices and edges that a batch removes exist."""
        removals = np.flatnonzero((batch.op == Op.REMOVE) | (batch.op == Op.REMOVE_VERTEX))
        src, dst = (take_ids(column, removals) for column in (batch.src, batch.dst))
        src_rows, dst_rows = self._find_rows(src), self._find_rows(dst)
        for column, rows in ((src, src_rows), (dst, dst_rows)):
            self._rows.update(zip(ids_to_list(column), rows.tolist(), strict=True))
        both = np.flatnonzero((src_rows >= 0) & (dst_rows >= 0))
        exists = self.has_edges(src_rows[both], dst_rows[both])
        pairs = zip(ids_to_list(take_ids(src, both)), ids_to_list(take_ids(dst, both)), strict=True)
        self._edges.update(zip(pairs, exists.tolist(), strict=True))

    def has_vertex(self, vertex: Id) -> bool:
        """Return whether a vertex exists."""
        return self._rows[vertex] >= 0

    def has_edge(self, src: Id, dst: Id) -> bool:
        """Return whether an edge between two vertices exists (from src to dst, if directed)."""
        return self._edges.get((src, dst), False)


class DriverReads(ShardQueries, EngineCounters):
    """Read access to a model: rows are read from the shards; coordinates and counters are on the driver."""

    parameters: Parameters
    rule: RippleRule
    next_arrival: int
    _vertices: int
    _edges: int

    # ------------------------------------------------------------------ vertices

    def __len__(self) -> int:
        return self._vertices

    @property
    def edges(self) -> int:
        """The number of edges."""
        return self._edges

    @property
    def ready(self) -> bool:
        """Whether the start has been computed, so that arrivals can be placed."""
        return self.rule.ready

    @property
    def graph_lookup(self) -> RemoteGraph:
        """The graph, as far as the validation of a batch needs it."""
        return RemoteGraph(self.parameters.directed, self.find_rows, self.rows_of, self.has_edges)

    def count_connected(self) -> int:
        """Return the number of vertices with edges."""
        return self.sizes()["with_edges"]

    def find_row(self, vertex: Id) -> int:
        """Return the row of a vertex, −1 if it is unknown."""
        return int(self.find_rows(id_column([vertex]))[0])

    def find_rows(self, column: IdColumn) -> RowArray:
        """Return the rows of vertices, −1 for unknown ones."""
        shards = self.transport.size
        positions = split_positions(assign_shards(column, shards), shards)
        codes = np.empty(len(column), np.int64)
        for shard, rows in enumerate(self.query("find_rows", [take_ids(column, part) for part in positions])):
            codes[positions[shard]] = np.where(rows < 0, -1, rows * shards + shard)
        return codes

    def rows_of(self, column: IdColumn) -> RowArray:
        """Return the rows of vertices; raise `UnknownVertexError` if some are unknown."""
        rows = self.find_rows(column)
        if rows.size and rows.min() < 0:
            raise UnknownVertexError(ids_to_list(take_ids(column, np.flatnonzero(rows < 0))))
        return rows

    def rows_by_arrival(self, select: Callable[[RowArray], NDArray[np.bool_]] | None = None) -> RowArray:
        """Return the rows of all vertices, or of those whose arrival numbers `select` marks, in order of arrival."""
        shards, results = self.transport.size, self.query("list_rows")
        rows = np.concatenate([rows * shards + shard for shard, (rows, _) in enumerate(results)])
        numbers = np.concatenate([numbers for _, numbers in results])
        order = np.argsort(numbers, kind="stable")
        return rows[order] if select is None else rows[order][select(numbers[order])]

    def id_column_of(self, rows: RowArray) -> IdColumn:
        """Return the ids of rows as a column."""
        results, positions = self.query_rows("read_ids", rows)
        return scatter_id_columns(results, positions)

    def ids_of(self, rows: RowArray) -> list[Id]:
        """Return the ids of rows as plain ints and strings."""
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
        arrival, degree, strength, placed = (
            self.read_rows(np.array([row]), attribute)[0] for attribute in ("arrival", "degree", "strength", "placed")
        )
        return VertexInfo(int(arrival), int(degree), float(strength), bool(placed))

    def neighbors(self, row: int, limit: int | None = None) -> tuple[RowArray, NDArray[np.float32]]:
        """Return the neighbors of a row and the edge weights, latest edge first: all, or `limit` of them."""
        results = self.query("list_neighbors", self._row_on_owner(row), limit=limit)
        return cast(tuple[RowArray, NDArray[np.float32]], results[row % self.transport.size])

    def has_edges(self, src: RowArray, dst: RowArray) -> NDArray[np.bool_]:
        """Return, pair by pair, whether there is an edge between two rows (from src to dst, if directed)."""
        results, positions = self.query_rows("edges_exist", src, dst)
        return scatter_parts(results, positions)

    # ------------------------------------------------------------------ vectors

    def get_vectors(self, rows: RowArray) -> NDArray[np.float32]:
        """Return the served vectors of rows."""
        return self.rule.to_served(self.read_rows(rows, "vectors"))

    def get_vector(self, row: int) -> NDArray[np.float32]:
        """Return the served vector of one row."""
        return self.get_vectors(np.array([row]))[0]

    def preview(self, rows: RowArray, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the vector that a new vertex with edges to these rows would get; rows may repeat."""
        neighbors, merged_weights = merge_duplicates(rows, weights, DUPLICATE_POLICIES[self.parameters.duplicates])
        graph, local_rows = Graph(), np.arange(neighbors.size)
        graph.adjacency.ensure_rows(neighbors.size)
        store = VectorStore(graph, self.parameters.dim, self.rule.precision)
        store.vectors[local_rows] = self.read_rows(neighbors, "vectors")
        store.placed[local_rows] = self.read_rows(neighbors, "placed")
        return self.rule.to_served(self.rule.preview(store, local_rows, merged_weights)[None])[0]

    def nearest(
        self,
        search: Callable[[SearchTarget, Query, int], SearchResults],
        like: int | NDArray[np.float64],
        count: int,
    ) -> tuple[RowArray, NDArray[np.float32]]:
        """Return the rows of highest cosine with a row (itself excluded) or with a served vector, best first.

        Every shard searches its own rows with its own search object; `search` is not used. Among equal cosines the
        earlier arrival comes first.
        """
        if isinstance(like, int):
            query = query_from_row(self.rule, self.read_rows(np.array([like]), "vectors")[0], like)
            excluded = self._row_on_owner(like)
        else:
            query, excluded = query_from_vector(self.rule, like), [-1] * self.transport.size
        results = self.query(
            "search_nearest", excluded, query=query, count=count, sequence=self.sequence, anchors=self.anchors
        )
        codes = np.concatenate([rows * self.transport.size + shard for shard, (rows, _, _) in enumerate(results)])
        cosines, numbers = (np.concatenate([result[part] for result in results]) for part in (1, 2))
        best = np.lexsort((numbers, -cosines))[:count]
        return codes[best], cosines[best]

    # ------------------------------------------------------------------ changes of a batch

    def build_changes(self, outcome: BatchOutcome) -> Changes:
        """Return the changes of a batch; copies of the vectors stay in the object store until they are read."""
        arrival = self.arrival_numbers(outcome.moved)
        order = np.argsort(arrival, kind="stable")
        rows, to_served = outcome.moved[order], self.rule.served_transform()
        positions = self._positions_by_shard(rows)
        (requested,) = self._split_columns(positions, rows)
        results = self.submit("read_rows", requested, attribute="vectors")

        def fetch_served(references: Any) -> NDArray[np.float32]:
            return to_served(scatter_parts(self.transport.get(list(references)), positions))

        return Changes(
            self.id_column_of(rows),
            cast(Any, results),
            fetch_served,
            arrival[order] >= outcome.first_new,
            outcome.removed,
            self.sequence,
            outcome.anchored,
        )

    def empty_changes(self, sequence: int) -> Changes:
        """Return the empty changes of a batch that had already been applied under this sequence number."""
        vectors = np.empty((0, self.parameters.dim), np.float32)
        return Changes(NO_ROWS, vectors, self.rule.served_transform(), np.empty(0, np.bool_), [], sequence, False)

    # ------------------------------------------------------------------ the whole model

    def diagnostics(self) -> dict[str, Any]:
        """Return sizes, counters and quality measures."""
        sizes, grams = self.sizes(), self.query("grams")
        return {
            "vertices": len(self),
            "edges": self.edges,
            "unplaced": sizes["unplaced"],
            "ready": self.ready,
            "orthogonality_error": max_column_cosine([np.sum(view, axis=0) for view in zip(*grams, strict=True)]),
            "growth_since_anchor": self.growth,
            "anchors": self.anchors,
            "anchors_refused": self.anchors_refused,
            "rows_shortened": self.rows_shortened,
            "sequence": self.sequence,
            "events": self.events,
            "changes": self.changes,
            "bytes": sizes["bytes"],
        }

    def digest(self) -> str:
        """Return the hash that the same state has on one machine; vectors and edges are fetched block by block."""
        return compute_digest(self, self.rule.state(), self.counters())

    def edge_values(self, rows: RowArray, name: str) -> NDArray[Any]:
        """Return values of all edges of rows; see `DigestSource`."""
        return self.arrival_numbers(self.read_edges(rows, "code")) if name == "arrival" else self.read_edges(rows, name)

    def row_values(self, rows: RowArray, name: str) -> NDArray[Any]:
        """Return values of rows; see `DigestSource`."""
        return self.read_rows(rows, name)

    def gather(self) -> GatheredState:
        """Gather the whole model on the driver; raise an error if it is too large."""
        return GatheredState(self)

    def check(self) -> None:
        """Check the invariants of every shard, of every pair of shards, and of all together; raise if one fails."""
        for fault, violated in self._find_faults().items():
            if violated:
                raise RipplevecError(f"Cluster state is inconsistent: {fault}. Restore a snapshot.")

    def _find_faults(self) -> dict[str, bool]:
        """Return, for each possible fault, whether it is present."""
        faults, mismatches = self.query("find_fault"), self.transport.run("find_mismatched_shards")
        sizes = self.sizes()
        numbers = np.concatenate([numbers for _, numbers in self.query("list_rows")])
        endpoints_per_edge = 1 if self.parameters.directed else 2
        return {
            **{f"shard {shard}: {fault}": bool(fault) for shard, fault in enumerate(faults)},
            **{
                f"shards {shard} and {other} have different records of an edge": True
                for shard, others in enumerate(mismatches)
                for other in others
            },
            "edge and endpoint counts disagree": sizes["endpoints"] != sizes["edges"] * endpoints_per_edge,
            "driver and shards count different edges": sizes["edges"] != self.edges,
            "driver and shards count different vertices": numbers.size != len(self),
            "an arrival number occurs twice": np.unique(numbers).size < numbers.size,
            "an arrival number was never assigned": bool((numbers >= self.next_arrival).any()),
        }

    def sizes(self) -> dict[str, int]:
        """Return the sums of `ShardGraph.sizes` over all shards."""
        sizes = self.query("sizes")
        return {name: sum(size[name] for size in sizes) for name in sizes[0]}
