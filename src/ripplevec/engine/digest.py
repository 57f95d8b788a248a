"""The state of an engine at one moment, and its digest: a hash that does not depend on how things lie in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ripplevec.batch import IdColumn
from ripplevec.engine.counters import COUNTERS
from ripplevec.graph.graph import Graph, strip_prefix
from ripplevec.graph.id_table import encode_ids
from ripplevec.rules.background_anchor import BackgroundAnchor
from ripplevec.temporal.edge_aging import select_digest_arrays
from ripplevec.util.parallel import block_ranges

Rows = NDArray[np.int64]
ROWS_AT_ONCE = 4_096
"""Vectors, and lists of edges, that are copied to be hashed: so few that all of them need not be in one place."""


class StateSnapshot:
    """The state of an engine at one moment, for whoever saves it while the engine goes on."""

    def __init__(
        self, arrays: dict[str, NDArray[Any]], pending: BackgroundAnchor | None, *, directed: bool, duplicates: str
    ) -> None:
        self._arrays, self._pending = arrays, pending
        self._directed, self._duplicates = directed, duplicates
        self._counters = dict(zip(COUNTERS, arrays["counters"].tolist(), strict=True))

    @property
    def sequence(self) -> int:
        """The sequence number the engine had."""
        return self._counters["sequence"]

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything as plain arrays, an anchor on its way included: that is waited for."""
        pending = {} if self._pending is None else self._pending.state()
        return self._arrays | {f"pending_{name}": array for name, array in pending.items()}

    def digest(self) -> str:
        """The digest the engine had."""
        arrays = self._arrays
        graph = Graph.from_state(strip_prefix("graph_", arrays), directed=self._directed, duplicates=self._duplicates)
        held = LocalDigestSource(graph, arrays["vectors"], arrays["placed"])
        learned = strip_prefix("rule_", arrays) | select_digest_arrays(strip_prefix("memory_", arrays))
        return digest(held, learned, self._counters, self._pending)


class DigestSource(Protocol):
    """A state as far as its digest asks; it may lie elsewhere."""

    @property
    def next_arrival(self) -> int:
        """The arrival number that the next new vertex will get."""

    def rows_by_arrival(self) -> Rows:
        """The rows of all vertices in order of arrival."""

    def id_column_of(self, rows: Rows) -> IdColumn:
        """The names of rows."""

    def arrival_numbers(self, rows: Rows) -> Rows:
        """The arrival numbers of rows."""

    def degrees(self, rows: Rows) -> Rows:
        """How many neighbors rows have."""

    def edge_values(self, rows: Rows, what: str) -> NDArray[Any]:
        """The `weight`, or the `outgoing` one, of all edges of rows; or the arrival numbers of the neighbors."""

    def row_values(self, rows: Rows, what: str) -> NDArray[Any]:
        """The `vectors` of rows as they are kept, or whether they are `placed`."""


class LocalDigestSource:
    """A state that is here, as the digest asks for it."""

    def __init__(self, graph: Graph, vectors: NDArray[Any], placed: NDArray[np.uint8]) -> None:
        self.graph, self.rows_by_arrival, self.id_column_of = graph, graph.rows_by_arrival, graph.ids.to_column
        self.next_arrival = graph.next_arrival
        self._beside = {"vectors": vectors, "placed": placed}

    def arrival_numbers(self, rows: Rows) -> Rows:
        """The arrival numbers of rows."""
        return self.graph.arrival[rows]

    def degrees(self, rows: Rows) -> Rows:
        """How many neighbors rows have."""
        return self.graph.adjacency.links.degree[rows].astype(np.int64)

    def edge_values(self, rows: Rows, what: str) -> NDArray[Any]:
        """What is hashed of the edges of rows."""
        links, slots = self.graph.adjacency.links, self.graph.adjacency.slots(rows)
        if what == "arrival":
            return self.graph.arrival[links.neighbor[slots]]
        return {"weight": links.weight, "outgoing": links.outgoing}[what][slots]

    def row_values(self, rows: Rows, what: str) -> NDArray[Any]:
        """What is hashed of rows themselves."""
        return self._beside[what][rows]


class Part(NamedTuple):
    """An array to be hashed, block by block along its first axis."""

    kind: np.dtype[Any]
    shape: tuple[int, ...]
    blocks: Iterator[NDArray[Any]]


def digest(
    held: DigestSource, learned: dict[str, NDArray[Any]], counters: dict[str, int], pending: BackgroundAnchor | None = None
) -> str:
    """A hash of all parts of a state, in the order in which vertices arrived."""
    hasher = hashlib.blake2b(digest_size=16)
    for part in _parts(held, learned, counters, pending):
        hasher.update(str((part.kind, part.shape)).encode())
        for block in part.blocks:
            hasher.update(np.ascontiguousarray(block).data)
    return hasher.hexdigest()


def _parts(
    held: DigestSource, learned: dict[str, NDArray[Any]], counters: dict[str, int], pending: BackgroundAnchor | None
) -> Iterator[Part]:
    order = held.rows_by_arrival()
    degree = held.degrees(order)
    for array in (*_id_arrays(held.id_column_of(order)), held.arrival_numbers(order), degree):
        yield _whole(array)
    for what in ("arrival", "weight", "outgoing"):
        yield _by_rows(held.edge_values, order, what, int(degree.sum()))
    for what in ("vectors", "placed"):
        yield _by_rows(held.row_values, order, what, order.size)
    for name in sorted(learned):
        if not name.startswith("cascade_"):
            yield _whole(learned[name])
    then = (counters[name] for name in ("edge_events", "vertices_at_anchor", "edges_at_anchor", "rows_shortened"))
    yield _whole(np.array([counters["sequence"], held.next_arrival, *then]))
    if pending is not None:
        yield _whole(np.array([pending.since, pending.until]))


def _whole(array: NDArray[Any]) -> Part:
    return Part(array.dtype, array.shape, iter([array]))


def _by_rows(ask: Callable[[Rows, str], NDArray[Any]], order: Rows, what: str, length: int) -> Part:
    """What is said of all rows, asked for some at a time; as one array it would have this length."""
    nothing = ask(order[:0], what)
    parts = (ask(order[first:last], what) for first, last in block_ranges(order.size, ROWS_AT_ONCE))
    return Part(nothing.dtype, (length, *nothing.shape[1:]), parts)


def _id_arrays(column: IdColumn) -> list[NDArray[Any]]:
    if isinstance(column, np.ndarray):
        return [column]
    if isinstance(column, pa.Array):
        begins, ends, text = encode_ids(column)
        return [ends - begins, text[begins[0] : ends[-1]] if len(begins) else text]
    return [np.frombuffer(repr(column).encode(), np.uint8)]
