"""Weighted adjacency lists over rows, in flat arrays: adding an edge is amortized O(1), removing one is O(degree)."""

from __future__ import annotations

from collections.abc import Callable
from operator import add
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.batch import Op
from ripplevec.errors import FormatError, RipplevecError, check_choice
from ripplevec.graph import _block_kernels as blocks
from ripplevec.graph import _edge_kernels as kernels
from ripplevec.graph._block_kernels import Links
from ripplevec.graph._bulk_edge_kernels import EdgeBatch, reserve_blocks
from ripplevec.graph._hub_kernels import is_index_consistent
from ripplevec.graph._query_kernels import has_edge, has_edges, is_bipartite
from ripplevec.graph.bulk_edges import MAX_BULK_EDGES, BulkInsertion
from ripplevec.util.growable_array import GrowableArray, next_capacity
from ripplevec.util.numba_intrinsics import CACHE_LINE_BYTES

RowArray: TypeAlias = NDArray[np.int64]
"""Rows of vertices, or another number per vertex: row codes of a cluster, arrival numbers, degrees."""

DUPLICATE_POLICIES = {"add": kernels.SUM, "ignore": kernels.KEEP_FIRST, "replace": kernels.REPLACE}

# Under decay an ignored duplicate still renews the edge: it counts once, with the weight of its latest arrival.
DECAYING_DUPLICATE_POLICIES = DUPLICATE_POLICIES | {"ignore": kernels.KEEP_MAX}
MIN_BULK_EDGES = 2_048  # a smaller batch is added faster edge by edge, also on one thread
MAX_ROWS = 2**31 - 1  # slots store rows as int32
SUM_TOLERANCE = 1e-6  # relative; ten times the rounding error of a sum of float32 weights
_COMBINE: dict[int, Callable[[float, float], float]] = {
    kernels.SUM: add,
    kernels.KEEP_FIRST: lambda stored, _: stored,
    kernels.REPLACE: lambda _, new: new,
    kernels.KEEP_MAX: max,
}

# The fields of a vertex share one cache line, and so do the fields of a slot: on a large graph most time is spent
# waiting for cache lines. Kernels read the columns of these two tables.
_VERTEX_FIELDS = [
    ("begin", np.int64),
    ("strength", np.float64),
    ("arrival", np.int64),  # arrival number; −1 if the row is free
    ("seen", np.int64),  # stamp (2 · sequence number, or 1 less) of the last batch that reached the vertex
    ("index_begin", np.int64),
    ("degree", np.int32),
    ("size_class", np.int8),
    ("placed", np.uint8),  # whether the vertex has a vector
]
_SLOT_FIELDS = [("neighbor", np.int32), ("weight", np.float32)]
_DIRECTION_FIELDS = [("outgoing", np.float32), ("incoming", np.float32)]  # directed graphs only; `weight` is their sum


class WeightScale(NamedTuple):
    """Scale of the stored weights, which changes over time under decay (see `ripplevec.temporal.decay`)."""

    unit: float = 1.0  # stored value of a weight of one that arrives now
    effective_edges: float = float("inf")  # number of edges, decayed ones counted in part; infinite without decay


class Totals(NamedTuple):
    """Sums over the rows of a graph."""

    endpoints: int  # number of edge endpoints: every edge has two
    strength: float  # sum of the weights over all endpoints
    active: int  # number of rows with edges

    @property
    def mean_degree(self) -> float:
        """Endpoints per row with edges."""
        return self.endpoints / max(1, self.active)


