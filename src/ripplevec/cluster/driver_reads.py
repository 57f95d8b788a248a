"""Reads of a model on shards, from the driver: the operations on rows that `EngineReads` needs.

A `ReadSnapshot` serves reads during a long update, and a `GatheredState` is a copy of a small model on the driver.

All rows are row codes (see `routing.py`). They come from `find_row`, `find_rows`, `rows_of` and `rows_by_arrival`, and
are valid until the next batch.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from itertools import count
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch, Id, IdColumn, Op, ids_to_list, take_ids
from ripplevec.cluster.mesh import ShardLostError
from ripplevec.cluster.routing import assign_shards, scatter_id_columns, split_positions
from ripplevec.cluster.shard import SNAPSHOT_GONE
from ripplevec.cluster.transport import Transport
from ripplevec.engine.digest import HashedArray
from ripplevec.engine.reads import EngineReads, LocalReads, Search
from ripplevec.errors import RipplevecError
from ripplevec.graph.adjacency import (
    DECAYING_DUPLICATE_POLICIES,
    DUPLICATE_POLICIES,
    MAX_ROWS,
    Adjacency,
    RowArray,
    WeightScale,
)
from ripplevec.graph.graph import Graph
from ripplevec.parameters import Parameters
from ripplevec.rules.anchor import max_column_cosine
from ripplevec.rules.paper import PaperRule
from ripplevec.rules.vector_store import VectorStore
from ripplevec.search.searcher import Query
from ripplevec.temporal.edge_aging import select_digest_arrays
from ripplevec.util.parallel import block_ranges

if TYPE_CHECKING:
    from ripplevec.cluster.engine import ClusterEngine

MAX_GATHERED_EDGES = 10_000_000
"""Largest graph that is gathered together with its vectors, to bound the memory of the driver."""

RECOVERING = "A shard is being recovered; retry."

_snapshot_numbers = count(1)
_COPIED_ATTRIBUTES = (
    *("parameters", "anchor_growth", "start_size", "growth_slack"),
    *("next_arrival", "vertices", "edges", "weight_scale"),
)

WINDOW_BLOCK = 1 << 20
"""Arrival numbers whose edges are read from the time windows at a time."""


class RemoteGraph:
    """The graph on the shards, as far as the validation of a batch needs it; fetched with few queries."""

    def __init__(self, reads: ShardReads) -> None:
        self.directed, self.rows_of = reads.parameters.directed, reads.rows_of
        self._reads, self._edges_expire = reads, reads.parameters.expire_after is not None
        self._rows: dict[Id, int] = {}
        self._edges: dict[tuple[Id, Id], bool] = {}

    def prefetch_batch(self, batch: Batch) -> None:
        """Fetch, for `has_vertex` and `has_edge`, whether the vertices and edges that a batch removes exist."""
        removals = np.flatnonzero((batch.op == Op.REMOVE) | (batch.op == Op.REMOVE_VERTEX))
        src, dst = (take_ids(column, removals) for column in (batch.src, batch.dst))
        src_rows, dst_rows = self._reads.find_rows(src), self._reads.find_rows(dst)
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

    def has_edges(self, src: RowArray, dst: RowArray) -> NDArray[np.bool_]:
        """Return, for each pair of rows, whether an edge exists, or may have existed and expired."""
        return np.ones(src.size, np.bool_) if self._edges_expire else self._reads.has_edges(src, dst)


class ShardReads(EngineReads):
    """Read methods of a model whose rows are on shards; coordinates and counters are on the driver."""

    transport: Transport
    parameters: Parameters
    vertices: int = 0
    edges: int = 0
    next_arrival: int = 0
    weight_scale: WeightScale = WeightScale()

    def __len__(self) -> int:
        return self.vertices

    @property
    def dim(self) -> int:
        """Number of dimensions of a vector."""
        return self.parameters.dim

    @property
    def graph_lookup(self) -> RemoteGraph:
        """The graph, as far as the validation of a batch needs it."""
        return RemoteGraph(self)

    @property
    def duplicate_policy(self) -> int:
        """How the weights of a repeated edge are combined."""
        policies = DUPLICATE_POLICIES if self.parameters.half_life is None else DECAYING_DUPLICATE_POLICIES
        return policies[self.parameters.duplicates]

    def count_connected(self) -> int:
        """Return the number of vertices with edges."""
        return self.sizes()["with_edges"]

    # ------------------------------------------------------------------ queries to all shards

    def query(self, method: str, *columns: Sequence[Any], **constants: Any) -> list[Any]:
        """Call a method on every shard and wait for the results; shard i receives entry i of each column."""
        return self._resolve(self._call(method, *columns, **constants))

    def submit(self, method: str, *columns: Sequence[Any], **constants: Any) -> list[Any]:
        """Call a method on every shard and wait; the results stay in the object store until they are resolved."""
        results = self._call(method, *columns, **constants)
        self.transport.wait(results)
        return results

    def _call(self, method: str, *columns: Sequence[Any], **constants: Any) -> list[Any]:
        """Call a method on every shard; return references to the results."""
        return self.transport.call(method, *columns, **constants)

    def _resolve(self, results: Sequence[Any]) -> list[Any]:
        """Wait for results."""
        return self.transport.get(results)

    def query_rows(
        self, method: str, rows: RowArray, *columns: NDArray[Any], **constants: Any
    ) -> tuple[list[Any], list[RowArray]]:
        """Query each shard about its rows; return the results, and the positions of these rows in `rows`."""
        positions = split_positions(rows, self.transport.size)
        return self.query(method, *self._split_columns(positions, rows, *columns), **constants), positions

    def _split_columns(
        self, positions: list[RowArray], rows: RowArray, *columns: NDArray[Any]
    ) -> list[list[NDArray[Any]]]:
        """Split rows (decoded to rows on their shards) and further columns by shard."""
        return [[column[part] for part in positions] for column in (rows // self.transport.size, *columns)]

    def encode_rows(self, parts: Iterable[RowArray]) -> RowArray:
        """Return the row codes of rows on each shard."""
        return np.concatenate([rows * self.transport.size + shard for shard, rows in enumerate(parts)])

    def row_on_owner(self, code: int) -> list[int]:
        """Return, for each shard, the row of a vertex if it is on that shard, else −1; code −1 is no vertex."""
        shards = self.transport.size
        return [code // shards if code % shards == shard else -1 for shard in range(shards)]

    # ------------------------------------------------------------------ operations on rows

    def find_rows(self, column: IdColumn) -> RowArray:
        """Return the rows of vertices, −1 for unknown ones."""
        shards = self.transport.size
        positions = split_positions(assign_shards(column, shards), shards)
        codes = np.empty(len(column), np.int64)
        for shard, rows in enumerate(self.query("find_rows", [take_ids(column, part) for part in positions])):
            codes[positions[shard]] = np.where(rows < 0, -1, rows * shards + shard)
        return codes

    def rows_by_arrival(self, select: Callable[[RowArray], NDArray[np.bool_]] | None = None) -> RowArray:
        """Return the rows of all vertices, or of those whose arrival numbers `select` marks, in order of arrival."""
        results = self.query("list_rows")
        rows = self.encode_rows(rows for rows, _ in results)
        numbers = np.concatenate([numbers for _, numbers in results])
        order = np.argsort(numbers, kind="stable")
        return rows[order] if select is None else rows[order][select(numbers[order])]

    def id_column_of(self, rows: RowArray) -> IdColumn:
        """Return the ids of rows as a column."""
        return scatter_id_columns(*self.query_rows("id_column_of", rows))

    def read_rows(self, rows: RowArray, attribute: str) -> NDArray[Any]:
        """Return one attribute of each row; see `LocalRows.read_rows`."""
        return scatter_parts(*self.query_rows("read_rows", rows, attribute=attribute))

    def read_row(self, row: int, attributes: Sequence[str]) -> list[Any]:
        """Return some attributes of one row, as numbers; see `read_rows`."""
        results = self.query("read_row", self.row_on_owner(row), attributes=attributes)
        return cast(list[Any], results[row % self.transport.size])

    def read_edges(self, rows: RowArray, attribute: str) -> NDArray[Any]:
        """Return one attribute of all edges of rows, row by row; see `LocalRows.read_edges`."""
        return self.read_latest_edges(rows, (attribute,))[1]

    def read_latest_edges(
        self, rows: RowArray, attributes: Sequence[str] = ("neighbor", "weight"), limit: int = MAX_ROWS
    ) -> tuple[NDArray[Any], ...]:
        """Return the number of edges of rows, at most `limit` of each, and some attributes of the latest ones."""
        return scatter_lists(*self.query_rows("list_edges", rows, attributes=attributes, limit=limit))

    def list_neighbors(self, row: int, limit: int | None) -> tuple[RowArray, NDArray[np.float32]]:
        """Return the neighbors of a row and the stored edge weights, latest edge first: all, or `limit` of them."""
        _, neighbors, weights = self.read_latest_edges(np.array([row]), limit=MAX_ROWS if limit is None else limit)
        return neighbors[::-1], weights[::-1]

    def has_edges(self, src: RowArray, dst: RowArray) -> NDArray[np.bool_]:
        """Return, pair by pair, whether there is an edge between two rows (from src to dst, if directed)."""
        return scatter_parts(*self.query_rows("edges_exist", src, dst))

    def find_nearest(self, search: Search, query: Query, count: int) -> tuple[RowArray, NDArray[np.float32]]:
        """Return the rows of highest cosine with a query, highest first.

        Every shard searches its own rows with its own search object; `search` is not used. Among equal cosines the
        earlier arrival comes first.
        """
        excluded = self.row_on_owner(query.exclude)
        results = self.query(
            "search_nearest", excluded, query=query, count=count, sequence=self.sequence, anchors=self.anchors
        )
        return self.merge_nearest(results, count)

    def merge_nearest(self, results: list[Any], count: int) -> tuple[RowArray, NDArray[np.float32]]:
        """Return the best of the rows, cosines and arrival numbers that every shard found."""
        codes = self.encode_rows(rows for rows, _, _ in results)
        cosines, numbers = (np.concatenate([result[part] for result in results]) for part in (1, 2))
        best = np.lexsort((numbers, -cosines))[:count]
        return codes[best], cosines[best]

    def store_with(self, rows: RowArray) -> tuple[VectorStore, RowArray]:
        """Return a store with copies of these rows, and their positions in it."""
        graph, positions = Graph(), np.arange(rows.size)
        graph.adjacency.ensure_rows(rows.size)
        graph.adjacency.weight_scale = self.weight_scale
        store = VectorStore(graph, self.parameters.dim, self.rule.precision)
        store.vectors[positions] = self.read_rows(rows, "vectors")
        store.placed[positions] = self.read_rows(rows, "placed")
        return store, positions

    def copy_vectors(self, rows: RowArray) -> tuple[Any, Callable[[Any], NDArray[np.float32]]]:
        """Copy the stored vectors of rows to the object store, where they stay until they are read."""
        positions, to_served = split_positions(rows, self.transport.size), self.rule.served_transform()
        copies = self.submit("read_rows", *self._split_columns(positions, rows), attribute="vectors")

        def fetch_served(references: Any) -> NDArray[np.float32]:
            return to_served(scatter_parts(self._resolve(list(references)), positions))

        return copies, fetch_served

    # ------------------------------------------------------------------ the whole model

    def sizes(self) -> dict[str, int]:
        """Return the sums of `ShardGraph.sizes` over all shards."""
        sizes = self.query("sizes")
        return {name: sum(size[name] for size in sizes) for name in sizes[0]}

    def orthogonality_error(self) -> float:
        """Return how far the inner products of columns deviate from their intended values."""
        grams = [np.sum(view, axis=0) for view in zip(*self.query("grams"), strict=True)]
        return self.rule.gram_deviation(*grams) if isinstance(self.rule, PaperRule) else max_column_cosine(grams)

    def aging_arrays(self) -> dict[str, NDArray[Any] | HashedArray]:
        """Return the arrays of edge aging that enter the digest; those of the time windows are read in blocks."""
        if self.aging is None:
            return {}
        arrays: dict[str, NDArray[Any] | HashedArray] = {**select_digest_arrays(self.aging.state())}
        if self.parameters.expire_after is not None:
            edges = sum(self.query("count_timed"))
            for name, dtype, shape in (("latest", np.float64, (edges,)), ("numbers", np.int64, (edges, 2))):
                arrays[f"memory_window_{name}"] = HashedArray(np.dtype(dtype), shape, self._read_windows(name))
        return arrays

    def _read_windows(self, name: str) -> Iterator[NDArray[Any]]:
        """Read an array of the time windows of all shards, with edges in the order of their arrival numbers."""
        for first, last in block_ranges(self.next_arrival, WINDOW_BLOCK):
            parts = self.query("read_window", first=first, last=last)
            numbers, values = (np.concatenate([part[column] for part in parts]) for column in ("numbers", name))
            yield values[np.lexsort((numbers[:, 1], numbers[:, 0]))]

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


class ReadSnapshot(ShardReads):
    """The state that an engine had when this snapshot was created, for readers until a long update is complete.

    Every shard keeps a copy of its state until the snapshot is garbage-collected.
    """

    def __init__(self, engine: ClusterEngine) -> None:
        self._snapshot = next(_snapshot_numbers)
        engine.query("create_read_snapshot", snapshot=self._snapshot)
        self.transport, self.rule, self.aging = engine.transport, engine.rule.copy(), deepcopy(engine.aging)
        vars(self).update(engine.counters(), **{name: getattr(engine, name) for name in _COPIED_ATTRIBUTES})
        weakref.finalize(self, engine.transport.call, "drop_read_snapshot", snapshot=self._snapshot).atexit = False

    def _call(self, method: str, *columns: Sequence[Any], **constants: Any) -> list[Any]:
        """Call a read method on the copy of every shard."""
        context = {"snapshot": self._snapshot, "read_method": method, "constants": constants}
        return self.transport.call("query_read_snapshot", *columns, **context)

    def _resolve(self, results: Sequence[Any]) -> list[Any]:
        """Resolve references; raise `ShardLostError` if a shard lost its copy."""
        try:
            values = super()._resolve(results)
        except ShardLostError as error:
            raise ShardLostError(RECOVERING) from error
        if any(isinstance(value, str) and value == SNAPSHOT_GONE for value in values):
            raise ShardLostError(RECOVERING)
        return values


class GatheredState(LocalReads):
    """Graph, vectors and coordinates of a model on shards, as one machine has them; the rule is not copied."""

    def __init__(self, engine: ShardReads) -> None:
        if engine.edges > MAX_GATHERED_EDGES:
            raise RipplevecError(
                f"Graph too large to gather on the driver: expected at most {MAX_GATHERED_EDGES:,} edges, "
                f"got {engine.edges:,}. Use a model on one machine."
            )
        self.graph, rows = gather_graph(engine)
        self.rule, self.sequence, self.anchors = engine.rule, engine.sequence, engine.anchors
        self.store = VectorStore(self.graph, engine.parameters.dim, engine.rule.precision)
        self.store.vectors[: rows.size] = engine.read_rows(rows, "vectors")
        self.store.placed[: rows.size] = engine.read_rows(rows, "placed")


def gather_graph(engine: ShardReads) -> tuple[Graph, RowArray]:
    """Gather the graph with one row per vertex in order of arrival; return it and the row codes of its rows."""
    rows, directed = engine.rows_by_arrival(), engine.parameters.directed
    packed: dict[str, NDArray[Any]] = {
        "degree": engine.degrees(rows),
        "neighbor": positions_of(engine.read_edges(rows, "neighbor"), rows).astype(np.int32),
    }
    for name in ("weight", "outgoing", "incoming") if directed else ("weight",):
        packed[name] = engine.read_edges(rows, name)
    for name in ("strength", "in_strength") if directed else ("strength",):
        packed[name] = engine.read_rows(rows, name)
    graph = engine.parameters.create_graph()
    ids = engine.id_column_of(rows)
    graph.ids.intern(ids, ids)
    graph.adjacency = Adjacency.from_packed(packed, directed=directed, duplicates=engine.parameters.duplicates)
    graph.adjacency.ensure_rows(rows.size)
    graph.adjacency.weight_scale, graph.adjacency.duplicate_policy = engine.weight_scale, engine.duplicate_policy
    graph.arrival[: rows.size] = engine.arrival_numbers(rows)
    graph.next_arrival = engine.next_arrival
    return graph, rows


def positions_of(codes: RowArray, rows: RowArray) -> RowArray:
    """Return the position of each code in `rows`."""
    order = np.argsort(rows)
    return order[np.searchsorted(rows[order], codes)]


def scatter_parts(parts: list[NDArray[Any]], positions: list[RowArray]) -> NDArray[Any]:
    """Assemble parts into one array, with each entry at its position."""
    joined = np.concatenate(parts)
    out = np.empty_like(joined)
    out[np.concatenate(positions)] = joined
    return out


def scatter_lists(results: Sequence[tuple[NDArray[Any], ...]], positions: list[RowArray]) -> tuple[NDArray[Any], ...]:
    """Assemble lists of several shards into one array per column, with each list at its position.

    A result consists of the lengths of its lists and of columns with all their entries.
    """
    counts = scatter_parts([lengths for lengths, *_ in results], positions)
    begin = np.cumsum(counts) - counts
    targets = [_concatenate_ranges(begin[part], result[0]) for part, result in zip(positions, results, strict=True)]
    columns = list(zip(*results, strict=True))[1:]
    return counts, *(scatter_parts(list(column), targets) for column in columns)


def _concatenate_ranges(begin: RowArray, count: RowArray) -> RowArray:
    """Return begin[i], begin[i] + 1, … (count[i] values) for all i, concatenated."""
    ends = np.cumsum(count)
    return np.repeat(begin - (ends - count), count) + np.arange(int(count.sum()))
