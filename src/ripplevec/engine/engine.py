"""The engine: graph, vectors and counters of a model, and their update by a batch or an anchor.

The state is a deterministic function of the parameters and the batches applied.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy, deepcopy
from math import ceil
from os import PathLike
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch, Id, IdColumn
from ripplevec.changes import BatchOutcome
from ripplevec.engine.counters import COUNTERS
from ripplevec.engine.digest import StateSnapshot
from ripplevec.engine.reads import LocalReads
from ripplevec.engine.state_validation import check_state
from ripplevec.graph.adjacency import DUPLICATE_POLICIES, RowArray
from ripplevec.graph.batch_validation import bound_growth
from ripplevec.graph.graph import Graph, GraphDelta, merge_deltas, strip_prefix
from ripplevec.rules.anchor import CorrectionError, PreparedCorrection
from ripplevec.rules.background_anchor import BackgroundAnchor
from ripplevec.rules.base import Rule
from ripplevec.rules.ripple import RippleRule
from ripplevec.rules.vector_store import VectorStore
from ripplevec.temporal.edge_aging import EdgeAging
from ripplevec.views.base import Progress

MAX_PENDING_GROWTH = 2.0
"""A pending anchor is adopted at the latest when the graph has grown by this multiple of `anchor_growth`."""


class Engine(LocalReads):
    """State of a model: graph, vectors, rule and counters."""

    def __init__(
        self,
        graph: Graph,
        rule: Rule,
        dim: int,
        *,
        anchor_growth: float = 0.0,
        anchor_lag: float = 0.0,
        start_size: int = 0,
        change_threshold: float = 0.0,
        directory: str | PathLike[str] | None = None,
        aging: EdgeAging | None = None,
    ) -> None:
        self.graph, self.rule, self.aging = graph, rule, aging
        self.store = VectorStore(graph, dim, rule.precision, directory)
        self.update_incomplete = False  # an update has begun and not finished: the state must not be used
        self.anchor_growth, self.start_size, self.change_threshold = anchor_growth, start_size, change_threshold
        self.anchor_lag = anchor_lag  # events until a due anchor is adopted, as a share of vertices plus edges
        self.pending_anchor = None
        if aging is not None:
            aging.attach(graph)
        self.reset_counters()

    def start(self, batch: Batch, progress: Progress | None = None) -> None:
        """Apply a batch as the initial graph and compute its embedding."""
        self.store.reserve(2 * len(batch))
        for delta in self._graph_steps(batch):
            self.store.apply_delta(delta)
        self.events = self._count_events(batch)
        if self.graph.adjacency.edge_count:
            self.rule.start(self.store, progress)
        self._record_size()

    def apply(self, batch: Batch) -> BatchOutcome:
        """Apply a batch that `check_batch` accepts. Readers must be excluded."""
        outcome = self.apply_prepared(batch, self.prepare_correction(batch))
        self.start_pending_anchor()
        return outcome

    def prepare_correction(self, batch: Batch) -> PreparedCorrection | CorrectionError | None:
        """Prepare the corrected vectors if this batch adopts a pending anchor. Readers may continue.

        Returns the correction, the error if the anchor failed, or None if no anchor is adopted.
        """
        pending = self.pending_anchor
        if pending is None or not self._adopts(pending):
            return None
        self.update_incomplete = True  # the correction is consumed and cannot be prepared twice
        try:
            prepared = pending.prepare(cast(RippleRule, self.rule), self.store, self.change_threshold)
        except CorrectionError as error:
            return error
        self.store.reserve(2 * len(batch), prepared.rows)
        return prepared

    def apply_prepared(
        self, batch: Batch, prepared: PreparedCorrection | CorrectionError | None = None
    ) -> BatchOutcome:
        """Apply a batch after adopting the prepared correction, if any.

        Readers must be excluded. Call `start_pending_anchor` afterwards.
        """
        first_new, steps = self.graph.next_arrival, self._graph_steps(batch)
        self.store.reserve(2 * len(batch))
        self.update_incomplete = True
        anchors_before = self.anchors
        if prepared is not None:
            self.pending_anchor = None
        if isinstance(prepared, CorrectionError):
            self._record_refused_anchor(prepared)
        elif prepared is not None:
            cast(RippleRule, self.rule).adopt_correction(self.store, prepared)
            self._record_anchor()
        moved, removed, edges = self._update_vectors(steps, first_new)
        due = self._record_batch(self._count_events(batch), edges, moved.size + len(removed), self.rule.rows_shortened)
        if self.pending_anchor is not None:
            self.pending_anchor.record_touched(moved, self.store)
        corrected = self._anchor_or_schedule() if due and self.pending_anchor is None else None
        for rows in (corrected, prepared.moved if isinstance(prepared, PreparedCorrection) else None):
            moved = moved if rows is None else _union_of_live_rows(moved, rows, self.graph)
        if not self.graph.adjacency.edge_count:
            self.rule.reset(self.store)
            self.pending_anchor, self.growth_slack = None, 0.0
        self.update_incomplete = self.pending_anchor is not None and self.pending_anchor.correction is None
        return BatchOutcome(moved, first_new, removed, self.anchors > anchors_before)

    def start_pending_anchor(self) -> None:
        """Start computing, in the background, the anchor that the last batch made due. Readers may continue."""
        if self.update_incomplete and self.pending_anchor is not None:
            self.pending_anchor.start(cast(RippleRule, self.rule), self.store)
            self.update_incomplete = False

    def apply_arrival(self, ids: IdColumn, weights: NDArray[np.float64] | None) -> int:
        """Apply the arrival of the first id with edges to the others in one kernel call; return its row.

        Returns −1, with nothing changed, if the arrival has to be applied as a batch. Readers must be excluded.
        """
        if (
            self.aging is not None
            or self.pending_anchor is not None
            or self.anchor_lag
            or len(ids) >= self.growth_slack
        ):
            return -1
        self.update_incomplete = True
        row, edges, changes = self.rule.apply_arrival(self.store, ids, weights, self.sequence + 1)
        if row >= 0 and self._record_batch(len(ids) - 1, edges, changes, self.rule.rows_shortened):
            self.anchor()
        self.update_incomplete = False
        return row

    def anchor(self) -> RowArray:
        """Correct all vectors, or compute the start of a model that began empty; return the moved rows."""
        self.pending_anchor = None  # superseded by this anchor
        return self._run_anchor(self._correct)

    def _correct(self) -> RowArray:
        if self.rule.ready:
            return self.rule.anchor(self.store, self.sequence, self.change_threshold)
        self.rule.start(self.store)
        return np.flatnonzero(self.store.placed)

    def may_trigger_anchor(self, batch: Batch) -> bool:
        """Return whether a batch may make an anchor due that is computed before the batch is complete."""
        if (self.ready and self._anchors_in_background()) or (
            self.pending_anchor is not None and not self._adopts(self.pending_anchor)
        ):
            return False
        if 2 * len(batch) < self.growth_slack and batch.op is None and self.aging is None:
            return False
        adjacency = self.graph.adjacency
        known_edges = adjacency.has_edges if adjacency.duplicate_policy == DUPLICATE_POLICIES["ignore"] else None
        vertices, edges = bound_growth(batch, self.find_rows, self.degrees, known_edges)
        return self.may_exceed_growth(vertices, edges + (0 if self.aging is None else self.aging.count_expiring(batch)))

    def fork_for_update(self) -> tuple[Engine, Engine]:
        """Return the engine that readers see during a long update, and the engine to update."""
        return self, self.clone()

    def clone(self) -> Engine:
        """Return an engine in the same state that shares no mutable data with this one."""
        other = copy(self)
        other.graph, other.rule, other.aging = self.graph.copy(), self.rule.copy(), deepcopy(self.aging)
        other.store = self.store.copy(other.graph)
        other.pending_anchor = None if self.pending_anchor is None else self.pending_anchor.copy()
        return other

    def warn_self_loops(self) -> None:
        """Warn about ignored self-loops, once. Call it after the update: a warning filter may raise an error."""
        self.graph.warn_self_loops()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays."""
        return self.snapshot().state()

    def snapshot(self) -> StateSnapshot:
        """Copy the state, so that it can be saved while updates continue."""
        pending = None if self.pending_anchor is None else self.pending_anchor.copy()
        adjacency = self.graph.adjacency
        return StateSnapshot(self._copy_arrays(), pending, directed=adjacency.directed, duplicates=adjacency.duplicates)

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Replace the state by arrays that `state` returned, after checking them."""
        adjacency = self.graph.adjacency
        dim = self.store.vectors.shape[1]
        check_state(state, dim=dim, directed=adjacency.directed, rule=self.rule, aging=self.aging)
        self.graph = Graph.from_state(
            strip_prefix("graph_", state),
            directed=adjacency.directed,
            duplicates=adjacency.duplicates,
            threads=self.graph.threads,
        )
        if self.aging is not None:
            self.aging.restore(strip_prefix("memory_", state))
            self.aging.attach(self.graph)
        self.rule.restore(strip_prefix("rule_", state))
        self.store = self.store.empty_for(self.graph)
        rows = self.graph.row_count
        self.store.vectors[:rows], self.store.placed[:rows] = state["vectors"], state["placed"]
        for name, value in zip(COUNTERS, state["counters"].tolist(), strict=True):
            setattr(self, name, value)
        pending = strip_prefix("pending_", state)
        self.pending_anchor = (
            BackgroundAnchor.from_state(pending, cast(RippleRule, self.rule), self.store) if pending else None
        )
        self.growth_slack = 0.0

    def _graph_steps(self, batch: Batch) -> Iterable[GraphDelta]:
        """Return the steps of a batch, applied to the graph as they are iterated.

        With edge aging, the last step removes the expired edges.
        """
        if self.aging is not None:
            return self.aging.apply(self.graph, batch)
        return self.graph.apply(batch, one_by_one=self.rule.one_by_one)

    def _update_vectors(self, steps: Iterable[GraphDelta], first_new: int) -> tuple[RowArray, list[Id], int]:
        """Run the rule after each step or after all; return moved rows, removed ids and the number of changed edges."""
        if not self.rule.one_by_one:
            deltas = [self.store.apply_delta(delta) for delta in steps]
            delta = deltas[0] if len(deltas) == 1 else self._merge_steps(deltas, first_new)
            return self.rule.apply(self.store, delta, self.sequence + 1), delta.removed_ids, _count_changed_edges(delta)
        moved: list[RowArray] = [np.empty(0, np.int64)]
        removed: list[Id] = []
        edges = 0
        for delta in steps:
            moved.append(self.rule.apply(self.store, self.store.apply_delta(delta), self.sequence + 1))
            removed += delta.removed_ids
            edges += _count_changed_edges(delta)
        rows = np.unique(np.concatenate(moved))
        return rows[self.graph.arrival[rows] >= 0], self._without_readded(removed), edges

    def _merge_steps(self, steps: list[GraphDelta], first_new: int) -> GraphDelta:
        """Merge the steps, without vertices that arrived and were removed again."""
        delta = merge_deltas(steps)
        if not delta.vacated_rows.size:
            return delta
        rows = np.unique(delta.arrived)
        rows = rows[self.graph.arrival[rows] >= first_new]
        arrived = rows[np.argsort(self.graph.arrival[rows], kind="stable")]
        return delta._replace(arrived=arrived, removed_ids=self._without_readded(delta.removed_ids))

    def _without_readded(self, removed: list[Id]) -> list[Id]:
        """Drop removed ids that the batch has added again."""
        return [vertex for vertex in removed if vertex not in self.graph.ids]

    def _anchor_or_schedule(self) -> RowArray | None:
        """Run an anchor now and return the moved rows, or schedule one in the background and return None."""
        if not (self.rule.ready and self._anchors_in_background()):
            return self.anchor()
        lag = max(1, ceil(self.anchor_lag * (len(self) + self.edges)))  # allows time in proportion to the work
        self.pending_anchor = BackgroundAnchor(self.sequence, self.events + lag)
        self._record_size()
        return None

    def _anchors_in_background(self) -> bool:
        return self.anchor_lag > 0 and isinstance(self.rule, RippleRule)

    def _adopts(self, pending: BackgroundAnchor) -> bool:
        """Return whether the next batch adopts a pending anchor."""
        return self.events >= pending.until or self.growth >= MAX_PENDING_GROWTH * self.anchor_growth

    def _count_events(self, batch: Batch) -> int:
        """Return the number of events of an applied batch. An expired edge is an event too."""
        return len(batch) + (0 if self.aging is None else self.aging.expired_count)

    def _copy_arrays(self) -> dict[str, NDArray[Any]]:
        """Copy the state, except for a pending anchor, to plain arrays."""
        rows = self.graph.row_count
        rule = self.rule.state()
        aging = {} if self.aging is None else self.aging.state()
        return {
            **{f"graph_{name}": array for name, array in self.graph.state().items()},
            **{f"rule_{name}": array for name, array in rule.items()},
            **{f"memory_{name}": array for name, array in aging.items()},  # saved name of edge aging
            "vectors": self.store.vectors[:rows].copy(),
            "placed": self.store.placed[:rows].copy(),
            "counters": np.array(list(self.counters().values())),
        }


def _union_of_live_rows(first: RowArray, second: RowArray, graph: Graph) -> RowArray:
    """Return the live rows of either array. Marking is faster than sorting, and readers are waiting."""
    marked = np.zeros(graph.row_count, bool)
    marked[first] = marked[second] = True
    return np.flatnonzero(marked & (graph.arrival[: graph.row_count] >= 0))


def _count_changed_edges(delta: GraphDelta) -> int:
    return int(np.count_nonzero(delta.changed_share[:, 0]))
