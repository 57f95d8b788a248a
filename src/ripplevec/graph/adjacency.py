"""The growing, removable adjacency over rows: flat arrays, amortized O(1) to add an edge, O(degree) to remove one."""

from __future__ import annotations

from collections.abc import Callable
from operator import add
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.errors import FormatError, RipplevecError, check_choice
from ripplevec.graph import _block_kernels as blocks
from ripplevec.graph import _edge_kernels as kernels
from ripplevec.graph._block_kernels import Links
from ripplevec.graph._edge_kernels import scale_weights
from ripplevec.graph._hub_kernels import is_index_consistent
from ripplevec.graph._query_kernels import has_edge, has_edges
from ripplevec.util.growable_array import GrowableArray, next_capacity
from ripplevec.util.numba_intrinsics import CACHE_LINE_BYTES

DUPLICATE_POLICIES = {"add": kernels.SUM, "ignore": kernels.KEEP_FIRST, "replace": kernels.REPLACE}
DECAYING_DUPLICATE_POLICIES = DUPLICATE_POLICIES | {"ignore": kernels.KEEP_MAX}  # it counts once, and that as of its latest mention
_COMBINE: dict[int, Callable[[float, float], float]] = {
    kernels.SUM: add,
    kernels.KEEP_FIRST: lambda known, _: known,
    kernels.REPLACE: lambda _, new: new,
    kernels.KEEP_MAX: max,
}
MAX_ROWS = 2**31 - 1
SUM_TOLERANCE = 1e-6  # of a sum of float32 weights, ten times over

# All that is asked of a vertex lies in one line of memory, and so does all that is asked of a neighbor: on a large
# graph the wait for a line is what costs. Kernels see the columns of these tables.
_VERTEX_FIELDS = [
    ("begin", np.int64),
    ("strength", np.float64),
    ("arrival", np.int64),  # its number in the order of arrival; −1 where the row is free
    ("seen", np.int64),  # stamps: who has been reached in this batch
    ("index_at", np.int64),
    ("count", np.int32),
    ("room", np.int8),
    ("placed", np.uint8),  # whether it has a vector
]
_SLOT_FIELDS = [("neighbor", np.int32), ("weight", np.float32)]
_DIRECTION_FIELDS = [("outgoing", np.float32), ("incoming", np.float32)]  # of a directed graph, beside their sum


def _pad_to_cache_line(fields: list[tuple[str, Any]]) -> np.dtype[Any]:
    """A record of these fields that fills a line of memory: to look at one of them brings all, and nothing else."""
    padding = CACHE_LINE_BYTES - np.dtype(fields, align=True).itemsize
    return np.dtype([*fields, ("", np.void, padding)], align=True)


class WeightScale(NamedTuple):
    """What weights are measured by. Where nothing fades they mean what they say."""

    unit: float = 1.0  # what a weight of one that comes now is written down as
    effective_edges: float = float("inf")  # how many edges have not faded: the effective number of them, at most all


class Totals(NamedTuple):
    """Sums over the rows of a graph."""

    endpoints: int  # of edges: every edge has two
    strength: float  # the sum of their weights
    active: int  # rows with edges

    @property
    def mean_degree(self) -> float:
        """Ends per row with edges."""
        return self.endpoints / max(1, self.active)


