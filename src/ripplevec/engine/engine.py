"""The engine: graph, vectors and counters of a model, and their update by a batch or an anchor.

The state is a deterministic function of the parameters and the batches applied.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy, deepcopy
from os import PathLike
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import AttributeRows, Batch, Id, IdColumn
from ripplevec.changes import BatchOutcome
from ripplevec.engine.correction_schedule import NO_ROWS, CorrectionSchedule
from ripplevec.engine.digest import StateSnapshot
from ripplevec.engine.reads import LocalReads
from ripplevec.engine.state_validation import check_state
from ripplevec.graph.adjacency import RowArray
from ripplevec.graph.graph import Graph, GraphDelta, merge_deltas, strip_prefix
from ripplevec.graph.id_table import encode_ids
from ripplevec.rules.base import Rule
from ripplevec.rules.gradual_correction import GradualCorrection, is_correction
from ripplevec.rules.ripple import RippleRule
from ripplevec.rules.stream_kernels import load_stream_kernels
from ripplevec.rules.vector_store import VectorStore
from ripplevec.temporal.edge_aging import EdgeAging
from ripplevec.views.base import Progress


class Engine(CorrectionSchedule, LocalReads):
    """State of a model: graph, vectors, rule and counters."""

    def __init__(
        self,
        graph: Graph,
        rule: Rule,
        dim: int,
        *,
        anchor_growth: float = 0.0,
        gradual: bool = False,
        scale_interval: bool = False,
        start_size: int = 0,
        change_threshold: float = 0.0,
        directory: str | PathLike[str] | None = None,
        aging: EdgeAging | None = None,
    ) -> None:
        self.graph, self.rule, self.aging = graph, rule, aging
        self.store = VectorStore(graph, dim, rule.precision, directory)
        self.update_incomplete = False
        self.anchor_growth, self.start_size, self.change_threshold = anchor_growth, start_size, change_threshold
        self.gradual = gradual  # whether the stream pays for anchors in small slices
        self.scale_interval = scale_interval  # whether large graphs are corrected after more growth than small ones
        self.correction = None
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
            load_stream_kernels(self.rule, len(self))
        self._record_size()

    def apply(self, batch: Batch) -> BatchOutcome:
        """Apply a batch that `check_batch` accepts. Readers must be excluded; `continue_correction` follows."""
        if self.correction is not None:
            self.continue_correction()  # again, in case that an interrupt prevented it
        first_new, steps, growth = self.graph.next_arrival, self._graph_steps(batch), self.growth
        self.store.reserve(2 * len(batch))
        self.update_incomplete = True
        anchors_before, announcing = self.anchors, self.correction is not None and self.correction.swapped
        moved, removed, edges = self._update_vectors(steps, first_new)
        due = self._record_batch(self._count_events(batch), edges, moved.size + len(removed), self.rule.rows_shortened)
        if due or self.correction is not None:
            corrected = self._correct_if_due(due, moved, first_new, self.growth - growth)
            if corrected.size:
                moved = _union_of_live_rows(moved, corrected, self.graph)
        if not self.graph.adjacency.edge_count:
            self.rule.reset(self.store)
            self._abandon_correction()
            self.growth_slack = 0.0
        moved = self._follow_batch(batch, moved)
        self._serve_moved(moved)
        self.update_incomplete = False
        return BatchOutcome(moved, first_new, removed, announcing or self.anchors > anchors_before)

    def apply_arrival(
        self, ids: IdColumn, weights: NDArray[np.float64] | None, attributes: AttributeRows | None = None
    ) -> int:
        """Apply the arrival of the first id with edges to the others in one kernel call; return its row.

        Returns −1, with nothing changed, if the arrival has to be applied as a batch. Readers must be excluded;
        `continue_correction` follows.
        """
        if self.correction is not None:
            self.continue_correction()
        if self.aging is not None or (not self._is_gradual and len(ids) >= self.growth_slack):
            return -1
        row = self._try_arrival(ids, weights, attributes)
        has_fast_path = self.ready and isinstance(self.rule, RippleRule) and len(ids) > 1
        if row < 0 and has_fast_path and self.store.make_room(encode_ids(ids)):
            row = self._try_arrival(ids, weights, attributes)  # nothing had changed, also if the allocation failed
        return row

    def _try_arrival(self, ids: IdColumn, weights: NDArray[np.float64] | None, attributes: AttributeRows | None) -> int:
        self.update_incomplete = True
        first_new, growth = self.graph.next_arrival, self.growth
        row, edges, moved = self.rule.apply_arrival(self.store, ids, weights, self.sequence + 1)
        if row >= 0:
            due = self._record_batch(len(ids) - 1, edges, moved.size, self.rule.rows_shortened)
            if due or self.correction is not None:
                self._correct_if_due(due, moved, first_new, self.growth - growth)
            self._serve_moved(moved)
            self._serve_moved(self._follow_arrival(ids, attributes))
        self.update_incomplete = False
        return row

    def _anchor_in_batch(self) -> RowArray:
        announced = self._end_correction()
        return np.union1d(announced, self._run_anchor(self._correct))

    def _correct(self) -> RowArray:
        if self.rule.ready:
            return self.rule.anchor(self.store, self.sequence, self.change_threshold)
        self.rule.start(self.store)
        return np.flatnonzero(self.store.placed)

    def _count_expiring(self, batch: Batch) -> int:
        return 0 if self.aging is None else self.aging.count_expiring(batch)

    def fork_for_update(self) -> tuple[Engine, Engine]:
        """Return the engine that readers see during a long update, and the engine to update."""
        return self, self.clone()

    def clone(self) -> Engine:
        """Return an engine in the same state that shares no mutable data with this one."""
        other = copy(self)
        other.graph, other.rule, other.aging = self.graph.copy(), self.rule.copy(), deepcopy(self.aging)
        other.store = self.store.copy(other.graph)
        if self.correction is not None:
            other.correction = self._restore_correction(self.correction.state(self.store), other)
        return other

    def warn_self_loops(self) -> None:
        """Warn about ignored self-loops, once. Call it after the update: a warning filter may raise an error."""
        self.graph.warn_self_loops()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays."""
        return self.snapshot().state()

    def snapshot(self) -> StateSnapshot:
        """Copy the state, so that it can be saved while updates continue."""
        adjacency = self.graph.adjacency
        progress = None if self.correction is None else self.correction.progress()
        return StateSnapshot(
            self._copy_arrays(), progress, directed=adjacency.directed, duplicates=adjacency.duplicates
        )

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
        self.restore_counters(state["counters"])
        pending = strip_prefix("pending_", state)
        # An anchor that an earlier version had begun is dropped: the next one corrects all vectors.
        self.correction = self._restore_correction(pending, self) if is_correction(pending) else None
        self.growth_slack = 0.0
        load_stream_kernels(self.rule, len(self))

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
            deltas = [self._follow_delta(delta) for delta in steps]
            delta = deltas[0] if len(deltas) == 1 else self._merge_steps(deltas, first_new)
            return self.rule.apply(self.store, delta, self.sequence + 1), delta.removed_ids, _count_changed_edges(delta)
        moved: list[RowArray] = [np.empty(0, np.int64)]
        removed: list[Id] = []
        edges = 0
        for delta in steps:
            moved.append(self.rule.apply(self.store, self._follow_delta(delta), self.sequence + 1))
            removed += delta.removed_ids
            edges += _count_changed_edges(delta)
        rows = np.unique(np.concatenate(moved))
        return rows[self.graph.arrival[rows] >= 0], self._without_readded(removed), edges

    def _follow_batch(self, batch: Batch, moved: RowArray) -> RowArray:
        """Complete the update by a batch; return all moved rows."""
        return moved

    def _follow_arrival(self, ids: IdColumn, attributes: AttributeRows | None) -> RowArray:
        """Update what depends on attributes after an arrival, and return the moved rows; see `AttributedEngine`."""
        return NO_ROWS

    def _follow_delta(self, delta: GraphDelta) -> GraphDelta:
        if self.correction is not None and delta.vacated_rows.size:
            self.correction.clear_rows(delta.vacated_rows)
        return self.store.apply_delta(delta)

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

    # ------------------------------------------------------------------ gradual corrections

    @property
    def _row_count(self) -> int:
        return self.graph.row_count

    def _begin_correction(self) -> GradualCorrection:
        return cast(RippleRule, self.rule).begin_correction(self.store, self.sequence)

    def _follow_moved(self, moved: RowArray, first_new: int) -> None:
        if self.correction is not None:
            self.correction.record_batch(self.store, moved, first_new)

    def _serve_moved(self, moved: RowArray) -> None:
        """Serve the new rows of a correction for all rows that an update reports, not only at their announcement."""
        if self.correction is not None and self.correction.swapped:
            self.correction.serve_new(moved)

    def _compute_slices(self, correction: GradualCorrection, credit: float) -> None:
        correction.advance(self.store, credit, self.change_threshold, cast(RippleRule, self.rule).threads)

    def _publish_slices(self, correction: GradualCorrection) -> RowArray:
        return correction.publish(self.store, self.change_threshold, cast(RippleRule, self.rule).threads)

    def _adopt_correction(self, correction: GradualCorrection) -> None:
        cast(RippleRule, self.rule).set_coordinates(correction.after.choice, correction.new)

    def _restore_correction(self, state: dict[str, NDArray[Any]], engine: Engine) -> GradualCorrection:
        """Return a correction from saved arrays, for the state of an engine."""
        return cast(RippleRule, engine.rule).restore_correction(engine.store, state)

    def _count_events(self, batch: Batch) -> int:
        """Return the number of events of an applied batch. An expired edge is an event too."""
        return len(batch) + (0 if self.aging is None else self.aging.expired_count)

    def _copy_arrays(self) -> dict[str, NDArray[Any]]:
        """Copy the state to plain arrays."""
        rows = self.graph.row_count
        pending = {} if self.correction is None else self.correction.state(self.store)
        rule = self.rule.state()
        aging = {} if self.aging is None else self.aging.state()
        return {
            **{f"graph_{name}": array for name, array in self.graph.state().items()},
            **{f"rule_{name}": array for name, array in rule.items()},
            **{f"memory_{name}": array for name, array in aging.items()},  # saved name of edge aging
            "vectors": self.store.vectors[:rows].copy(),
            "placed": self.store.placed[:rows].copy(),
            "counters": np.array(list(self.counters().values())),
            **{f"pending_{name}": array for name, array in pending.items()},
        }


def _union_of_live_rows(first: RowArray, second: RowArray, graph: Graph) -> RowArray:
    """Return the live rows of either array. Marking many rows is faster than sorting them, and readers are waiting."""
    if 16 * (first.size + second.size) < graph.row_count:
        rows = np.union1d(first, second)
        return rows[graph.arrival[rows] >= 0]
    marked = np.zeros(graph.row_count, bool)
    marked[first] = marked[second] = True
    return np.flatnonzero(marked & (graph.arrival[: graph.row_count] >= 0))


def _count_changed_edges(delta: GraphDelta) -> int:
    return int(np.count_nonzero(delta.changed_share[:, 0]))
