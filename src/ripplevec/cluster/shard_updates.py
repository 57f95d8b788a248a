"""Entering: the graph of a shard changes, end by end, and it is noted what did, for the vectors that follow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import IdColumn, take
from ripplevec.cluster import _kernels as own
from ripplevec.cluster.partition import Entry, rows_by_shard
from ripplevec.cluster.shard_state import NO_ROWS, Holding
from ripplevec.errors import RipplevecError
from ripplevec.graph import _kernels as edges
from ripplevec.graph.adjacency import MAX_ROWS
from ripplevec.parameters import Parameters

Rows = NDArray[np.int64]


class Entering(Holding):
    """A part of a model whose graph can change."""

    def __init__(self, number: int, shards: int, parameters: Parameters) -> None:
        super().__init__(number, shards, parameters)
        self.begin()

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
        if self.graph.rows > MAX_ROWS // self.shards:  # a code has to fit into a slot
            raise RipplevecError(f"one of {self.shards:,} shards holds at most {MAX_ROWS // self.shards:,} vertices")
        self.graph.adjacency.ensure_rows(self.graph.rows)
        self.field.grow()
        return rows[0], self.graph.arrival[rows[0]], rows[1], self.graph.arrival[rows[1]]

    def _intern(self, names: IdColumn) -> Rows:
        half = (len(names) + 1) // 2  # they are interned by pairs: where they are odd, one of them twice
        first, second, _ = self.graph.ids.intern(take(names, slice(half)), take(names, slice(len(names) - half, None)))
        return np.concatenate([first, second[2 * half - len(names) :]])

    def enter(self, entry: Entry) -> None:
        """Number newcomers, and change the ends of edges that are here, in order."""
        self.graph.arrival[entry.arrived] = entry.arrived_as
        self.field.vectors[entry.arrived] = 0  # a halo may have been there
        ends, numbers = entry.ends[:, :2].copy(), entry.ends[:, 2:].copy()
        columns = map(np.array, (entry.op, entry.weight, entry.way))  # what comes from elsewhere is read-only
        op, weight, way = columns  # kernels would be compiled for that, too
        self._note(ends, numbers, self.graph.adjacency.apply_ends(op, ends, weight, way), way == edges.AWAY)

    def leave(self, row: int) -> list[Rows]:
        """Let a vertex of this shard go (none: −1); its neighbors by shard, as rows there."""
        if row < 0:
            return [NO_ROWS] * self.shards
        adjacency, gone = self.graph.adjacency, np.array([row])
        code = self._codes(adjacency.slots(gone))
        edges.drop_all(adjacency.links, row, adjacency.directed)
        self.graph.arrival[gone] = -1
        self.graph.ids.remove(gone)
        self.field.vectors[gone] = 0
        self.field.placed[gone] = 0
        return rows_by_shard(code, self.shards)

    def bereave(self, *rows: Rows, code: int, number: int) -> None:
        """Take a vertex that has gone, with this code and number, out of the lists of its neighbors here."""
        here = np.concatenate(rows)
        row, shard = divmod(code, self.shards)
        chance, adjacency = np.empty(here.size), self.graph.adjacency
        own.drop_ends(adjacency.links, here, row if shard == self.number else -1 - code, chance, adjacency.directed)
        numbers = np.stack([self.graph.arrival[here], np.full(here.size, number)], axis=1)
        self._note(np.stack([here, here], axis=1), numbers, chance, np.ones(here.size, bool))

    def _note(self, ends: Rows, numbers: Rows, chance: NDArray[np.float64], counted: NDArray[np.bool_]) -> None:
        self.changed += int(np.count_nonzero(chance[counted]))
        self.latest.append(numbers[counted].max(axis=1, initial=-1))
        self.touched.append(ends)
        self.numbers.append(numbers)
        self.chance.append(chance)

    def entered(self, first_new: int) -> tuple[int, int, int]:
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
        return self.graph.adjacency.edges, self.changed, int(known)
