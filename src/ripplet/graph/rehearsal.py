"""Whether batches can be applied, found out without changing the graph: a removal needs something to remove."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ripplet.errors import RippletError, UnknownEdgeError, UnknownVertexError
from ripplet.events import Batch, Id, Op, as_list, select

if TYPE_CHECKING:
    from ripplet.graph.graph import Graph


@dataclass(slots=True)
class Refused:
    """The rows of a batch that remove what is not there when their turn comes, and why."""

    rows: dict[int, RippletError] = field(default_factory=dict)
    unknown: list[Id] = field(default_factory=list)
    missing: list[tuple[Id, Id]] = field(default_factory=list)

    @property
    def error(self) -> RippletError | None:
        """What the whole batch is refused with; None where it can be applied."""
        if self.unknown:
            return UnknownVertexError(self.unknown)
        return UnknownEdgeError(self.missing) if self.missing else None


class Rehearsal:
    """Plays batches through, one after the other, on top of a graph that stays as it is."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.edges: dict[Hashable, bool] = {}  # what the batches themselves have said of an edge so far
        self.vertices: dict[Id, bool] = {}
        self.lives: Counter[Id] = Counter()  # removals so far; what was said of an earlier life no longer holds

    def play(self, batch: Batch) -> Refused:
        """Take over what a batch does, but for the rows that cannot be applied."""
        refused = Refused()
        ops = np.zeros(len(batch), np.int8) if batch.op is None else batch.op
        rows = zip(ops.tolist(), as_list(batch.src), as_list(batch.dst), strict=True)
        for row, (op, src, dst) in enumerate(rows):
            if op in (Op.ADD, Op.VERTEX):
                self._add(src, dst)
            elif unknown := self._unknown(src, *([dst] if op == Op.REMOVE else [])):
                refused.unknown += unknown
                refused.rows[row] = UnknownVertexError(unknown)
            elif op == Op.REMOVE_VERTEX:
                self.vertices[src] = False
                self.lives[src] += 1
            elif self._has_edge(src, dst):
                self.edges[self._key(src, dst)] = False
            else:
                refused.missing.append((src, dst))
                refused.rows[row] = UnknownEdgeError([(src, dst)])
        return refused

    def _add(self, src: Id, dst: Id) -> None:
        self.vertices[src] = self.vertices[dst] = True
        if src != dst:
            self.edges[self._key(src, dst)] = True

    def _key(self, src: Id, dst: Id) -> Hashable:
        ends = (src, self.lives[src]), (dst, self.lives[dst])
        return ends if self.graph.adjacency.directed else frozenset(ends)

    def _unknown(self, *names: Id) -> list[Id]:
        return [name for name in names if not self.vertices.get(name, name in self.graph.ids)]

    def _has_edge(self, src: Id, dst: Id) -> bool:
        said = self.edges.get(self._key(src, dst))
        if said is not None:
            return said
        if self.lives[src] or self.lives[dst]:
            return False
        rows = self.graph.ids.find_one(src), self.graph.ids.find_one(dst)
        return min(rows) >= 0 and self.graph.adjacency.has_edge(*rows)


class Admission:
    """Says of batches, one after the other, whether they can be applied, before any of them is."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._admitted: list[Batch] = []
        self._rehearsal, self._played = Rehearsal(graph), 0

    def admit(self, batch: Batch) -> None:
        """Count on a batch from now on, or say why it has to be refused as a whole."""
        if removes(batch) and not self._admitted:
            self.graph.check_batch(batch)
        elif removes(batch):
            if error := self._play(batch).error:
                self._rehearsal, self._played = Rehearsal(self.graph), 0  # it has taken over the good rows
                raise error
            self._played += 1
        self._admitted.append(batch)

    def sift(self, batch: Batch) -> tuple[Batch, dict[int, RippletError]]:
        """Count on what can be applied of a batch; that part, and per row that is not in it, why."""
        if not removes(batch):
            self._admitted.append(batch)
            return batch, {}
        refused = self._play(batch).rows
        if refused:
            batch = select(batch, np.delete(np.arange(len(batch)), list(refused)))
        self._admitted.append(batch)
        self._played += 1
        return batch, refused

    def _play(self, batch: Batch) -> Refused:
        """Play those that were admitted unplayed, which few removals ever ask for, then this one."""
        for earlier in self._admitted[self._played :]:
            self._rehearsal.play(earlier)
        self._played = len(self._admitted)
        return self._rehearsal.play(batch)


def removes(batch: Batch) -> bool:
    """Whether a batch removes anything: only then can it be refused."""
    return batch.op is not None and bool(((batch.op == Op.REMOVE) | (batch.op == Op.REMOVE_VERTEX)).any())
