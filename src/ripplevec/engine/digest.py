"""Snapshots of an engine, and the digest: a hash of the state that does not depend on its memory layout."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ripplevec.attributes.store import select_attribute_arrays
from ripplevec.batch import IdColumn
from ripplevec.engine.counters import COUNTERS
from ripplevec.engine.local_rows import LocalRows
from ripplevec.graph.adjacency import RowArray
from ripplevec.graph.graph import Graph, strip_prefix
from ripplevec.graph.id_table import encode_ids
from ripplevec.temporal.edge_aging import select_digest_arrays
from ripplevec.util.parallel import block_ranges

HASH_BLOCK_ROWS = 4_096
"""Rows whose vectors and edges are hashed at a time, so that a sharded state is never copied to one machine."""


class StateSnapshot:
    """Copy of the state of an engine, to be saved while the engine continues."""

    def __init__(
        self, arrays: dict[str, NDArray[Any]], progress: NDArray[Any] | None, *, directed: bool, duplicates: str
    ) -> None:
        self._arrays, self._progress = arrays, progress
        self._directed, self._duplicates = directed, duplicates
        self._counters = dict(zip(COUNTERS, arrays["counters"].tolist(), strict=True))

    @property
    def sequence(self) -> int:
        """Sequence number of the copied state."""
        return self._counters["sequence"]

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays."""
        return self._arrays

    def digest(self) -> str:
        """Return the digest of the copied state."""
        arrays = self._arrays
        graph = Graph.from_state(strip_prefix("graph_", arrays), directed=self._directed, duplicates=self._duplicates)
        source = SnapshotRows(graph, arrays["vectors"], arrays["placed"])
        rule_arrays = strip_prefix("rule_", arrays) | select_digest_arrays(strip_prefix("memory_", arrays))
        if attributes := strip_prefix("attributes_", arrays):
            rule_arrays |= select_attribute_arrays(attributes, source.rows_by_arrival())
        return compute_digest(source, rule_arrays, self._counters, self._progress)


class DigestSource(Protocol):
    """The parts of a state that its digest covers. The state may be on other machines. See `LocalRows`."""

    @property
    def next_arrival(self) -> int:
        """Arrival number of the next new vertex."""

    def rows_by_arrival(self) -> RowArray:
        """Return the rows of all vertices in order of arrival."""

    def id_column_of(self, rows: RowArray) -> IdColumn:
        """Return the ids of rows."""

    def read_rows(self, rows: RowArray, attribute: str) -> NDArray[Any]:
        """Return one attribute of each row."""

    def read_edges(self, rows: RowArray, attribute: str) -> NDArray[Any]:
        """Return one attribute of all edges of rows."""


class SnapshotRows(LocalRows):
    """The rows of a copied state."""

    vectors: NDArray[Any] = np.empty((0, 0))

    def __init__(self, graph: Graph, vectors: NDArray[Any], placed: NDArray[np.uint8]) -> None:
        self.graph, self.vectors = graph, vectors
        graph.adjacency.placed[: placed.size] = placed


class HashedArray(NamedTuple):
    """An array to be hashed block by block along its first axis."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    blocks: Iterator[NDArray[Any]]


def compute_digest(
    source: DigestSource,
    rule_arrays: Mapping[str, NDArray[Any] | HashedArray],
    counters: dict[str, int],
    progress: NDArray[Any] | None = None,
) -> str:
    """Return a hash of all parts of a state, with vertices in order of arrival.

    `progress` describes a gradual correction that is not complete.
    """
    hasher = hashlib.blake2b(digest_size=16)
    for array in _hashed_arrays(source, rule_arrays, counters, progress):
        hasher.update(str((array.dtype, array.shape)).encode())
        for block in array.blocks:
            hasher.update(np.ascontiguousarray(block).data)
    return hasher.hexdigest()


def _hashed_arrays(
    source: DigestSource,
    rule_arrays: Mapping[str, NDArray[Any] | HashedArray],
    counters: dict[str, int],
    progress: NDArray[Any] | None,
) -> Iterator[HashedArray]:
    order = source.rows_by_arrival()
    degree = source.read_rows(order, "degree").astype(np.int64)
    for array in (*_id_arrays(source.id_column_of(order)), source.read_rows(order, "arrival"), degree):
        yield _whole_array(array)
    yield _read_by_blocks(partial(_read_neighbor_numbers, source), order, int(degree.sum()))
    for name in ("weight", "outgoing"):
        yield _read_by_blocks(partial(source.read_edges, attribute=name), order, int(degree.sum()))
    for name in ("vectors", "placed"):
        yield _read_by_blocks(partial(source.read_rows, attribute=name), order, order.size)
    for name in sorted(rule_arrays):
        # Cached rows depend on the memory layout; the bounds of the spectrum do not influence vectors by themselves.
        if not name.startswith("cascade_") and name != "lowest":
            values = rule_arrays[name]
            yield values if isinstance(values, HashedArray) else _whole_array(values)
    since_anchor = (
        counters[name] for name in ("edge_events", "vertices_at_anchor", "edges_at_anchor", "rows_shortened")
    )
    yield _whole_array(np.array([counters["sequence"], source.next_arrival, *since_anchor]))
    if progress is not None:  # of a gradual correction
        yield _whole_array(progress)


def _whole_array(array: NDArray[Any]) -> HashedArray:
    return HashedArray(array.dtype, array.shape, iter([array]))


def _read_by_blocks(read: Callable[[RowArray], NDArray[Any]], order: RowArray, length: int) -> HashedArray:
    """Read the values of all rows block by block; concatenated they have this length."""
    empty = read(order[:0])
    blocks = (read(order[first:last]) for first, last in block_ranges(order.size, HASH_BLOCK_ROWS))
    return HashedArray(empty.dtype, (length, *empty.shape[1:]), blocks)


def _read_neighbor_numbers(source: DigestSource, rows: RowArray) -> RowArray:
    """Return the arrival numbers of all neighbors of rows."""
    return source.read_rows(source.read_edges(rows, "neighbor"), "arrival")


def _id_arrays(column: IdColumn) -> list[NDArray[Any]]:
    if isinstance(column, np.ndarray):
        return [column]
    if isinstance(column, pa.Array):
        begins, ends, text = encode_ids(column)
        return [ends - begins, text[begins[0] : ends[-1]] if len(begins) else text]
    return [np.frombuffer(repr(column).encode(), np.uint8)]