class Adjacency:
    """Who is connected to whom, by row. Names are the business of `Ids`, the two together that of `Graph`."""

    def __init__(self, *, directed: bool = False, duplicates: str = "add") -> None:
        check_choice("duplicates", duplicates, DUPLICATE_POLICIES)
        self.directed = directed
        self.duplicates, self.duplicate_policy = duplicates, DUPLICATE_POLICIES[duplicates]
        self.weight_scale = WeightScale()
        vertex = _pad_to_cache_line([*_VERTEX_FIELDS, *([("in_strength", np.float64)] if directed else [])])
        self._vertices = GrowableArray(vertex, fill=_free_row(vertex))
        self._slots = GrowableArray([*_SLOT_FIELDS, *(_DIRECTION_FIELDS if directed else [])])
        self._places = GrowableArray(np.int32)
        self._heads = blocks.create_allocator()
        self._look()

    def _look(self) -> None:
        """See the tables as they are now."""
        vertices, slots = self._vertices.array, self._slots.array
        self.arrival: NDArray[np.int64] = vertices["arrival"]
        self.placed: NDArray[np.uint8] = vertices["placed"]
        self.seen: NDArray[np.int64] = vertices["seen"]
        self.links = Links(
            begin=vertices["begin"],
            degree=vertices["count"],
            size_class=vertices["room"],
            strength=vertices["strength"],
            in_strength=vertices["in_strength" if self.directed else "strength"],
            neighbor=slots["neighbor"],
            weight=slots["weight"],
            outgoing=slots["outgoing" if self.directed else "weight"],
            incoming=slots["incoming" if self.directed else "weight"],
            allocator=self._heads,
            index_begin=vertices["index_at"],
            index_cells=self._places.array,
        )

    @property
    def capacity(self) -> int:
        """How many rows there is room for."""
        return self._vertices.array.size

    @property
    def edge_count(self) -> int:
        """How many edges there are (each counted once; both directions count when directed)."""
        return int(self.links.allocator[blocks.EDGE_COUNT])

    def set_edge_count(self, edges: int) -> None:
        """Have so many edges counted here: each is counted at one of its ends, and the other may be elsewhere."""
        self.links.allocator[blocks.EDGE_COUNT] = edges

    @property
    def self_loop_count(self) -> int:
        """How many self-loops were left out."""
        return int(self.links.allocator[blocks.LOOP_COUNT])

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that are in use."""
        vertices, slots = self._vertices.array, self._slots.array
        used = int(self._heads[blocks.ARENA_TOP]) * slots.itemsize + int(self._heads[blocks.INDEX_ARENA_TOP]) * 4
        return vertices.nbytes + used

    def totals(self, rows: int) -> Totals:
        """Sums over the first rows; edges that have faded do not count as ends."""
        degrees = self.links.degree[:rows]
        ends = int(min(degrees.sum(), 2 * self.weight_scale.effective_edges))
        return Totals(ends, float(self.links.strength[:rows].sum()), int(np.count_nonzero(degrees)))

    def ensure_rows(self, rows: int) -> None:
        """Make room for rows 0 … rows−1, all without edges."""
        if rows <= self.capacity:
            return
        if rows > MAX_ROWS:
            raise RipplevecError(f"a graph holds at most {MAX_ROWS:,} vertices")
        self._vertices.grow(min(next_capacity(self.capacity, rows), MAX_ROWS))
        self._look()

    def apply(self, op: NDArray[np.int8], pairs: NDArray[np.int64], weight: NDArray[np.float32]) -> NDArray[np.float64]:
        """Add and remove edges in order; per operation and end, the share of the end's strength that changed."""
        chance = np.empty((op.size, 2))
        done = 0
        while True:
            done = kernels.apply_edges(self.links, op, pairs, weight, chance, done, self.duplicate_policy, self.directed)
            if done == op.size:
                return chance
            self._grow_arena()

    def apply_endpoints(
        self, op: NDArray[np.int8], ends: NDArray[np.int64], weight: NDArray[np.float32], way: NDArray[np.int8]
    ) -> NDArray[np.float64]:
        """Add and remove edges in order, each at one end only: a row and its neighbor; the share that changed."""
        chance, done = np.empty(op.size), 0
        while True:
            done = kernels.apply_endpoints(self.links, op, ends, weight, way, chance, done, self.duplicate_policy, self.directed)
            if done == op.size:
                return chance
            self._grow_arena()

    def remove_vertex(self, row: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Take out all edges of a row; its former neighbors, and the share of strength each lost."""
        degree = int(self.links.degree[row])
        touched, chance = np.empty(degree, np.int64), np.empty(degree)
        kernels.remove_vertex(self.links, row, touched, chance, self.directed)
        return touched, chance

    def scale_weights(self, factor: float) -> None:
        """Multiply all weights by a power of two."""
        scale_weights(self.links, self.capacity, factor, self.directed)

    def has_edge(self, src: int, dst: int) -> bool:
        """Whether there is an edge (from src to dst when directed)."""
        return bool(has_edge(self.links, src, dst, self.directed))

    def has_edges(self, src: NDArray[np.int64], dst: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether there is an edge, pair by pair."""
        found = np.empty(src.size, np.bool_)
        has_edges(self.links, src, dst, found, self.directed)
        return found

    def neighbors(self, row: int) -> NDArray[np.int64]:
        """The neighbors of a row in the order in which the edges came."""
        begin, count = int(self.links.begin[row]), int(self.links.degree[row])
        return self.links.neighbor[begin : begin + count].astype(np.int64)

    def _grow_arena(self, least: int = 0) -> None:
        """Have room for whatever the next edge needs, or for so many slots."""
        room = int(self._heads[blocks.MAX_SIZE_CLASS])
        most = 8 << room
        self._slots.grow(self._enough(self._slots, blocks.ARENA_TOP, max(most, 1024), least))
        if room + 1 >= blocks.HUB_SIZE_CLASS:
            self._places.grow(self._enough(self._places, blocks.INDEX_ARENA_TOP, most))
        self._look()

    def _enough(self, arena: GrowableArray, top: int, most: int, least: int = 0) -> int:
        """The size an arena should have, so that as much as `most` is free."""
        now, needed = arena.array.size, max(int(self._heads[top]) + most, least)
        return now if now >= needed else next_capacity(now, needed)

    def copy(self) -> Adjacency:
        """The same edges in arrays of their own."""
        copy = Adjacency(directed=self.directed, duplicates=self.duplicates)
        copy._vertices.grow(self.capacity)[:] = self._vertices.array
        for own, arena, top in ((copy._slots, self._slots, blocks.ARENA_TOP), (copy._places, self._places, blocks.INDEX_ARENA_TOP)):
            used = int(self._heads[top])
            own.grow(used)[:] = arena.array[:used]
        copy._heads[:] = self._heads
        copy._look()
        copy.weight_scale, copy.duplicate_policy = self.weight_scale, self.duplicate_policy
        return copy

    def reorder(self, rows: NDArray[np.int64]) -> Adjacency:
        """The same edges in arrays of their own, with these rows, who have all of them, as the rows 0, 1, …"""
        place = np.empty(self.capacity, np.int32)
        place[rows] = np.arange(rows.size, dtype=np.int32)
        packed = self.to_packed(rows)
        packed["neighbor"] = place[packed["neighbor"]]
        other = Adjacency.from_packed(packed, directed=self.directed, duplicates=self.duplicates)
        other.weight_scale = self.weight_scale
        return other

    def to_packed(self, rows: NDArray[np.int64] | slice = slice(None)) -> dict[str, NDArray[Any]]:
        """The edges without gaps, rows one after the other, each in its own order: what is saved."""
        links, slots = self.links, self.slots(rows)
        packed: dict[str, NDArray[Any]] = {
            "degree": links.degree[rows].copy(),
            "strength": links.strength[rows].copy(),
            "neighbor": links.neighbor[slots],
            "weight": links.weight[slots],
        }
        if self.directed:
            ways = {"outgoing": links.outgoing[slots], "incoming": links.incoming[slots]}
            packed |= {"in_strength": links.in_strength[rows].copy(), **ways}
        return packed

    @classmethod
    def from_packed(cls, packed: dict[str, NDArray[Any]], *, directed: bool, duplicates: str) -> Adjacency:
        """The adjacency that `packed` described; blocks are laid out anew."""
        self = cls(directed=directed, duplicates=duplicates)
        degree = packed["degree"].astype(np.int32)
        if int(degree.sum()) != packed["neighbor"].size or packed["neighbor"].size != packed["weight"].size:
            raise FormatError("the saved adjacency is inconsistent: degrees and neighbors do not match")
        self.ensure_rows(degree.size)
        room = np.where(degree > 0, np.ceil(np.log2(np.maximum(degree, 2))), blocks.NO_BLOCK).astype(np.int8)
        size = np.where(degree > 0, np.int64(1) << np.maximum(room, 0).astype(np.int64), 0)
        begin = np.cumsum(size) - size
        self.links.allocator[blocks.ARENA_TOP] = int(size.sum())
        self.links.allocator[blocks.MAX_SIZE_CLASS] = max(int(room.max(initial=0)), 0)
        self._grow_arena(int(size.sum()))
        rows = slice(0, degree.size)
        self.links.begin[rows], self.links.degree[rows], self.links.size_class[rows] = begin, degree, room
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

    def slots(self, rows: NDArray[np.int64] | slice = slice(None)) -> NDArray[np.int64]:
        """The arena slots in use, row by row: of all rows, or of some in the order given."""
        count = self.links.degree[rows].astype(np.int64)
        ends = np.cumsum(count)
        return np.repeat(self.links.begin[rows] - (ends - count), count) + np.arange(int(count.sum()))

    def to_csr(self) -> csr_array:
        """The symmetric weighted adjacency matrix over rows."""
        slots = self.slots()
        indptr = np.concatenate([[0], np.cumsum(self.links.degree.astype(np.int64))])
        entries = (self.links.weight[slots].astype(np.float64), self.links.neighbor[slots], indptr)
        return csr_array(entries, shape=(self.capacity, self.capacity))

    def check(self, *, whole: bool = True) -> None:
        """Raise where the arrays contradict each other: blocks overlapping, one-sided edges, wrong sums.

        Where this is not the whole graph, the other ends of edges may be elsewhere, and only what is here is looked at.
        """
        faults = self._faults_here() | (self._faults_between() if whole else {})
        for fault, found in faults.items():
            if found:
                raise RipplevecError(f"the adjacency is damaged: {fault}")

    def _faults_here(self) -> dict[str, Any]:
        """What may be wrong with each end of an edge by itself."""
        links, slots = self.links, self.slots()
        used = np.concatenate([self._blocks(), self._free_blocks()])
        order = used[np.argsort(used[:, 0], kind="stable")]
        ends = order[:, 0] + order[:, 1]
        top = int(links.allocator[blocks.ARENA_TOP])
        rows = np.repeat(np.arange(self.capacity), links.degree)
        sums, incoming = (_sum_by_row(rows, column[slots], self.capacity) for column in (links.weight, links.incoming))
        pairs = np.stack([rows, links.neighbor[slots]], axis=1)
        return {
            "blocks overlap or leave gaps": (order[1:, 0] != ends[:-1]).any() or (ends[-1] if len(ends) else 0) != top,
            "a neighbor stands twice": len(np.unique(pairs, axis=0)) < len(pairs),
            "a vertex is its own neighbor": (pairs[:, 0] == pairs[:, 1]).any(),
            "strengths are not the sums of weights": self._wrong_sums(sums).any(),
            "in-strengths are not the sums of incoming weights": self._wrong_in_sums(incoming).any(),
            "an index of a hub is wrong": not all(
                is_index_consistent(links, row) for row in np.flatnonzero(links.index_begin != blocks.NO_INDEX)
            ),
            "a weight is not positive": (links.weight[slots] <= 0).any(),
            "a row has more neighbors than slots": (links.degree > 1 << links.size_class.clip(0).astype(np.int64)).any(),
            "a row without slots has neighbors": (links.degree[links.size_class == blocks.NO_BLOCK] > 0).any(),
        }

    def _faults_between(self) -> dict[str, Any]:
        """What may be wrong with the two ends of an edge together."""
        links, slots, matrix = self.links, self.slots(), self.to_csr()
        incoming = _sum_by_row(links.neighbor[slots], links.outgoing[slots], self.capacity)
        return {
            "an edge is known to one end only": (abs(matrix - matrix.T) > 0).nnz > 0,
            "what goes out does not come in": self._wrong_in_sums(incoming).any(),
            "the number of edges is off": self.edge_count != self._count_edges(),
        }

    def _wrong_sums(self, sums: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Where a strength is not the sum over its slots, to the bit, or nearly where there are many."""
        apart = np.abs(sums - self.links.strength)
        return np.where(self.links.degree > kernels.EXACT_SUM_DEGREE, apart > SUM_TOLERANCE * sums, apart != 0)

    def _wrong_in_sums(self, sums: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Where an in-strength is not nearly this sum: it is told from the sum of both ways, which a pair has, too."""
        return np.abs(sums - self.links.in_strength) > SUM_TOLERANCE * np.abs(self.links.strength)

    def _count_edges(self) -> int:
        return self.endpoint_count // (1 if self.directed else 2)

    @property
    def endpoint_count(self) -> int:
        """How many ends of edges there are, of a directed graph those that point away: where edges are counted."""
        slots = self.slots()
        return int((self.links.outgoing[slots] > 0).sum()) if self.directed else slots.size

    def _blocks(self) -> NDArray[np.int64]:
        held = self.links.size_class != blocks.NO_BLOCK
        sizes = np.int64(1) << self.links.size_class[held].astype(np.int64)
        return np.stack([self.links.begin[held], sizes], axis=1)

    def _free_blocks(self) -> NDArray[np.int64]:
        found = []
        for room in range(blocks.ARENA_TOP):
            at = int(self.links.allocator[room])
            while at >= 0:
                found.append((at, 1 << room))
                at = ((int(self.links.neighbor[at]) << 31) | int(self.links.neighbor[at + 1])) - 1
        return np.array(found, np.int64).reshape(-1, 2)


def _sum_by_row(rows: NDArray[Any], values: NDArray[np.float32], size: int) -> NDArray[np.float64]:
    """The values of each row added up in order."""
    return np.bincount(rows, values, size).astype(np.float64)  # of nothing it makes whole numbers


def merge_duplicates(
    rows: NDArray[np.int64], weight: NDArray[np.float32], repeated: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Edges of one vertex to these rows as they would be stored: repeated ones made one."""
    kept: dict[int, float] = {}
    for row, share in zip(rows.tolist(), weight.tolist(), strict=True):
        kept[row] = _COMBINE[repeated](kept[row], share) if row in kept else share
    return np.array(list(kept), np.int64), np.array(list(kept.values()), np.float32)


def _free_row(vertex: np.dtype[Any]) -> NDArray[Any]:
    """A row without a vertex."""
    free = np.zeros((), vertex)
    free["arrival"], free["room"], free["index_at"] = -1, blocks.NO_BLOCK, blocks.NO_INDEX
    return free


def grow_array(array: NDArray[Any], size: int, fill: int = 0) -> NDArray[Any]:
    """A longer copy along the first axis; what is new holds `fill`. Untouched zeros cost no memory yet."""
    new = np.zeros((size, *array.shape[1:]), array.dtype)
    new[: len(array)] = array
    if fill:
        new[len(array) :] = fill
    return cast(NDArray[Any], new)
