"""What a shard holds, and what may be asked of it: its vertices with their edges and vectors. It knows them by row.

Of a neighbor on another shard a slot holds −1 − its code, and a code is (its row there) · shards + (its shard).
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import IdColumn, take_ids
from ripplevec.cluster import _kernels as own
from ripplevec.cluster.routing import ShardOperations, split_rows
from ripplevec.errors import RipplevecError
from ripplevec.graph import _edge_kernels as edges
from ripplevec.graph.adjacency import MAX_ROWS
from ripplevec.graph.graph import Graph, strip_prefix
from ripplevec.parameters import Parameters
from ripplevec.rules.anchor import view_grams
from ripplevec.rules.ripple import RippleRule
from ripplevec.rules.vector_store import VectorStore
from ripplevec.search.query import Query, SearchTarget
from ripplevec.search.searcher import Searcher

Rows = NDArray[np.int64]
NO_ROWS: Rows = np.empty(0, np.int64)
END = np.dtype([("here", np.int64), ("there", np.int64), ("away", np.float32), ("back", np.float32)])


class ShardGraph:
    """One part of a model, for readers."""

    def __init__(self, number: int, shards: int, parameters: Parameters) -> None:
        self.number, self.shards = number, shards
        self.graph, rule = parameters.create_graph(), parameters.create_rule()
        assert isinstance(rule, RippleRule)
        self.rule = rule
        self.store = VectorStore(self.graph, parameters.dim, rule.precision, parameters.storage_dir)
        self.search = Searcher(parameters.search, parameters.threads)
        self.begin()

    # ------------------------------------------------------------------ graph changes

    def begin(self) -> None:
        """A batch comes."""
        self.changed = 0  # edges, each counted at one end,
        self.latest: list[Rows] = [NO_ROWS]  # and the number of the end that came later
        self.touched: list[Rows] = [np.empty((0, 2), np.int64)]  # the ends here of what changed, their neighbors,
        self.numbers: list[Rows] = [np.empty((0, 2), np.int64)]  # the arrival numbers of both then,
        self.chance: list[NDArray[np.float64]] = [np.empty(0)]  # and the share of the strength of the end here

    def intern(self, columns: tuple[IdColumn, IdColumn]) -> tuple[Rows, Rows, Rows, Rows]:
        """The rows of names that fall to this shard, and their arrival numbers: −1 for newcomers."""
        rows = [self._intern(names) for names in columns]
        if self.graph.row_count > MAX_ROWS // self.shards:  # a code has to fit into a slot
            raise RipplevecError(f"one of {self.shards:,} shards holds at most {MAX_ROWS // self.shards:,} vertices")
        self.graph.adjacency.ensure_rows(self.graph.row_count)
        self.store.grow()
        return rows[0], self.graph.arrival[rows[0]], rows[1], self.graph.arrival[rows[1]]

    def _intern(self, names: IdColumn) -> Rows:
        half = (len(names) + 1) // 2  # they are interned by pairs: where they are odd, one of them twice
        first, second, _ = self.graph.ids.intern(
            take_ids(names, slice(half)), take_ids(names, slice(len(names) - half, None))
        )
        return np.concatenate([first, second[2 * half - len(names) :]])

    def apply_operations(self, entry: ShardOperations) -> None:
        """Number newcomers, and change the ends of edges that are here, in order."""
        self.graph.arrival[entry.arrived] = entry.arrived_as
        self.store.vectors[entry.arrived] = 0  # a halo may have been there
        ends, numbers = entry.ends[:, :2].copy(), entry.ends[:, 2:].copy()
        columns = map(np.array, (entry.op, entry.weight, entry.way))  # what comes from elsewhere is read-only
        op, weight, way = columns  # kernels would be compiled for that, too
        self._note(ends, numbers, self.graph.adjacency.apply_endpoints(op, ends, weight, way), way == edges.OUT)

    def remove_vertex(self, row: int) -> list[Rows]:
        """Let a vertex of this shard go (none: −1); its neighbors by shard, as rows there."""
        if row < 0:
            return [NO_ROWS] * self.shards
        adjacency, gone = self.graph.adjacency, np.array([row])
        code = self._codes(adjacency.slots(gone))
        edges.clear_row(adjacency.links, row, adjacency.directed)
        self.graph.arrival[gone] = -1
        self.graph.ids.remove(gone)
        self.store.vectors[gone] = 0
        self.store.placed[gone] = 0
        return split_rows(code, self.shards)

    def remove_neighbor(self, *rows: Rows, code: int, number: int) -> None:
        """Take a vertex that has gone, with this code and number, out of the lists of its neighbors here."""
        here = np.concatenate(rows)
        row, shard = divmod(code, self.shards)
        chance, adjacency = np.empty(here.size), self.graph.adjacency
        own.drop_neighbor_from(adjacency.links, here, row if shard == self.number else -1 - code, chance, adjacency.directed)
        numbers = np.stack([self.graph.arrival[here], np.full(here.size, number)], axis=1)
        self._note(np.stack([here, here], axis=1), numbers, chance, np.ones(here.size, bool))

    def _note(self, ends: Rows, numbers: Rows, chance: NDArray[np.float64], counted: NDArray[np.bool_]) -> None:
        self.changed += int(np.count_nonzero(chance[counted]))
        self.latest.append(numbers[counted].max(axis=1, initial=-1))
        self.touched.append(ends)
        self.numbers.append(numbers)
        self.chance.append(chance)

    def finish_graph_update(self, first_new: int) -> tuple[int, int, int]:
        """All of a batch is in the graph, and there are no vectors that could follow; what `_counts` says."""
        counts = self._counts(first_new)
        self.begin()
        return counts

    def _counts(self, first_new: int) -> tuple[int, int, int]:
        """How many edges there are, how many have changed, and how many operations were on edges between the known.

        Whoever is new has a number from this one on.
        """
        self.first_new = first_new
        known = np.count_nonzero(np.concatenate(self.latest) < first_new)
        return self.graph.adjacency.edge_count, self.changed, int(known)

    # ------------------------------------------------------------------ of some

    def find(self, names: IdColumn) -> Rows:
        """The rows of names that fall to this shard, −1 where one is not known."""
        return self.graph.ids.find_rows(names)

    def column(self, rows: Rows) -> IdColumn:
        """The names of rows."""
        return self.graph.ids.to_column(rows)

    def read_rows(self, rows: Rows, what: str) -> NDArray[Any]:
        """A number for each row, or its vector as it is kept."""
        if what == "vectors":
            return self.store.vectors[rows]
        columns: dict[str, NDArray[Any]] = {"arrival": self.graph.arrival, "placed": self.store.placed}
        return columns[what][rows] if what in columns else cast(NDArray[Any], getattr(self._links, what))[rows]

    def read_edges(self, rows: Rows, what: str) -> tuple[Rows, NDArray[Any]]:
        """Of rows their degrees, and of all their edges the `code` of the neighbor, or one of the weights."""
        slots = self.graph.adjacency.slots(rows)
        values = self._codes(slots) if what == "code" else getattr(self._links, what)[slots]
        return self._links.degree[rows].astype(np.int64), values

    def neighbors(self, row: int, most: int | None) -> tuple[Rows, NDArray[np.float32]]:
        """The codes of the neighbors of a row and the weights of the edges, the latest first; of row −1 none."""
        slots = self.graph.adjacency.slots(np.array([row] if row >= 0 else NO_ROWS))[::-1][:most]
        return self._codes(slots), self._links.weight[slots]

    def has_edges(self, rows: Rows, codes: Rows) -> NDArray[np.bool_]:
        """Whether rows have edges (away from them when directed) to vertices with these codes."""
        found, directed = np.empty(rows.size, np.bool_), self.graph.adjacency.directed
        other = np.where(codes % self.shards == self.number, codes // self.shards, -1 - codes)
        own.has_neighbors(self._links, rows, other, found, directed)
        return found

    def nearest(
        self, left_out: int, query: Query, count: int, sequence: int, anchors: int
    ) -> tuple[Rows, NDArray[np.float32], Rows]:
        """The rows here of highest cosine, one left out (−1: none); the cosines, and the arrival numbers.

        Among equals those who came first are the best, and rows do not tell who did: so one more is asked for, and
        more yet while the last of them may have an equal that was left behind. An index misses some anyhow.
        """
        target, most = SearchTarget(self.store, self.rule, sequence, anchors), max(len(self.graph), 1)
        query, width = query._replace(exclude=left_out), min(count + 1, most)
        while True:
            with self.search.open_search() as ask:
                (rows,), (cosines,) = ask(target, query, width)
            if width == most or rows[-1] < 0 or cosines[-1] < cosines[count - 1] or self.search.index is not None:
                break
            width = min(2 * width, most)
        rows, cosines = rows[rows >= 0], cosines[rows >= 0]
        return rows, cosines, self.graph.arrival[rows]

    # ------------------------------------------------------------------ of all

    def rows_by_arrival(self) -> tuple[Rows, Rows]:
        """All rows in order of arrival, and their numbers."""
        rows = self.graph.rows_by_arrival()
        return rows, self.graph.arrival[rows]

    def sizes(self) -> dict[str, int]:
        """How the shard stands, in numbers that add up."""
        count = self._links.degree[: self.graph.row_count]
        placed, alive = self.store.placed[: self.graph.row_count], self.graph.arrival[: self.graph.row_count] >= 0
        return {
            "vertices": len(self.graph),
            "edges": self.graph.adjacency.edge_count,
            "ends": self.graph.adjacency.endpoint_count,
            "with_edges": int(np.count_nonzero(count)),
            "unplaced": int(np.count_nonzero(alive & (placed == 0))),
            "bytes": self.graph.ids.nbytes + self.graph.adjacency.nbytes + self.store.vectors[: self.graph.row_count].nbytes,
        }

    def grams(self) -> list[NDArray[np.float64]]:
        """Per view, the inner products of its columns over the rows here."""
        return view_grams(self.rule.coordinates, self.store, self.rule.threads)

    # ------------------------------------------------------------------ whether it is sound

    def find_faults(self) -> str:
        """Where what is here contradicts itself, if it does. Said, not raised: a shard that fails is given up."""
        try:
            self.graph.check(whole=False)
        except RipplevecError as error:
            return str(error)
        return ""

    def ends(self) -> list[NDArray[Any]]:
        """The ends of edges that are here, by the shard that has the other end, in order."""
        rows = np.arange(self.graph.row_count)
        slots, links = self.graph.adjacency.slots(rows), self._links
        code, here = self._codes(slots), np.repeat(rows, links.degree[rows])
        ends = np.empty(slots.size, END)
        ends["here"], ends["there"] = here, code // self.shards
        ends["away"], ends["back"] = links.outgoing[slots], links.incoming[slots]
        parts = [ends[code % self.shards == shard] for shard in range(self.shards)]
        return [part[np.lexsort((part["there"], part["here"]))] for part in parts]

    def find_mismatched_shards(self, *received: NDArray[Any]) -> list[int]:
        """The shards that say other things of the edges they have with this one."""
        both = enumerate(zip(self.ends(), received, strict=True))
        return [shard for shard, (here, there) in both if _differ(here, there)]

    # ------------------------------------------------------------------ what is kept of it

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that is here as plain arrays."""
        rows = self.graph.row_count
        return {
            **{f"graph_{name}": array for name, array in self.graph.state().items()},
            "edges": np.array(self.graph.adjacency.edge_count),
            "vectors": self.store.vectors[:rows].copy(),
            "placed": self.store.placed[:rows].copy(),
        }

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        adjacency = self.graph.adjacency
        self.graph = Graph.from_state(
            strip_prefix("graph_", state), directed=adjacency.directed, duplicates=adjacency.duplicates
        )
        self.graph.adjacency.set_edge_count(int(state["edges"]))
        self.store = self.store.empty_for(self.graph)
        rows = self.graph.row_count
        self.store.vectors[:rows], self.store.placed[:rows] = state["vectors"], state["placed"]

    # ------------------------------------------------------------------ inside

    @property
    def _links(self) -> Any:
        return self.graph.adjacency.links

    def _codes(self, slots: Rows) -> Rows:
        """The codes of the neighbors in slots."""
        return self._codes_of(self._links.neighbor[slots].astype(np.int64))

    def _codes_of(self, neighbor: Rows) -> Rows:
        """The codes of what slots hold."""
        return np.where(neighbor < 0, -1 - neighbor, neighbor * self.shards + self.number)


def _differ(here: NDArray[Any], there: NDArray[Any]) -> bool:
    """Whether two shards differ about the edges between them."""
    if here.size != there.size:
        return True
    there = there[np.lexsort((there["here"], there["there"]))]
    mirrored = (("here", "there"), ("there", "here"), ("away", "back"), ("back", "away"))
    return not all(np.array_equal(here[name], there[other]) for name, other in mirrored)
