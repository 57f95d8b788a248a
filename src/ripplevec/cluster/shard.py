"""The `Shard`: the state of one shard, and the programs that all shards of a model run together.

A batch (`apply_batch`) first changes the graph (`ingestion.py`), then the vectors (`shard_step.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy as shallow_copy
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ripplevec.attributes.table import AttributeTable
from ripplevec.batch import IdColumn
from ripplevec.cluster.halo import gather_rows
from ripplevec.cluster.ingestion import (
    NO_ROWS,
    AgingStep,
    BatchSlice,
    GraphUpdate,
    VertexRemoval,
    expire_edges,
)
from ripplevec.cluster.shard_correction import ShardCorrection
from ripplevec.cluster.shard_graph import ShardGraph
from ripplevec.cluster.shard_operator import ShardedAdjacency, ShardReader
from ripplevec.cluster.shard_step import ShardBackend
from ripplevec.graph.adjacency import RowArray, WeightScale
from ripplevec.graph.graph import strip_prefix
from ripplevec.parameters import Parameters
from ripplevec.rules.anchor import (
    CorrectionError,
    align_to_products,
    alignment_products,
    bases_from_scratch,
    concatenate_views,
    fill_rows,
    find_moved_rows,
)
from ripplevec.rules.batch_step import run_batch_step
from ripplevec.rules.gradual_correction import Version
from ripplevec.views.base import Basis
from ripplevec.views.coordinates import Coordinates
from ripplevec.views.solvers import MAX_DENSE_SIZE

SNAPSHOT_GONE = "snapshot gone"
"""Result of a read from a snapshot that no longer exists; an exception would cause the shard to be dropped."""

MAX_SUMMARY_BYTES = 64 * 1024
"""Largest size of changed vectors that a shard returns with the outcome of a batch."""


class MovedRows(NamedTuple):
    """The rows of one shard whose vectors a batch may have changed."""

    rows: RowArray
    numbers: RowArray  # arrival numbers
    ids: IdColumn
    vectors: NDArray[Any] | None  # as stored; None if they are many and stay on the shard until they are read


class ShardSummary(NamedTuple):
    """The outcome of a batch on one shard."""

    moved: MovedRows
    edges: int  # edges that are counted on this shard
    changed: int  # how many of them the batch changed
    shortened: int  # vectors that exceeded the length bound and were scaled back
    loops: int  # self-loops in this shard's slices of the batch
    next_arrival: int  # arrival number of the next new vertex; equal on all shards
    expired: int  # expired edges whose first endpoint was on this shard


class AnchorSummary(NamedTuple):
    """The outcome of an anchor, of a start, or of some slices of a gradual correction on one shard."""

    coordinates: dict[str, NDArray[Any]]  # saved form of the new coordinates, from the first shard only
    moved: RowArray = NO_ROWS  # rows whose served vectors moved by more than the threshold
    error: CorrectionError | None = None  # why no usable vectors were found; equal on all shards
    finished: bool = True
    credit: float = 0.0  # of a gradual correction that is left; equal on all shards
    can_publish: bool = False  # whether it has something to publish; equal on all shards


class TooSmallError(CorrectionError):
    """A graph is too small to be solved from scratch on shards and must be solved on the driver."""


class Shard(ShardGraph):
    """One of the shards that together hold a model. See `ShardGraph` for the parameters."""

    def __init__(self, index: int, shards: int, parameters: Parameters) -> None:
        super().__init__(index, shards, parameters)
        self.needed = 0  # bytes of vectors that other shards had to read
        self.changed_vectors: dict[int, NDArray[Any]] = {}  # by sequence number, until they will not be read any more
        self.snapshots: dict[int, Shard] = {}  # copies of the state before an update, by number
        self.correction: ShardCorrection | None = None

    # ------------------------------------------------------------------ batches

    def apply_batch(
        self,
        parts: list[BatchSlice | VertexRemoval],
        *,
        next_arrival: int,
        sequence: int,
        ready: bool,
        aging: AgingStep | None = None,
        unused_changes: Sequence[int] = (),
    ) -> ShardSummary:
        """Apply a batch, together with all other shards.

        Parameters
        ----------
        parts
            The slices of the batch that this shard routes, and all vertex removals; see `split_batch_for_shards`.
        next_arrival
            Arrival number of the next new vertex.
        sequence
            Sequence number of the batch.
        ready
            Whether there has been a start, so that there are vectors to update.
        aging
            Changes of the aging of edges, if they age.
        unused_changes
            Sequence numbers of batches whose changed vectors will not be read any more.
        """
        for unused in unused_changes:
            self.changed_vectors.pop(unused, None)
        if aging is not None:
            self.age_edges(aging)
        update = GraphUpdate(self, next_arrival)
        update.run(parts)
        expired = 0 if aging is None or self.window is None else expire_edges(self, self.window, aging.now)
        if not ready:
            changed, moved, shortened = self.take_changes().edges, update.new_rows(), 0
        else:
            backend = ShardBackend(self, update, sequence)
            run_batch_step(backend)
            changed, moved, shortened = backend.changes.edges, backend.moved_rows(), backend.shortened
        if self.correction is not None:
            self.correction.record_batch(self.store, moved, update.first_new)
        edges = self.graph.adjacency.edge_count
        moved_rows = self._describe_moved(moved, sequence)
        return ShardSummary(moved_rows, edges, changed, shortened, update.loops, update.next_arrival, expired)

    def _describe_moved(self, rows: RowArray, sequence: int) -> MovedRows:
        vectors: NDArray[Any] | None = gather_rows(self.store.vectors, rows)
        if vectors is not None and vectors.nbytes > MAX_SUMMARY_BYTES:
            self.changed_vectors[sequence], vectors = vectors, None
        return MovedRows(rows, self.graph.arrival[rows], self.graph.ids.to_column(rows), vectors)

    def read_changed_vectors(self, sequence: int) -> NDArray[Any] | None:
        """Return the vectors that a batch changed on this shard, as stored right after it; None if they were few."""
        return self.changed_vectors.get(sequence)

    # ------------------------------------------------------------------ steps of one arrival, for rule `paper`

    def count_rows(self) -> int:
        """Return the number of rows ever used."""
        return self.graph.row_count

    def remove_vertex(self, row: int) -> list[RowArray]:
        """Remove a vertex of this shard with its edges; return its neighbors as rows on each shard."""
        if self.correction is not None:
            self.correction.clear_rows(np.array([row]))
        return super().remove_vertex(row)

    # ------------------------------------------------------------------ gradual corrections

    def begin_correction(self, *, sequence: int, first_new: int, rows: int, spread: float) -> None:
        """Begin a correction with the current views; see `RemoteCorrection.plan`."""
        rule = self.rule
        before = Version(rule.coordinates, rule.choice)
        after = before._replace(coordinates=rule.coordinates.new_like())
        self.correction = ShardCorrection(
            before, after, rule.prepare_workspace(self.store, ShardCorrection), rule.seed, sequence
        )
        self.correction.first_new, self.correction.planned_rows = first_new, rows
        self.correction.plan(rows, spread, 0.0)

    def advance_correction(self, *, credit: float, threshold: float) -> AnchorSummary:
        """Compute slices of the correction worth this credit, together with all other shards."""
        correction = self.correction
        assert correction is not None
        correction.mesh = self.mesh
        try:
            correction.advance(self.store, credit, threshold, self.rule.threads)
        except CorrectionError as error:  # the same on all shards: their vectors are unchanged
            return AnchorSummary({}, error=error)
        return AnchorSummary({}, finished=False, credit=correction.credit, can_publish=correction.can_publish)

    def publish_correction(self, *, threshold: float) -> AnchorSummary:
        """Complete the correction, together with all other shards: serve the new rows."""
        correction = self.correction
        assert correction is not None
        correction.mesh = self.mesh
        moved = correction.publish(self.store, threshold, self.rule.threads)
        self.correction = None
        return self._adopt_coordinates(correction.after.choice, correction.new, moved)

    def abandon_correction(self) -> None:
        """Stop the correction."""
        if self.correction is not None:
            self.correction.abandon()
            self.correction = None

    def report_progress(self) -> NDArray[np.float64]:
        """Return numbers that describe the state of the correction."""
        return np.empty(0) if self.correction is None else self.correction.progress()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state of this shard as plain arrays."""
        pending = {} if self.correction is None else self.correction.state(self.store)
        return {**super().state(), **{f"pending_{name}": array for name, array in pending.items()}}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Replace the state of this shard by one that `state` returned, without its correction."""
        self.correction = self.rule.workspace = None
        super().restore(state)

    def restore_correction(self, state: dict[str, NDArray[Any]]) -> bool:
        """Restore the correction of a state, after its coordinates; return whether it has something to publish."""
        pending = strip_prefix("pending_", state)
        self.correction = cast(ShardCorrection, self.rule.restore_correction(self.store, pending, ShardCorrection))
        return self.correction.can_publish

    # ------------------------------------------------------------------ anchors and starts

    def anchor(self, *, sequence: int, threshold: float, weight_scale: WeightScale) -> AnchorSummary:
        """Correct all vectors, aligned with the vectors served before, together with all other shards."""
        graph, rule = ShardedAdjacency(self, weight_scale), self.rule
        before = self.store.vectors[: graph.rows]
        try:
            with graph.mapped():
                choice, coordinates, bases = rule.solve_anchor(
                    graph, before, sequence, ShardReader(graph), graph.copy_for_solver, _solve_from_scratch
                )
        except CorrectionError as error:  # the same on all shards: their vectors are unchanged
            return AnchorSummary({}, error=error)
        bases = [replace(basis, rows=basis.rows[: graph.rows]) for basis in bases]
        products = alignment_products(rule.coordinates, coordinates, bases, before, rule.threads)
        align_to_products(coordinates, bases, self.mesh.sum(products))
        after = partial(concatenate_views, bases)
        moved = find_moved_rows(rule.coordinates, before, coordinates, after, threshold, rule.threads)
        self._store_bases(coordinates, bases)
        return self._adopt_coordinates(choice, coordinates, moved)

    def start(self, *, weight_scale: WeightScale) -> AnchorSummary:
        """Embed the graph from scratch, together with all other shards."""
        graph = ShardedAdjacency(self, weight_scale)
        with graph.mapped():
            choice, coordinates, bases = self.rule.solve_start(graph, graph.rows, ShardReader(graph))
        self._store_bases(coordinates, [replace(basis, rows=basis.rows[: graph.rows]) for basis in bases])
        return self._adopt_coordinates(choice, coordinates)

    def _store_bases(self, coordinates: Coordinates, bases: list[Basis]) -> None:
        rows = len(bases[0].rows)
        fill_rows(self.store.vectors[:rows], coordinates, bases)
        self.store.placed[:rows] = self._links.degree[:rows] > 0

    def _adopt_coordinates(self, choice: Any, coordinates: Coordinates, moved: RowArray = NO_ROWS) -> AnchorSummary:
        self.rule.set_coordinates(choice, coordinates)
        return AnchorSummary(self.rule.state() if self.index == 0 else {}, moved)

    # ------------------------------------------------------------------ read snapshots

    def create_read_snapshot(self, snapshot: int) -> None:
        """Copy the state of this shard for readers, under a number."""
        copied = shallow_copy(self)
        copied.graph, copied.rule, copied.snapshots = self.graph.copy(), self.rule.copy(), {}
        copied.correction = None
        copied.store, copied.aging = self.store.copy(copied.graph), deepcopy(self.aging)
        if self.attributes is not None:
            copied.attributes = AttributeTable(copied.graph, self.attributes.columns)
            copied.attributes.restore(self.attributes.state())
        self.snapshots[snapshot] = copied

    def query_read_snapshot(self, *columns: Any, snapshot: int, read_method: str, constants: dict[str, Any]) -> Any:
        """Call a read method on a snapshot; return `SNAPSHOT_GONE` if the snapshot does not exist."""
        copied = self.snapshots.get(snapshot)
        return SNAPSHOT_GONE if copied is None else getattr(copied, read_method)(*columns, **constants)

    def drop_read_snapshot(self, snapshot: int) -> None:
        """Drop a snapshot."""
        self.snapshots.pop(snapshot, None)

    # ------------------------------------------------------------------ state, coordinates and vectors

    def set_coordinates(self, state: dict[str, NDArray[Any]]) -> None:
        """Set the coordinates of the rule to those of its saved state."""
        self.rule.restore(state)

    def set_vectors(self, rows: RowArray, vectors: NDArray[Any]) -> None:
        """Set the vectors of rows; those that have edges become placed."""
        self.store.vectors[rows] = vectors
        self.store.placed[rows] = self._links.degree[rows] > 0

    def write_rows(self, rows: RowArray, values: NDArray[Any], *, attribute: str) -> None:
        """Set one attribute of rows; see `read_rows`."""
        self._column(attribute)[rows] = values

    def traffic(self) -> dict[str, int]:
        """Return the bytes sent to other shards so far, and how many of them were vectors that had to be read."""
        return {"sent": self.mesh.sent, "needed": self.needed}


def _solve_from_scratch(coordinates: Coordinates, graph: Any, rows: int, threads: int) -> list[Basis]:
    active, needed = graph.totals().active, 2 * coordinates.dim + MAX_DENSE_SIZE
    if active <= needed:
        raise TooSmallError(
            f"Graph too small to solve from scratch on shards: expected more than {needed:,} vertices with edges, "
            f"got {active:,}."
        )
    return bases_from_scratch(coordinates, graph, rows, threads)
