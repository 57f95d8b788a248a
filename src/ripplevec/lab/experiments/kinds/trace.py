"""A model followed arrival by arrival: whom each influences, and the state just before and just after one of them.

A vertex counts once it has a vector. Whom an arrival influences is drawn here once more, from the numbers that rule
`paper` draws from, so that the set is known; for rule `ripple` it is the set that rule `paper` would have drawn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ripplevec.embedder import Embedder
from ripplevec.errors import InvalidValueError
from ripplevec.influence.cascade import Cascade
from ripplevec.lab.evaluation.protocols import Arrivals
from ripplevec.lab.objective.gap import orthonormalize
from ripplevec.rules.ripple import RippleRule

DEPTH = 1  # of influence: the default of both rules

Matrix = NDArray[np.float64]
Rows = NDArray[np.int64]


class Action(NamedTuple):
    """Whom an arrival influenced, and the vectors these had before."""

    influenced: Rows
    vectors: Matrix

    @property
    def alpha(self) -> float:
        """α = 1 − √(1 − 1/|I|)."""
        return float(1 - np.sqrt(1 - 1 / len(self.influenced)))

    @property
    def smoothness(self) -> float:
        """What rule `paper` adds to the smoothness loss: each of them moves by α times their mean."""
        mean = self.vectors.mean(axis=0)
        return float(len(self.influenced) * self.alpha**2 * (mean @ mean))

    @property
    def printed_smoothness(self) -> float:
        """What the proof of Lemma 2 has in its place: α times the sum of the squared lengths."""
        return float(self.alpha * np.square(self.vectors).sum())


class State(NamedTuple):
    """One arrival: graph and vectors after it, the vectors before and the rows of their vertices, whom it influenced.

    Only vertices that have a vector are in it.
    """

    adjacency: csr_array
    vectors: Matrix
    before: Matrix
    rows: Rows
    influenced: Rows


class Followed:
    """A model that the vertices of a stream arrive at, one by one."""

    def __init__(self, model: Embedder, arrivals: Arrivals, start: int) -> None:
        self.model, self.arrivals, self.place = model.fit(arrivals.batch(0, start)), arrivals, start
        self.rows = np.argsort(arrivals.order)  # of the model: vertices are numbered as they come
        self.cascade = Cascade(DEPTH, model.seed)
        self.actions: list[Action] = []

    def until(self, last: int) -> State:
        """Let all vertices come up to the one at place `last`; what that one did."""
        while self.place < last:
            self._arrive()
        rows_before, before = self._feasible()
        self._arrive()
        rows, vectors = self._feasible()
        graph = csr_array(self.arrivals.graph(self.place)[rows][:, rows])
        influenced = np.searchsorted(rows, self.actions[-1].influenced)
        return State(graph, vectors, before, np.searchsorted(rows, rows_before), influenced)

    def _arrive(self) -> None:
        """Let the next vertex come; note what it did, if it found anybody who has a vector."""
        engine, row = self.model._engine, self.place
        placed = engine.store.placed[:row] == 1
        neighbors = self.arrivals.neighbors(row)
        around = self.rows[neighbors]
        around = around[placed[around]]
        vectors = engine.store.vectors[around].astype(np.float64)
        self.model.add_vertex(int(self.arrivals.order[row]), neighbors)
        self.place += 1
        if around.size:
            reached = np.isin(around, self.cascade.sample_influenced(engine.graph, row))
            reached = reached if reached.any() else np.ones(around.size, bool)
            self.actions.append(Action(around[reached], vectors[reached]))

    def _feasible(self) -> tuple[Rows, Matrix]:
        """Who has a vector, and the vectors, with FᵀF = I.

        Rule `paper` keeps that; rule `ripple` does not ask for it: its rows are brought there by the polar
        decomposition, in the coordinates they are served in, which are the same for all models of a stream.
        """
        field, rule = self.model._engine.store, self.model._engine.rule
        rows = np.flatnonzero(field.placed[: self.place])
        if isinstance(rule, RippleRule):
            return rows, orthonormalize(rule, field.vectors[rows])
        return rows, field.vectors[rows].astype(np.float64)


def last_action(arrivals: Arrivals, start: int, end: int) -> int:
    """The last place before `end` whose vertex comes with an edge to one that has a vector.

    That is one in the same component as an edge of the start.
    """
    edges_of_start = np.flatnonzero(np.diff(arrivals.graph(start).indptr))
    for place in range(end - 1, start - 1, -1):
        component = connected_components(arrivals.graph(place), directed=False)[1]
        around = np.argsort(arrivals.order)[arrivals.neighbors(place)]
        if np.isin(component[around], component[edges_of_start]).any():
            return place
    raise InvalidValueError.of("start", "a share with an edge that some later vertex comes to", start)
