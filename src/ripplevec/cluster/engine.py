"""Engine of a model on several shards, with the methods of the single-machine `Engine`.

Results equal those of `Engine`: bit for bit without anchors, up to rounding with anchors that are computed at once, and
approximately with gradual ones (`shard_correction.py`).

The driver knows the number of vertices and edges, the coordinates and the counters; it stores no rows. All rows are row
codes (see `routing.py`).
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch, Id, IdColumn, Op, id_column, ids_to_list, take_ids
from ripplevec.changes import BatchOutcome, Changes
from ripplevec.cluster.arrival_steps import RemoteArrivalGraph, RemoteStore, apply_one_by_one
from ripplevec.cluster.driver_reads import ReadSnapshot, ShardReads, gather_graph
from ripplevec.cluster.ingestion import AgingStep, VertexRemoval, split_batch_for_shards
from ripplevec.cluster.mesh import ShardLostError
from ripplevec.cluster.routing import join_id_columns
from ripplevec.cluster.shard import AnchorSummary, MovedRows, ShardSummary, TooSmallError
from ripplevec.cluster.shard_correction import RemoteCorrection
from ripplevec.cluster.state_arrays import ClusterSnapshot, LazyClusterState, lazy_state, split_state
from ripplevec.cluster.transport import Transport
from ripplevec.engine.correction_schedule import CorrectionSchedule
from ripplevec.engine.state_validation import check_shards
from ripplevec.errors import LostStateError, SelfLoopWarning
from ripplevec.graph.adjacency import RowArray, WeightScale
from ripplevec.graph.graph import strip_prefix
from ripplevec.parameters import Parameters
from ripplevec.rules.gradual_correction import is_correction
from ripplevec.rules.ripple import RippleRule
from ripplevec.rules.scaled_filter import even_degree
from ripplevec.rules.vector_store import VectorStore
from ripplevec.views.base import Progress
from ripplevec.views.solvers import MAX_DENSE_SIZE

MAX_DRIVER_START_EDGES = 4_000_000
"""Largest graph whose start is computed on the driver; larger graphs are solved on the shards."""


@dataclass(frozen=True)
class RemoteVectors:
    """The vectors that a batch changed; the shards keep those that are not in `moved` as long as this object exists."""

    sequence: int
    moved: list[MovedRows]


class ClusterEngine(CorrectionSchedule, ShardReads):
    """The engine of a model on shards.

    Parameters
    ----------
    transport
        The shards.
    parameters
        Parameters of the model.
    recovery_hint
        What to do if a shard is lost.
    on_loss
        Called once if a shard is lost.
    """

    def __init__(
        self,
        transport: Transport,
        parameters: Parameters,
        *,
        recovery_hint: str = "Load a saved model",
        on_loss: Callable[[], None] | None = None,
    ) -> None:
        self.transport, self.parameters = transport, parameters
        self.recovery_hint, self._on_loss = recovery_hint, on_loss
        self.anchor_growth, self.start_size = parameters.resolved_anchor_growth, parameters.resolved_start_size
        self.gradual = parameters.anchor_pace == "gradual"
        self.scale_interval = self.gradual and parameters.anchor_growth == "auto"
        self.change_threshold, self.correction = parameters.change_threshold, None
        self.aging = parameters.create_edge_aging()
        if self.aging is not None:
            self.aging.window = None  # each shard has a window of its own
        self.update_incomplete = False  # an update has begun and not finished: the state must not be used
        self._warned = False
        self.rule = self.parameters.create_rule()  # `ripple` is used for its coordinates; the shards store rows
        self.next_arrival = self.loops = self.vertices = self.edges = 0
        self._expired = 0  # edges that expired with the last batch
        self._changed: RemoteVectors | None = None  # by the last batch
        self._unused_changes: list[int] = []  # batches whose changed vectors will not be read any more
        self.reset_counters()

    # ------------------------------------------------------------------ lost shards

    def query(self, method: str, *columns: Any, **constants: Any) -> list[Any]:
        """Call a method on every shard and wait for the results."""
        if self.lost is not None:
            raise ShardLostError(*self.lost.args)
        try:
            return super().query(method, *columns, **constants)
        except ShardLostError as error:
            raise self.report_loss(error) from error

    def report_loss(self, error: ShardLostError) -> LostStateError:
        """Record that a shard is lost; return the error to raise, now and for every later use."""
        if self.lost is None:
            self.lost = ShardLostError(f"A shard is lost with its part of the model ({error}). {self.recovery_hint}.")
            if self._on_loss is not None:
                self._on_loss()
        return self.lost

    # ------------------------------------------------------------------ updates

    def start(self, batch: Batch, progress: Progress | None = None) -> None:
        """Apply a batch as the initial graph and embed it from scratch."""
        with self._updating():
            if self.rule.one_by_one:
                RemoteArrivalGraph(self).apply_start(batch)
            else:
                self._update(batch)
            self._changed = None  # a start has no changes to read, and the next batch uses its sequence number again
            self.events = len(batch) + self._expired
            if self.edges:
                self._compute_start(progress)
            self._record_size()

    def apply(self, batch: Batch) -> BatchOutcome:
        """Apply a batch that `check_batch` accepts."""
        first_new, anchors_before, growth = self.next_arrival, self.anchors, self.growth
        with self._updating():
            moved, removed, edges = self._update(batch)
            events, changes = len(batch) + self._expired, moved.size + len(removed)
            due = self._record_batch(events, edges, changes, self.rule.rows_shortened)
            corrected = self._correct_if_due(due, moved, first_new, self.growth - growth)
            if corrected.size:
                moved = np.union1d(moved, corrected)
            if not self.edges:
                self._abandon_correction()
                self.rule.reset(cast(VectorStore, RemoteStore(self, RemoteArrivalGraph(self))))
                self._broadcast_coordinates()
            moved = self._follow_batch(batch, moved)
            self.continue_correction()
        return BatchOutcome(moved, first_new, removed, self.anchors > anchors_before)

    def _follow_batch(self, batch: Batch, moved: RowArray) -> RowArray:
        """Complete the update by a batch; return all moved rows."""
        return moved

    @contextmanager
    def _updating(self) -> Iterator[None]:
        """Mark the state as incomplete until the block has succeeded: after an error, shards may differ."""
        if self.lost is not None:
            raise ShardLostError(*self.lost.args)
        self.update_incomplete = True
        try:
            yield
        except ShardLostError as error:
            if error is self.lost:
                raise
            raise self.report_loss(error) from error
        self.update_incomplete = False

    def _count_expiring(self, batch: Batch) -> int:
        if self.aging is None or self.parameters.expire_after is None:
            return 0
        return sum(self.query("count_due", now=self.aging.clock.now_after(batch.time)))

    def fork_for_update(self) -> tuple[ReadSnapshot, ClusterEngine]:
        """Return a snapshot for readers during a long update, and the engine to update."""
        return ReadSnapshot(self), self

    def apply_arrival(self, ids: IdColumn, weights: NDArray[np.float64] | None, attributes: None = None) -> int:
        """Return −1: there is no fast path for a single arrival, which must be applied as a batch."""
        return -1

    def _update(self, batch: Batch) -> tuple[RowArray, list[Id], int]:
        """Update graph and vectors; return rows that may have moved, removed ids, and the number of changed edges."""
        if self.rule.one_by_one:
            moved, removed, changed_edges = apply_one_by_one(self, RemoteArrivalGraph(self), batch)
            self._changed = None  # it has the new vertices of the last arrival only
            return moved, self._find_absent(removed), changed_edges
        aging = None
        if self.aging is not None:
            batch, rescaling = self.aging.advance(batch)
            aging = AgingStep(rescaling, self._compute_weight_scale().unit, self.aging.clock.now)
        moved, changed_edges = self.run_batch(batch, aging)
        if batch.op is None:
            return moved, [], changed_edges
        removed = ids_to_list(take_ids(batch.src, np.flatnonzero(batch.op == Op.REMOVE_VERTEX)))
        return moved, self._find_absent(removed), changed_edges

    def run_batch(self, batch: Batch, aging: AgingStep | None = None) -> tuple[RowArray, int]:
        """Run a batch on all shards; return rows that may have moved, and the number of changed edges.

        With rule `paper`, only the graph changes.
        """
        context = {
            "next_arrival": self.next_arrival,
            "sequence": self.sequence + 1,
            "ready": self.ready and not self.rule.one_by_one,
            "aging": aging,
        }
        parts = split_batch_for_shards(batch, self.transport.size)
        unused, self._unused_changes[:] = tuple(self._unused_changes), []
        summaries: list[ShardSummary] = self.transport.run("apply_batch", parts, **context, unused_changes=unused)
        removed = sum(isinstance(part, VertexRemoval) for part in parts[0])
        self.vertices += summaries[0].next_arrival - self.next_arrival - removed
        self.next_arrival = summaries[0].next_arrival
        self.loops += sum(summary.loops for summary in summaries)
        self.edges = sum(summary.edges for summary in summaries)
        self._expired = sum(summary.expired for summary in summaries)
        self.weight_scale = self._compute_weight_scale()
        self.rule.rows_shortened = sum(summary.shortened for summary in summaries)
        self._changed = self._track_changed([summary.moved for summary in summaries])
        moved = self.encode_rows(part.rows for part in self._changed.moved)
        return moved, sum(summary.changed for summary in summaries)

    def _compute_weight_scale(self) -> WeightScale:
        """Return the scale of the stored weights now."""
        if self.aging is None or self.aging.decay is None:
            return WeightScale()
        return self.aging.decay.weight_scale(self.aging.clock.now, self.edges)

    def _track_changed(self, moved: list[MovedRows]) -> RemoteVectors:
        """Let the shards drop the changed vectors of the current batch once the returned object is gone."""
        changed = RemoteVectors(self.sequence + 1, moved)
        weakref.finalize(changed, self._unused_changes.append, changed.sequence).atexit = False
        return changed

    def build_changes(self, outcome: BatchOutcome) -> Changes:
        """Return the changes of the last batch or anchor; many vectors stay on the shards until they are read."""
        changed = self._changed
        if outcome.anchored or changed is None:  # `outcome` has rows that the batch itself did not move
            return super().build_changes(outcome)
        numbers = np.concatenate([part.numbers for part in changed.moved])
        order, to_served = np.argsort(numbers, kind="stable"), self.rule.served_transform()

        def fetch_served(remote_vectors: Any) -> NDArray[np.float32]:
            return to_served(np.concatenate(self.fetch_changed_vectors(remote_vectors))[order])

        return Changes(
            take_ids(join_id_columns([part.ids for part in changed.moved]), order),
            cast(Any, changed),
            fetch_served,
            numbers[order] >= outcome.first_new,
            outcome.removed,
            self.sequence,
            False,
        )

    def fetch_changed_vectors(self, remote: RemoteVectors) -> list[NDArray[Any]]:
        """Return the vectors that a batch changed on each shard; raise `ShardLostError` if a shard lost them."""
        if all(part.vectors is not None for part in remote.moved):
            return [part.vectors for part in remote.moved if part.vectors is not None]
        try:
            on_shards = self.query("read_changed_vectors", sequence=remote.sequence)
        except ShardLostError as error:
            raise ShardLostError(
                f"Changed vectors of batch {remote.sequence:,} were lost with a shard. Read the current vectors."
            ) from error
        return [
            kept if part.vectors is None else part.vectors for part, kept in zip(remote.moved, on_shards, strict=True)
        ]

    def _find_absent(self, removed: list[Id]) -> list[Id]:
        """Return the removed ids that did not arrive again."""
        rows = self.find_rows(id_column(removed)).tolist() if removed else []
        return [vertex for vertex, row in zip(removed, rows, strict=True) if row < 0]

    def warn_self_loops(self) -> None:
        """Warn about self-loops, once, after an update is complete: a warning filter may raise an error."""
        if self.loops and not self._warned:
            self._warned = True
            warnings.warn("Self-loops are ignored (further warnings suppressed).", SelfLoopWarning, stacklevel=3)

    # ------------------------------------------------------------------ starts and anchors

    def anchor(self) -> RowArray:
        """Correct all vectors now, or compute the start of a model that began empty; return the rows that moved."""
        with self._updating():
            return super().anchor()

    def _anchor_in_batch(self) -> RowArray:
        self._abandon_correction()
        return self._run_anchor(self._correct)

    def _correct(self) -> RowArray:
        if not self.ready:
            self._compute_start()
            rows = self.rows_by_arrival()
            return rows[self.placed(rows)]
        summaries: list[AnchorSummary] = self.transport.run(
            "anchor", sequence=self.sequence, threshold=self.change_threshold, weight_scale=self.weight_scale
        )
        error = summaries[0].error
        if isinstance(error, TooSmallError):
            return self._correct_on_driver()
        if error is not None:
            raise error
        self.rule.restore(summaries[0].coordinates)
        return self.encode_rows(summary.moved for summary in summaries)

    def _correct_on_driver(self) -> RowArray:
        """Gather a small graph on the driver and correct it as one machine does; return the rows that moved."""
        graph, rows = gather_graph(self)
        store = VectorStore(graph, self.parameters.dim, self.rule.precision)
        store.grow()
        store.vectors[: rows.size] = self.read_rows(rows, "vectors")
        moved = self.rule.anchor(store, self.sequence, self.change_threshold)
        self._broadcast_coordinates()
        self.query_rows("set_vectors", rows, store.vectors[: rows.size])
        return rows[moved]

    def _compute_start(self, progress: Progress | None = None) -> None:
        """Embed the graph from scratch; a small graph is gathered on the driver, for the same bits as one machine."""
        large = self.edges > MAX_DRIVER_START_EDGES and not self.rule.one_by_one
        if large and self.count_connected() > 2 * self.parameters.dim + MAX_DENSE_SIZE:
            self.rule.restore(self.transport.run("start", weight_scale=self.weight_scale)[0].coordinates)
            return
        graph, rows = gather_graph(self)
        store = VectorStore(graph, self.parameters.dim, self.rule.precision)
        self.rule.start(store, progress)
        self._broadcast_coordinates()
        self.query_rows("set_vectors", rows, store.vectors[: rows.size])

    def _broadcast_coordinates(self) -> None:
        """Send the coordinates to all shards. Rule `paper` has none."""
        if not self.rule.one_by_one:
            self.query("set_coordinates", state=self.rule.state())

    # ------------------------------------------------------------------ gradual corrections

    @property
    def _row_count(self) -> int:
        return self.vertices

    def _begin_correction(self) -> RemoteCorrection | None:
        """Begin a gradual correction, unless the views of the model are to be reconsidered: this is done at once."""
        reconsider = cast(RippleRule, self.rule).may_reconsider(self.vertices, self.edges)
        return None if reconsider else self._new_correction()

    def _new_correction(self) -> RemoteCorrection:
        return RemoteCorrection(self, even_degree(cast(RippleRule, self.rule).coordinates.views))

    def _follow_moved(self, moved: RowArray, first_new: int) -> None:
        """Do nothing: every shard has recorded its moved rows with the batch."""

    def _compute_slices(self, correction: RemoteCorrection, credit: float) -> None:
        shards = self.transport.size
        first = self.transport.run("advance_correction", credit=credit / shards, threshold=self.change_threshold)[0]
        if first.error is not None:
            raise first.error
        correction.credit, correction.can_publish = first.credit * shards, first.can_publish

    def _publish_slices(self, correction: RemoteCorrection) -> RowArray:
        summaries: list[AnchorSummary] = self.transport.run("publish_correction", threshold=self.change_threshold)
        correction.coordinates, correction.swapped, correction.finished = summaries[0].coordinates, True, True
        return self.encode_rows(summary.moved for summary in summaries)

    def _adopt_correction(self, correction: RemoteCorrection) -> None:
        self.rule.restore(correction.coordinates)

    # ------------------------------------------------------------------ saved state

    def state(self) -> LazyClusterState:
        """Return the state as plain arrays, which are copied now and fetched one shard after the other."""
        return lazy_state(self)

    def attribute_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of attributes that are on the driver; see `AttributedClusterEngine`."""
        return {}

    def snapshot(self) -> ClusterSnapshot:
        """Return the current state, which can be saved while the engine continues."""
        return ClusterSnapshot(self)

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Replace the state by one that `state` returned for the same number of shards."""
        shards = split_state(state, self.transport.size)
        parameters, aging = self.parameters, self.parameters.create_edge_aging()
        check_shards(shards, state, dim=parameters.dim, directed=parameters.directed, rule=self.rule, aging=aging)
        self.query("restore", shards)
        self.rule.restore(strip_prefix("rule_", state))
        self._broadcast_coordinates()
        self.correction = None
        # An anchor that an earlier version had begun is dropped: the next one corrects all vectors.
        if all(is_correction(strip_prefix("pending_", shard)) for shard in shards):
            self.correction = self._new_correction()
            self.correction.restore(strip_prefix("pending_", state))
            self.correction.can_publish = any(self.query("restore_correction", shards))
        self.next_arrival, self.loops = int(state["next_arrival"]), 0
        self.restore_counters(state["counters"])
        sizes = self.sizes()
        self.vertices, self.edges = sizes["vertices"], sizes["edges"]
        if self.aging is not None:
            self.aging.restore(strip_prefix("memory_", state))
            self.weight_scale = self._compute_weight_scale()
            self.query("set_weight_unit", unit=self.weight_scale.unit)
