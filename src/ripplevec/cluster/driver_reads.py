"""What may be asked of a model on shards: all that `EngineReads` answers on one machine. Nothing here changes it.

Rows are codes (`asking.py`); they come from `find`, `rows_of` and `rows_by_arrival`, and hold until a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch, Id, IdColumn, Op, id_column, ids_to_list, take_ids
from ripplevec.changes import BatchOutcome, Changes
from ripplevec.cluster.gather import GatheredState
from ripplevec.cluster.routing import assign_shards, merge_id_columns, split_positions
from ripplevec.cluster.transport import Transport
from ripplevec.engine.counters import EngineCounters
from ripplevec.engine.digest import digest
from ripplevec.engine.reads import VertexInfo
from ripplevec.errors import RipplevecError, UnknownVertexError
from ripplevec.graph.adjacency import DUPLICATE_POLICIES, merge_duplicates
from ripplevec.graph.graph import Graph
from ripplevec.parameters import Parameters
from ripplevec.rules.anchor import max_column_cosine
from ripplevec.rules.ripple import RippleRule
from ripplevec.rules.vector_store import VectorStore
from ripplevec.search.query import Query, SearchResults, SearchTarget, query_from_row, query_from_vector

Rows = NDArray[np.int64]
_NO_ROWS: Rows = np.empty(0, np.int64)


class ShardQueries:
    """Whoever asks a crew. A row, to whoever is not a shard, is (the row on its shard) · shards + (the shard)."""

    transport: Transport

    def query(self, method: str, *columns: Sequence[Any], **constants: Any) -> list[Any]:
        """What every shard says, the i-th asked with the i-th of each column."""
        return self.transport.get(self.submit(method, *columns, **constants))

    def submit(self, method: str, *columns: Sequence[Any], **constants: Any) -> list[Any]:
        """The same, but the answers stay where they are until somebody looks at them."""
        return self.transport.call(method, *columns, **constants)

    def query_rows(self, method: str, rows: Rows, *columns: Rows, **constants: Any) -> tuple[list[Any], list[Rows]]:
        """What each shard says of its rows, and where in `rows` these are."""
        places = self._positions_by_shard(rows)
        mine = [rows[place] // self.transport.size for place in places]
        others = ([column[place] for place in places] for column in columns)
        return self.query(method, mine, *others, **constants), places

    def read_rows(self, rows: Rows, what: str) -> NDArray[Any]:
        """A number for each row, or its vector as it is kept."""
        return scatter_parts(*self.query_rows("read_rows", rows, what=what))

    def read_edges(self, rows: Rows, what: str) -> NDArray[Any]:
        """A number for each edge of rows, row by row: the `code` of the neighbor, or one of the weights."""
        answers, places = self.query_rows("read_edges", rows, what=what)
        degree = scatter_parts([count for count, _ in answers], places)
        begin = np.cumsum(degree) - degree
        slots = [_spans(begin[place], count) for place, (count, _) in zip(places, answers, strict=True)]
        return scatter_parts([values for _, values in answers], slots)

    def _send_rows(self, method: str, rows: Rows, *columns: NDArray[Any]) -> None:
        places = self._positions_by_shard(rows)
        mine = [rows[place] // self.transport.size for place in places]
        self.transport.call(method, mine, *([column[place] for place in places] for column in columns))

    def _positions_by_shard(self, rows: Rows) -> list[Rows]:
        return split_positions(rows % self.transport.size, self.transport.size)

    def _row_on_owner(self, code: int) -> list[int]:
        """One row for whoever has it, −1 for the others."""
        shards = self.transport.size
        return [code // shards if code % shards == shard else -1 for shard in range(shards)]


def scatter_parts(parts: list[NDArray[Any]], places: list[Rows]) -> NDArray[Any]:
    """Parts as one array, each entry at its place."""
    whole = np.concatenate(parts)
    out = np.empty_like(whole)
    out[np.concatenate(places)] = whole
    return out


def _spans(begin: Rows, count: Rows) -> Rows:
    """begin, begin + 1, … as many as counted, one span after the other."""
    ends = np.cumsum(count)
    return np.repeat(begin - (ends - count), count) + np.arange(int(count.sum()))


class RemoteGraph:
    """What a batch may ask of a graph that is not here."""

    def __init__(
        self,
        directed: bool,
        find: Callable[[IdColumn], Rows],
        rows_of: Callable[[IdColumn], Rows],
        has_edges: Callable[[Rows, Rows], NDArray[np.bool_]],
    ) -> None:
        self.directed, self.rows_of, self.has_edges, self._find = directed, rows_of, has_edges, find
        self._rows: dict[Id, int] = {}
        self._edges: dict[tuple[Id, Id], bool] = {}

    def prefetch_batch(self, batch: Batch) -> None:
        """Fetch what `has_vertex` and `has_edge` will be asked of a batch."""
        removed = np.flatnonzero((batch.op == Op.REMOVE) | (batch.op == Op.REMOVE_VERTEX))
        src, dst = (take_ids(column, removed) for column in (batch.src, batch.dst))
        rows = self._find(src), self._find(dst)
        for column, found in zip((src, dst), rows, strict=True):
            self._rows.update(zip(ids_to_list(column), found.tolist(), strict=True))
        both = np.flatnonzero((rows[0] >= 0) & (rows[1] >= 0))
        there = self.has_edges(rows[0][both], rows[1][both])
        names = zip(ids_to_list(take_ids(src, both)), ids_to_list(take_ids(dst, both)), strict=True)
        self._edges.update(zip(names, there.tolist(), strict=True))

    def has_vertex(self, name: Id) -> bool:
        """Whether there is a vertex of this name."""
        return self._rows[name] >= 0

    def has_edge(self, src: Id, dst: Id) -> bool:
        """Whether there is an edge between two names (from src to dst when directed)."""
        return self._edges.get((src, dst), False)


class DriverReads(ShardQueries, EngineCounters):
    """Shards, the coordinates of their rows and what is counted, for readers."""

    parameters: Parameters
    rule: RippleRule
    next_arrival: int
    _vertices: int
    _edges: int

    # ------------------------------------------------------------------ who is there

    def __len__(self) -> int:
        return self._vertices

    @property
    def edges(self) -> int:
        """How many edges there are."""
        return self._edges

    @property
    def ready(self) -> bool:
        """Whether arrivals can be placed: there has been a start."""
        return self.rule.ready

    @property
    def graph_lookup(self) -> RemoteGraph:
        """The graph as far as it is asked whether batches can be applied."""
        return RemoteGraph(self.parameters.directed, self.find_rows, self.rows_of, self.has_edges)

    def count_connected(self) -> int:
        """How many vertices have edges."""
        return self.sizes()["with_edges"]

    def find_row(self, name: Id) -> int:
        """The row of a vertex, −1 where it is not known."""
        return int(self.find_rows(id_column([name]))[0])

    def find_rows(self, column: IdColumn) -> Rows:
        """The rows of vertices, −1 where one is not known."""
        shards, owner = self.transport.size, assign_shards(column, self.transport.size)
        where = split_positions(owner, shards)
        found = np.empty(len(column), np.int64)
        for shard, rows in enumerate(self.query("find", [take_ids(column, part) for part in where])):
            found[where[shard]] = np.where(rows < 0, -1, rows * shards + shard)
        return found

    def rows_of(self, column: IdColumn) -> Rows:
        """The rows of known vertices, or an error naming those that are not known."""
        rows = self.find_rows(column)
        if rows.size and rows.min() < 0:
            raise UnknownVertexError(ids_to_list(take_ids(column, np.flatnonzero(rows < 0))))
        return rows

    def rows_by_arrival(self, wanted: Callable[[Rows], NDArray[np.bool_]] | None = None) -> Rows:
        """The rows of vertices in order of arrival: of all, or of those whose arrival numbers are wanted."""
        shards, answers = self.transport.size, self.query("rows_by_arrival")
        rows = np.concatenate([rows * shards + shard for shard, (rows, _) in enumerate(answers)])
        numbers = np.concatenate([numbers for _, numbers in answers])
        order = np.argsort(numbers, kind="stable")
        return rows[order] if wanted is None else rows[order][wanted(numbers[order])]

    def id_column_of(self, rows: Rows) -> IdColumn:
        """The names of rows as a column of ids."""
        answers, places = self.query_rows("column", rows)
        return merge_id_columns(answers, places)

    def ids_of(self, rows: Rows) -> list[Id]:
        """The names of rows as plain ints and strs."""
        return ids_to_list(self.id_column_of(rows))

    # ------------------------------------------------------------------ what is known of them

    def arrival_numbers(self, rows: Rows) -> Rows:
        """The arrival numbers of rows."""
        return self.read_rows(rows, "arrival")

    def degrees(self, rows: Rows) -> NDArray[np.int64]:
        """How many edges rows have, in any direction."""
        return self.read_rows(rows, "degree").astype(np.int64)

    def placed(self, rows: Rows) -> NDArray[np.bool_]:
        """Which of the rows have a vector."""
        return self.read_rows(rows, "placed") != 0

    def vertex_info(self, row: int) -> VertexInfo:
        """All that is known of one row."""
        arrival, count, strength, placed = (
            self.read_rows(np.array([row]), what)[0] for what in ("arrival", "degree", "strength", "placed")
        )
        return VertexInfo(int(arrival), int(count), float(strength), bool(placed))

    def neighbors(self, row: int, most: int | None = None) -> tuple[Rows, NDArray[np.float32]]:
        """Who a row is connected to and the weights of the edges, the latest first: all of them, or `most`."""
        answers = self.query("neighbors", self._row_on_owner(row), most=most)
        return cast(tuple[Rows, NDArray[np.float32]], answers[row % self.transport.size])

    def has_edges(self, src: Rows, dst: Rows) -> NDArray[np.bool_]:
        """Whether there is an edge between two rows (from src to dst when directed), pair by pair."""
        answers, places = self.query_rows("has_edges", src, dst)
        return scatter_parts(answers, places)

    # ------------------------------------------------------------------ where they stand

    def get_vectors(self, rows: Rows) -> NDArray[np.float32]:
        """The vectors of rows as readers get them."""
        return self.rule.to_served(self.read_rows(rows, "vectors"))

    def get_vector(self, row: int) -> NDArray[np.float32]:
        """The vector of one row as readers get it."""
        return self.get_vectors(np.array([row]))[0]

    def preview(self, rows: Rows, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """The vector a newcomer with edges to these rows would be placed at; a row may be there more than once."""
        around, split_positions = merge_duplicates(rows, weights, DUPLICATE_POLICIES[self.parameters.duplicates])
        graph, here = Graph(), np.arange(around.size)
        graph.adjacency.ensure_rows(around.size)
        store = VectorStore(graph, self.parameters.dim, self.rule.precision)
        store.vectors[here], store.placed[here] = (self.read_rows(around, what) for what in ("vectors", "placed"))
        return self.rule.to_served(self.rule.preview(store, here, split_positions)[None])[0]

    def nearest(
        self, ask: Callable[[SearchTarget, Query, int], SearchResults], asked: int | NDArray[np.float64], count: int
    ) -> tuple[Rows, NDArray[np.float32]]:
        """The rows of highest cosine with a row (itself left out) or with a served vector, best first.

        Every shard looks among its own rows, by a search of its own, whatever the one here may be. Of equals the one
        that arrived first comes first.
        """
        if isinstance(asked, int):
            query = query_from_row(self.rule, self.read_rows(np.array([asked]), "vectors")[0], asked)
            left_out = self._row_on_owner(asked)
        else:
            query, left_out = query_from_vector(self.rule, asked), [-1] * self.transport.size
        how: dict[str, Any] = {"query": query, "count": count, "sequence": self.sequence, "anchors": self.anchors}
        answers = self.query("nearest", left_out, **how)
        rows = np.concatenate([found * self.transport.size + shard for shard, (found, _, _) in enumerate(answers)])
        cosines, numbers = (np.concatenate([answer[part] for answer in answers]) for part in (1, 2))
        best = np.lexsort((numbers, -cosines))[:count]
        return rows[best], cosines[best]

    # ------------------------------------------------------------------ what a batch did

    def build_changes(self, outcome: BatchOutcome) -> Changes:
        """What the last batch, or an anchor, changed; the vectors stay with the shards until they are asked for."""
        arrival = self.arrival_numbers(outcome.moved)
        order = np.argsort(arrival, kind="stable")
        rows, serve = outcome.moved[order], self.rule.served_transform()
        places, shards = self._positions_by_shard(rows), self.transport.size
        asked, sequence = [rows[place] // shards for place in places], self.sequence
        vectors = self.submit("read_rows", asked, what="vectors")
        return Changes(
            self.id_column_of(rows),
            cast(Any, vectors),
            lambda answers: serve(scatter_parts(self.fetch_changed_vectors(list(answers), asked, sequence), places)),
            arrival[order] >= outcome.first_new,
            outcome.removed,
            sequence,
            outcome.anchored,
        )

    def fetch_changed_vectors(self, answers: list[Any], asked: list[Rows], sequence: int) -> list[Any]:
        """What shards answered when they were asked for the vectors of rows, after the batch with this number."""
        return self.transport.get(answers)

    def empty_changes(self, sequence: int) -> Changes:
        """What a batch changed that had been applied before, under this number: nothing."""
        nothing = np.empty((0, self.parameters.dim), np.float32)
        return Changes(_NO_ROWS, nothing, self.rule.served_transform(), np.empty(0, np.bool_), [], sequence, False)

    # ------------------------------------------------------------------ all of it

    def diagnostics(self) -> dict[str, Any]:
        """How the model stands, in numbers."""
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
        """The hash that the same state has on one machine; vectors and edges pass through here, some at a time."""
        return digest(self, self.rule.state(), self.counters())

    def edge_values(self, rows: Rows, what: str) -> NDArray[Any]:
        """What is hashed of the edges of rows: a weight, or the arrival numbers of the neighbors."""
        return self.arrival_numbers(self.read_edges(rows, "code")) if what == "arrival" else self.read_edges(rows, what)

    def row_values(self, rows: Rows, what: str) -> NDArray[Any]:
        """What is hashed of rows themselves: their vectors as they are kept, or whether they are placed."""
        return self.read_rows(rows, what)

    def gather(self) -> GatheredState:
        """All of it in one place, for what needs that; an error where it is too large."""
        return GatheredState(self)

    def check(self) -> None:
        """Raise where a shard contradicts itself or another, or what is known here of all of them."""
        check_shards(self)

    def sizes(self) -> dict[str, int]:
        """How all shards stand, in numbers that add up."""
        sizes = self.query("sizes")
        return {name: sum(size[name] for size in sizes) for name in sizes[0]}


def check_shards(engine: DriverReads) -> None:
    """Raise where a shard contradicts itself or another, or what is known of all of them."""
    transport = engine.transport
    faults = transport.get(transport.call("find_faults"))
    ends = transport.call("ends", parts=transport.size)
    pairs = transport.get(transport.call("find_mismatched_shards", *ends))
    sizes = engine.sizes()
    numbers = np.concatenate([numbers for _, numbers in transport.get(transport.call("rows_by_arrival"))])
    found = {
        **{f"shard {shard}: {fault}": bool(fault) for shard, fault in enumerate(faults)},
        **{
            f"shards {shard} and {other}: an edge is known to one end only, or differs": True
            for shard, others in enumerate(pairs)
            for other in others
        },
        "the number of edges is off": sizes["ends"] != sizes["edges"] * (1 if engine.parameters.directed else 2),
        "the driver knows another number of edges": sizes["edges"] != engine.edges,
        "the driver knows another number of vertices": numbers.size != len(engine),
        "an arrival number stands twice": np.unique(numbers).size < numbers.size,
        "an arrival number has not been given out": bool((numbers >= engine.next_arrival).any()),
    }
    for fault, there in found.items():
        if there:
            raise RipplevecError(f"the cluster is damaged: {fault}")
