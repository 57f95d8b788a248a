"""A model traced arrival by arrival: the set each arrival influences, and the state before and after one arrival.

Only vertices with a vector count. The influenced set of an arrival is drawn here a second time, from the random numbers
of rule `paper`, so that it is known; for rule `ripple` it is the set that rule `paper` would have drawn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ripplevec.embedder import Embedder
from ripplevec.errors import InvalidValueError
from ripplevec.graph.adjacency import RowArray
from ripplevec.influence.cascade import Cascade
from ripplevec.lab.evaluation.protocols import Arrivals
from ripplevec.lab.objective.gap import orthonormalize
from ripplevec.rules.ripple import RippleRule

INFLUENCE_DEPTH = 1  # the default of both rules

Matrix = NDArray[np.float64]


class LocalAction(NamedTuple):
    """The vertices that an arrival influenced, and their vectors before it."""

    influenced: RowArray
    vectors: Matrix

    @property
    def alpha(self) -> float:
        """α = 1 − √(1 − 1/|I|) for the influenced set I."""
        return float(1 - np.sqrt(1 - 1 / len(self.influenced)))

    @property
    def smoothness(self) -> float:
        """Smoothness loss that rule `paper` adds: each influenced vertex moves by α times the mean vector."""
        mean = self.vectors.mean(axis=0)
        return float(len(self.influenced) * self.alpha**2 * (mean @ mean))

    @property
    def printed_smoothness(self) -> float:
        """The value that the proof of Lemma 2 uses instead: α times the sum of the squared lengths."""
        return float(self.alpha * np.square(self.vectors).sum())


class ArrivalState(NamedTuple):
    """The state around one arrival, restricted to vertices with a vector.

    `adjacency` and `vectors` are those after the arrival, `before` the vectors before it, `rows` the rows of their
    vertices in `vectors`, and `influenced` the rows of the influenced vertices.
    """

    adjacency: csr_array
    vectors: Matrix
    before: Matrix
    rows: RowArray
    influenced: RowArray


class TracedModel:
    """A model at which the vertices of a stream arrive one by one, with a record of their local actions."""

    def __init__(self, model: Embedder, arrivals: Arrivals, start: int) -> None:
        self.model, self.arrivals, self.position = model.fit(arrivals.batch(0, start)), arrivals, start
        self.rows = np.argsort(arrivals.order)  # the model numbers vertices in order of arrival
        self.cascade = Cascade(INFLUENCE_DEPTH, model.seed)
        self.actions: list[LocalAction] = []

    def advance_to(self, last: int) -> ArrivalState:
        """Let all vertices up to position `last` arrive; return the state around the last arrival."""
        while self.position < last:
            self._add_next_vertex()
        rows_before, before = self._feasible_vectors()
        self._add_next_vertex()
        rows, vectors = self._feasible_vectors()
        graph = csr_array(self.arrivals.graph(self.position)[rows][:, rows])
        influenced = np.searchsorted(rows, self.actions[-1].influenced)
        return ArrivalState(graph, vectors, before, np.searchsorted(rows, rows_before), influenced)

    def _add_next_vertex(self) -> None:
        """Let the next vertex arrive; record its local action if it has a neighbor with a vector."""
        engine, row = self.model._engine, self.position
        placed = engine.store.placed[:row] == 1
        neighbors = self.arrivals.neighbors(row)
        neighbor_rows = self.rows[neighbors]
        neighbor_rows = neighbor_rows[placed[neighbor_rows]]
        vectors = engine.store.vectors[neighbor_rows].astype(np.float64)
        self.model.add_vertex(int(self.arrivals.order[row]), neighbors)
        self.position += 1
        if neighbor_rows.size:
            influenced = np.isin(neighbor_rows, self.cascade.sample_influenced(engine.graph, row))
            influenced = influenced if influenced.any() else np.ones(neighbor_rows.size, bool)
            self.actions.append(LocalAction(neighbor_rows[influenced], vectors[influenced]))

    def _feasible_vectors(self) -> tuple[RowArray, Matrix]:
        """Return the rows with a vector, and their vectors with FᵀF = I.

        Rule `paper` keeps that constraint. The rows of rule `ripple` are projected onto it by the polar decomposition,
        in served coordinates, which are the same for all models of a stream.
        """
        store, rule = self.model._engine.store, self.model._engine.rule
        rows = np.flatnonzero(store.placed[: self.position])
        if isinstance(rule, RippleRule):
            return rows, orthonormalize(rule, store.vectors[rows])
        return rows, store.vectors[rows].astype(np.float64)


def find_last_action(arrivals: Arrivals, start: int, end: int) -> int:
    """Return the last position before `end` whose vertex arrives with an edge to a vertex with a vector.

    A vertex has a vector if it is in the component of an edge of the start.
    """
    linked_start = np.flatnonzero(np.diff(arrivals.graph(start).indptr))
    for position in range(end - 1, start - 1, -1):
        component = connected_components(arrivals.graph(position), directed=False)[1]
        neighbor_rows = np.argsort(arrivals.order)[arrivals.neighbors(position)]
        if np.isin(component[neighbor_rows], component[linked_start]).any():
            return position
    raise InvalidValueError.of("start", "a share with an edge that a later vertex is linked to", start)