class Adjacency:
    """Weighted adjacency lists over rows; `Graph` combines them with the vertex ids of `IdTable`."""

    def __init__(self, *, directed: bool = False, duplicates: str = "add") -> None:
        check_choice("duplicates", duplicates, DUPLICATE_POLICIES)
        self.directed = directed
        self.duplicates, self.duplicate_policy = duplicates, DUPLICATE_POLICIES[duplicates]
        self.weight_scale = WeightScale()
        vertex = _pad_to_cache_line([*_VERTEX_FIELDS, *([("in_strength", np.float64)] if directed else [])])
        self._vertices = GrowableArray(vertex, fill=_free_row(vertex))
        self._slots = GrowableArray([*_SLOT_FIELDS, *(_DIRECTION_FIELDS if directed else [])])
        self._index_cells = GrowableArray(np.int32)
        self._allocator = blocks.create_allocator()
        self._update_columns()

    @property
    def capacity(self) -> int:
        """Number of allocated rows."""
        return self._vertices.array.size

    @property
    def edge_count(self) -> int:
        """Number of edges; each is counted once, or once per direction if directed."""
        return int(self.links.allocator[blocks.EDGE_COUNT])

    def set_edge_count(self, edges: int) -> None:
        """Set the number of edges: a shard counts only the edges whose outgoing (src) endpoint it stores."""
        self.links.allocator[blocks.EDGE_COUNT] = edges

    @property
    def endpoint_count(self) -> int:
        """Number of edge endpoints, two per edge; if directed, only the outgoing ones, one per edge."""
        slots = self.slots()
        return int((self.links.outgoing[slots] > 0).sum()) if self.directed else slots.size

    @property
    def self_loop_count(self) -> int:
        """Number of self-loops that were ignored."""
        return int(self.links.allocator[blocks.LOOP_COUNT])

    @property
    def nbytes(self) -> int:
        """Bytes in use."""
        vertices, slots = self._vertices.array, self._slots.array
        used = int(self._allocator[blocks.ARENA_TOP]) * slots.itemsize
        used += int(self._allocator[blocks.INDEX_ARENA_TOP]) * 4
        return vertices.nbytes + used

    def totals(self, rows: int) -> Totals:
        """Compute sums over the first `rows` rows; under decay, only the effective edges count as endpoints."""
        degrees = self.links.degree[:rows]
        endpoints = int(min(degrees.sum(), 2 * self.weight_scale.effective_edges))
        return Totals(endpoints, float(self.links.strength[:rows].sum()), int(np.count_nonzero(degrees)))

    def is_bipartite(self, rows: int) -> bool:
        """Return whether the graph of the first `rows` rows is bipartite."""
        return bool(is_bipartite(self.links, rows))

    def ensure_rows(self, rows: int) -> None:
        """Allocate rows 0 … rows−1 if necessary; new rows have no edges."""
        if rows <= self.capacity:
            return
        if rows > MAX_ROWS:
            raise RipplevecError(f"Too many vertices: expected at most {MAX_ROWS:,} vertices in a graph, got {rows:,}.")
        self._vertices.grow(min(next_capacity(self.capacity, rows, CACHE_LINE_BYTES), MAX_ROWS))
        self._update_columns()

    def apply(
        self, op: NDArray[np.int8], pairs: NDArray[np.int64], weight: NDArray[np.float32], threads: int = 1
    ) -> NDArray[np.float64]:
        """Add and remove edges in order; return, per operation and endpoint, the share of its strength that changed.

        The result does not depend on the number of threads.
        """
        self._ensure_arena()
        if MIN_BULK_EDGES <= op.size < MAX_BULK_EDGES and not (op == Op.REMOVE).any():
            return self._add_in_bulk(op, pairs, weight, threads)
        changed_share = np.empty((op.size, 2))
        done = 0
        while True:
            done = kernels.apply_edges(
                self.links, op, pairs, weight, changed_share, done, self.duplicate_policy, self.directed
            )
            if done == op.size:
                return changed_share
            self._grow_arena()

    def _add_in_bulk(
        self, op: NDArray[np.int8], pairs: NDArray[np.int64], weight: NDArray[np.float32], threads: int
    ) -> NDArray[np.float64]:
        """Add the edges of a large batch without removals; see `apply`."""
        batch = EdgeBatch(op, pairs, weight, np.zeros((op.size, 2)))
        insertion = BulkInsertion(batch, self.capacity, self.duplicate_policy, self.directed, threads)
        moves, done = insertion.plan(self.links), 0
        while (done := reserve_blocks(self.links, moves, done)) < moves.rows.size:
            self._grow_arena()
        insertion.apply(self.links, moves)
        return batch.changed_share

    def apply_endpoints(
        self, op: NDArray[np.int8], ends: NDArray[np.int64], weight: NDArray[np.float32], direction: NDArray[np.int8]
    ) -> NDArray[np.float64]:
        """Add and remove edges in order at one endpoint each, given as (row, neighbor); return the changed shares."""
        self._ensure_arena()
        changed_share, done = np.empty(op.size), 0
        while True:
            done = kernels.apply_endpoints(
                self.links, op, ends, weight, direction, changed_share, done, self.duplicate_policy, self.directed
            )
            if done == op.size:
                return changed_share
            self._grow_arena()

    def remove_vertex(self, row: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Remove all edges of a row; return its former neighbors, and the share of strength that each of them lost."""
        degree = int(self.links.degree[row])
        neighbors, lost_share = np.empty(degree, np.int64), np.empty(degree)
        kernels.remove_vertex(self.links, row, neighbors, lost_share, self.directed)
        return neighbors, lost_share

    def scale_weights(self, factor: float) -> None:
        """Multiply all weights by a power of two."""
        kernels.scale_weights(self.links, self.capacity, factor, self.directed)

    def has_edge(self, src: int, dst: int) -> bool:
        """Return whether an edge exists (from src to dst if directed)."""
        return bool(has_edge(self.links, src, dst, self.directed))

    def has_edges(self, src: NDArray[np.int64], dst: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return, for each pair of rows, whether an edge exists."""
        found = np.empty(src.size, np.bool_)
        has_edges(self.links, src, dst, found, self.directed)
        return found

    def neighbors(self, row: int) -> NDArray[np.int64]:
        """Return the neighbors of a row in the order in which the edges arrived."""
        begin, degree = int(self.links.begin[row]), int(self.links.degree[row])
        return self.links.neighbor[begin : begin + degree].astype(np.int64)

    def slots(self, rows: NDArray[np.int64] | slice = slice(None)) -> NDArray[np.int64]:
        """Return the slots in use, row after row: of all rows, or of the given rows in the given order."""
        degree = self.links.degree[rows].astype(np.int64)
        ends = np.cumsum(degree)
        return np.repeat(self.links.begin[rows] - (ends - degree), degree) + np.arange(int(degree.sum()))

    def copy(self) -> Adjacency:
        """Return an independent copy."""
        copy = Adjacency(directed=self.directed, duplicates=self.duplicates)
        copy._vertices.grow(self.capacity)[:] = self._vertices.array
        for target, source, top in (
            (copy._slots, self._slots, blocks.ARENA_TOP),
            (copy._index_cells, self._index_cells, blocks.INDEX_ARENA_TOP),
        ):
            used = int(self._allocator[top])
            target.grow(used)[:] = source.array[:used]
        copy._allocator[:] = self._allocator
        copy._update_columns()
        copy.weight_scale, copy.duplicate_policy = self.weight_scale, self.duplicate_policy
        return copy

    def reorder(self, rows: NDArray[np.int64]) -> Adjacency:
        """Return a copy in which the given rows become rows 0, 1, …; all edges must be between these rows."""
        new_row = np.empty(self.capacity, np.int32)
        new_row[rows] = np.arange(rows.size, dtype=np.int32)
        packed = self.to_packed(rows)
        packed["neighbor"] = new_row[packed["neighbor"]]
        other = Adjacency.from_packed(packed, directed=self.directed, duplicates=self.duplicates)
        other.weight_scale = self.weight_scale
        return other

    def append_rows(self, source: Adjacency, first: int, last: int) -> None:
        """Copy the edges of rows first … last−1 of another graph, with weights in the unit of its new edges.

        Rows are copied in order, from 0 on. The copy can be read, but not changed.
        """
        unit, slots, rows = source.weight_scale.unit, source.slots(slice(first, last)), slice(first, last)
        degree, top = source.links.degree[rows], int(self._allocator[blocks.ARENA_TOP])
        self.ensure_rows(last)
        self._grow_arena(min_slots=top + slots.size)
        self.links.begin[rows] = top + np.cumsum(degree, dtype=np.int64) - degree
        self.links.degree[rows], self.links.strength[rows] = degree, source.links.strength[rows] / unit
        target = slice(top, top + slots.size)
        self.links.neighbor[target], self.links.weight[target] = (
            source.links.neighbor[slots],
            source.links.weight[slots] / unit,
        )
        self._allocator[blocks.ARENA_TOP] = target.stop
        self._allocator[blocks.EDGE_COUNT] = target.stop // 2
        self.weight_scale = WeightScale(effective_edges=source.weight_scale.effective_edges)

    def to_packed(self, rows: NDArray[np.int64] | slice = slice(None)) -> dict[str, NDArray[Any]]:
        """Return the edges without gaps, row after row, each list in its own order: the saved layout."""
        links, slots = self.links, self.slots(rows)
        packed: dict[str, NDArray[Any]] = {
            "degree": links.degree[rows].copy(),
            "strength": links.strength[rows].copy(),
            "neighbor": links.neighbor[slots],
            "weight": links.weight[slots],
        }
        if self.directed:
            directions = {"outgoing": links.outgoing[slots], "incoming": links.incoming[slots]}
            packed |= {"in_strength": links.in_strength[rows].copy(), **directions}
        return packed

    @classmethod
    def from_packed(cls, packed: dict[str, NDArray[Any]], *, directed: bool, duplicates: str) -> Adjacency:
        """Restore an adjacency from `to_packed`; blocks get a new layout."""
        self = cls(directed=directed, duplicates=duplicates)
        degree = packed["degree"].astype(np.int32)
        if int(degree.sum()) != packed["neighbor"].size or packed["neighbor"].size != packed["weight"].size:
            raise FormatError(
                f"The saved adjacency is inconsistent: expected {int(degree.sum()):,} neighbors and weights, got "
                f"{packed['neighbor'].size:,} neighbors and {packed['weight'].size:,} weights. Restore a backup."
            )
        self.ensure_rows(degree.size)
        size_class = np.where(degree > 0, np.ceil(np.log2(np.maximum(degree, 2))), blocks.NO_BLOCK).astype(np.int8)
        size = np.where(degree > 0, np.int64(1) << np.maximum(size_class, 0).astype(np.int64), 0)
        begin = np.cumsum(size) - size
        self.links.allocator[blocks.ARENA_TOP] = int(size.sum())
        self.links.allocator[blocks.MAX_SIZE_CLASS] = max(int(size_class.max(initial=0)), 0)
        self._grow_arena(int(size.sum()))
        rows = slice(0, degree.size)
        self.links.begin[rows], self.links.degree[rows], self.links.size_class[rows] = begin, degree, size_class
        slots = self.slots()
        self.links.neighbor[slots], self.links.weight[slots] = packed["neighbor"], packed["weight"]
        self.links.strength[rows] = packed["strength"]
        edges = packed["neighbor"].size // 2
        if directed:
            self.links.outgoing[slots], self.links.incoming[slots] = packed["outgoing"], packed["incoming"]
            self.links.in_strength[rows] = packed["in_strength"]
            edges = int((packed["outgoing"] > 0).sum())
        self.links.allocator[blocks.EDGE_COUNT] = edges
        return self

    def to_csr(self) -> csr_array:
        """Return the symmetric weighted adjacency matrix over rows."""
        slots = self.slots()
        indptr = np.concatenate([[0], np.cumsum(self.links.degree.astype(np.int64))])
        entries = (self.links.weight[slots].astype(np.float64), self.links.neighbor[slots], indptr)
        return csr_array(entries, shape=(self.capacity, self.capacity))

    def check(self, *, whole: bool = True) -> None:
        """Check internal invariants; raise if one fails.

        With `whole=False` (a shard) the other endpoints of edges may be elsewhere, and only local invariants are
        checked.
        """
        faults = self._local_faults() | (self._pairwise_faults() if whole else {})
        for fault, found in faults.items():
            if found:
                raise RipplevecError(f"The adjacency is damaged: {fault}.")

    def _update_columns(self) -> None:
        """Refer to the columns of the current tables, which may move when they grow."""
        vertices, slots = self._vertices.array, self._slots.array
        self.arrival: NDArray[np.int64] = vertices["arrival"]
        self.placed: NDArray[np.uint8] = vertices["placed"]
        self.seen: NDArray[np.int64] = vertices["seen"]
        self.links = Links(
            begin=vertices["begin"],
            degree=vertices["degree"],
            size_class=vertices["size_class"],
            strength=vertices["strength"],
            in_strength=vertices["in_strength" if self.directed else "strength"],
            neighbor=slots["neighbor"],
            weight=slots["weight"],
            outgoing=slots["outgoing" if self.directed else "weight"],
            incoming=slots["incoming" if self.directed else "weight"],
            allocator=self._allocator,
            index_begin=vertices["index_begin"],
            index_cells=self._index_cells.array,
        )

    def _ensure_arena(self) -> None:
        """Allocate the first slots: empty columns are of another type, for which kernels would be compiled as well."""
        if not self.links.neighbor.size:
            self._grow_arena()

    def reserve(self, rows: int, edges: int) -> None:
        """Make room for this many rows in all, and for anything that an arrival with some edges may allocate."""
        self.ensure_rows(rows)
        self._grow_arena(arrival_edges=edges)

    def _grow_arena(self, min_slots: int = 0, arrival_edges: int = 0) -> None:
        """Make room for anything that the next edge, or the edges of an arrival, may allocate, and for `min_slots`."""
        size_class = int(self._allocator[blocks.MAX_SIZE_CLASS])
        largest_need = (8 + 12 * arrival_edges) << size_class
        self._slots.grow(self._target_size(self._slots, blocks.ARENA_TOP, max(largest_need, 1024), min_slots))
        if size_class + 2 >= blocks.HUB_SIZE_CLASS:  # a list may be about to become that of a hub
            self._index_cells.grow(self._target_size(self._index_cells, blocks.INDEX_ARENA_TOP, largest_need))
        self._update_columns()

    def _target_size(self, arena: GrowableArray, top: int, free: int, min_size: int = 0) -> int:
        """Return the size at which an arena has `free` unused cells and at least `min_size` cells in total."""
        size, needed = arena.array.size, max(int(self._allocator[top]) + free, min_size)
        return size if size >= needed else next_capacity(size, needed, arena.array.itemsize)

    def _local_faults(self) -> dict[str, Any]:
        """Check each endpoint by itself; return, per possible fault, whether it was found."""
        links, slots = self.links, self.slots()
        used = np.concatenate([self._used_blocks(), self._free_blocks()])
        order = used[np.argsort(used[:, 0], kind="stable")]
        ends = order[:, 0] + order[:, 1]
        top = int(links.allocator[blocks.ARENA_TOP])
        rows = np.repeat(np.arange(self.capacity), links.degree)
        sums, incoming = (_sum_by_row(rows, column[slots], self.capacity) for column in (links.weight, links.incoming))
        pairs = np.stack([rows, links.neighbor[slots]], axis=1)
        return {
            "blocks overlap or leave gaps": (order[1:, 0] != ends[:-1]).any() or (ends[-1] if len(ends) else 0) != top,
            "a neighbor is listed twice": len(np.unique(pairs, axis=0)) < len(pairs),
            "a vertex is its own neighbor": (pairs[:, 0] == pairs[:, 1]).any(),
            "strengths are not the sums of weights": self._wrong_sums(sums).any(),
            "in-strengths are not the sums of incoming weights": self._wrong_in_sums(incoming).any(),
            "the index of a hub is wrong": not all(
                is_index_consistent(links, row) for row in np.flatnonzero(links.index_begin != blocks.NO_INDEX)
            ),
            "a weight is not positive": (links.weight[slots] <= 0).any(),
            "a row has more neighbors than slots": (
                links.degree > 1 << links.size_class.clip(0).astype(np.int64)
            ).any(),
            "a row without slots has neighbors": (links.degree[links.size_class == blocks.NO_BLOCK] > 0).any(),
        }

    def _pairwise_faults(self) -> dict[str, Any]:
        """Compare both endpoints of every edge; return, per possible fault, whether it was found."""
        links, slots, matrix = self.links, self.slots(), self.to_csr()
        incoming = _sum_by_row(links.neighbor[slots], links.outgoing[slots], self.capacity)
        return {
            "an edge is stored at one endpoint only": (abs(matrix - matrix.T) > 0).nnz > 0,
            "outgoing and incoming weights differ": self._wrong_in_sums(incoming).any(),
            "the number of edges is wrong": self.edge_count != self._count_edges(),
        }

    def _wrong_sums(self, sums: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return, per row, whether its strength differs from this sum; large degrees have a tolerance."""
        difference = np.abs(sums - self.links.strength)
        return np.where(
            self.links.degree > kernels.EXACT_SUM_DEGREE, difference > SUM_TOLERANCE * sums, difference != 0
        )

    def _wrong_in_sums(self, sums: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return, per row, whether its in-strength differs from this sum by more than the tolerance.

        The tolerance is relative to the strength: a weight is the rounded sum of both directions.
        """
        return np.abs(sums - self.links.in_strength) > SUM_TOLERANCE * np.abs(self.links.strength)

    def _count_edges(self) -> int:
        return self.endpoint_count // (1 if self.directed else 2)

    def _used_blocks(self) -> NDArray[np.int64]:
        """Return (first slot, size) of the blocks in use."""
        used = self.links.size_class != blocks.NO_BLOCK
        sizes = np.int64(1) << self.links.size_class[used].astype(np.int64)
        return np.stack([self.links.begin[used], sizes], axis=1)

    def _free_blocks(self) -> NDArray[np.int64]:
        """Return (first slot, size) of the blocks on the free lists."""
        found = []
        for size_class in range(blocks.ARENA_TOP):
            at = int(self.links.allocator[size_class])
            while at >= 0:
                found.append((at, 1 << size_class))
                at = ((int(self.links.neighbor[at]) << 31) | int(self.links.neighbor[at + 1])) - 1
        return np.array(found, np.int64).reshape(-1, 2)


def merge_duplicates(
    rows: NDArray[np.int64], weight: NDArray[np.float32], duplicate_policy: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Combine repeated edges from one vertex to these rows, as storing them would."""
    merged: dict[int, float] = {}
    for row, new in zip(rows.tolist(), weight.tolist(), strict=True):
        merged[row] = _COMBINE[duplicate_policy](merged[row], new) if row in merged else new
    return np.array(list(merged), np.int64), np.array(list(merged.values()), np.float32)


def _pad_to_cache_line(fields: list[tuple[str, Any]]) -> np.dtype[Any]:
    """Return a record type with these fields that fills exactly one cache line."""
    padding = CACHE_LINE_BYTES - np.dtype(fields, align=True).itemsize
    return np.dtype([*fields, ("", np.void, padding)], align=True)


def _free_row(vertex: np.dtype[Any]) -> NDArray[Any]:
    """Return the record of a row without a vertex."""
    free = np.zeros((), vertex)
    free["arrival"], free["size_class"], free["index_begin"] = -1, blocks.NO_BLOCK, blocks.NO_INDEX
    return free


def _sum_by_row(rows: NDArray[Any], values: NDArray[np.float32], size: int) -> NDArray[np.float64]:
    """Sum the values of each row in order."""
    return np.bincount(rows, values, size).astype(np.float64)  # bincount of an empty array returns integers
