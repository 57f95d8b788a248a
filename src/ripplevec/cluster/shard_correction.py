"""A gradual correction on shards: each shard computes slices of its own rows, and all of them run every stage together.

The stages are those of `rules/gradual_correction.py`. For slices that read neighbors on other shards, the rows of these
are exchanged once per call. At the end of a stage, the shards add up their sums, so all of them continue with the same
numbers. The result is the same for the same batches and the same number of shards, however often the model is saved and
loaded. Two things differ from one machine:

- Every shard computes its rows in its own order, so a row may be computed some batches earlier or later than on one
  machine, from the graph as it is then.
- The rows that a correction has moved are reported all at once, with the batch that completes it.

The driver decides when a correction begins and continues (`RemoteCorrection`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ripplevec.cluster.halo import Halo, collect_slots
from ripplevec.cluster.mesh import Mesh
from ripplevec.graph.adjacency import RowArray
from ripplevec.rules._correction_kernels import SLICE_ROWS
from ripplevec.rules.correction_pace import CorrectionPace, cost_per_row
from ripplevec.rules.correction_workspace import Workspace
from ripplevec.rules.gradual_correction import GradualCorrection, Version, sample_slices
from ripplevec.rules.vector_store import VectorStore
from ripplevec.util.parallel import limit_blas_to_one_thread

if TYPE_CHECKING:
    from ripplevec.cluster.engine import ClusterEngine

MIN_SHARD_CREDIT = 4_096
"""Credit per shard that is spent at once: a call for fewer rows would cost more than the rows."""

_UNLIMITED_CREDIT = 1e15  # more than any stage costs
_NO_ROWS = np.empty(0, np.int64)
_PACE_NUMBERS = ("pace", "credit", "paid_growth", "solve_cost")


class ShardCorrection(GradualCorrection):
    """The part of a correction that one shard computes.

    Attributes
    ----------
    mesh
        The connections to the other shards.
    first_new
        Arrival number of the first vertex that arrived after the correction had begun.
    planned_rows
        Rows of a shard, about, when it began.
    """

    most_column_parts: ClassVar[int] = 1  # each part would take exchanges of its own

    mesh: Mesh
    first_new: int
    planned_rows: int

    # ------------------------------------------------------------------ stages

    def publish(self, store: VectorStore, threshold: float, threads: int) -> RowArray:
        """Replace all rows, on every shard, and return those that moved."""
        super().publish(store, threshold, threads)
        self._process_rows(store, _UNLIMITED_CREDIT, threshold, threads)
        return super().publish(store, threshold, threads)

    def _process_rows(self, store: VectorStore, credit: float, threshold: float, threads: int) -> float:
        """Process as many slices as the credit allows, on every shard; return their mean cost."""
        cost = cost_per_row(self.stage_name, self.planned_rows)  # the same on all shards
        left = store.graph.row_count - self.cursor
        count = max(1, ceil(min(credit, _UNLIMITED_CREDIT) / (cost * SLICE_ROWS))) * SLICE_ROWS
        last = self.cursor + min(left, count)
        with self._remote_rows(store, self._list_readers(store, last), left) as all_left:
            if last > self.cursor:
                self._process_range(store, last, threshold, threads)
        if max(all_left) <= count:
            self._add_sums_of_shards()
            self._finish_pass()
        return float(np.minimum(all_left, count).mean()) * cost

    def _list_readers(self, store: VectorStore, last: int) -> RowArray:
        """Return the rows from the cursor to `last` that read their neighbors in the current stage."""
        if self.stage_name == "filter":
            return np.arange(self.cursor, last)
        if self.stage_name not in ("probe", "project"):
            return _NO_ROWS
        first_rows = np.array(sample_slices(store, self.cursor, last, self.stage_name), np.int64)
        rows: RowArray = (first_rows[:, None] + np.arange(SLICE_ROWS)).reshape(-1)
        return rows[rows < last]

    def _add_sums_of_shards(self) -> None:
        gathered = self.mesh.gather(self.sums)
        with np.errstate(over="ignore", invalid="ignore"):  # checked at the end of a pass
            self.sums = [np.sum(parts, axis=0) for parts in zip(*gathered, strict=True)]
        if self.stage_name == "transform":
            self.sums[1] = np.max([sums[1] for sums in gathered], axis=0)  # lengths of the longest rows

    @contextmanager
    def _remote_rows(self, store: VectorStore, rows: RowArray, left: int) -> Iterator[Sequence[int]]:
        """Let slots of rows point to copies of remote neighbors inside the `with` block.

        Yields `left` of all shards, which needs no exchange of its own this way.
        """
        slots, _ = collect_slots(store.graph.adjacency, rows, remote_only=True)
        halo = Halo(store, slots, self.mesh.size, store.graph.row_count)
        self.workspace.grow(store.graph.adjacency.capacity)
        requested, all_left = halo.request(self.mesh, left)
        if self.stage_name in ("filter", "probe", "project", "catch_up"):
            read = self.workspace.rows if self.stage_name == "catch_up" else self._filtered_block
            halo.fill(self.mesh, requested, store.as_kernel_array(read.array))
        with halo.mapped():
            yield all_left[:, 0].tolist()

    # ------------------------------------------------------------------ batches in the meantime

    def _wait_for_solution(self, store: VectorStore, credit: float) -> float:
        aligned = self.stage_name == "align"
        credit = super()._wait_for_solution(store, credit)
        if aligned and self.stage_name == "catch_up":
            queued = self.workspace.queued
            self._convert_rows(store, queued[store.graph.arrival[queued] >= self.first_new])
        return credit

    def _admit(self, store: VectorStore, new: RowArray) -> None:
        """Convert the rows of new vertices, once the new coordinates are known."""
        if self.stage_name == "catch_up":
            self._convert_rows(store, new)

    def _convert_rows(self, store: VectorStore, rows: RowArray) -> None:
        """Rotate rows from the old coordinates to the new ones; later, they are refreshed.

        A vertex that arrived meanwhile has no row in the blocks. If its neighbors arrived meanwhile too, on other
        shards, they are refreshed at the same time, so a refresh alone would read empty rows.
        """
        with limit_blas_to_one_thread():  # the same bits on machines with any number of cores
            self.workspace.rows.array[rows] = store.vectors[rows].astype(np.float32) @ self._old_to_new_axes()

    def _refresh_queued(self, store: VectorStore, count: int) -> float:
        """Refresh up to this many queued rows on every shard; return their mean number."""
        left = self.workspace.queued.size
        rows = self.workspace.take(count)
        with self._remote_rows(store, rows, left) as all_left:
            self._refresh_rows(store, rows)
        self.ready = max(all_left) <= count
        return float(np.minimum(all_left, count).mean())

    # ------------------------------------------------------------------ saved state

    def state(self, store: VectorStore) -> dict[str, NDArray[Any]]:
        """Return a copy of the correction as arrays, for saving."""
        numbers = {name: np.array(getattr(self, name)) for name in ("first_new", "planned_rows")}
        return {**super().state(store), **numbers}

    @classmethod
    def from_state(
        cls, state: dict[str, NDArray[Any]], before: Version, after: Version, workspace: Workspace, store: VectorStore
    ) -> Self:
        """Restore a correction from the arrays of `state`."""
        correction = super().from_state(state, before, after, workspace, store)
        correction.first_new, correction.planned_rows = int(state["first_new"]), int(state["planned_rows"])
        return correction


class RemoteCorrection(CorrectionPace):
    """A correction on shards, as the driver sees it: its pace, and whether it is complete."""

    def __init__(self, engine: ClusterEngine, degree: int) -> None:
        super().__init__(degree, engine.dim)
        self._engine = engine
        self.min_credit = float(engine.transport.size * MIN_SHARD_CREDIT)
        self.finished = self.can_publish = False
        self.coordinates: dict[str, NDArray[Any]] = {}  # saved form of the new ones, once it is finished

    def plan(self, rows: int, spread: float, since_growth: float) -> None:
        """Spread the cost over this growth of the graph, and begin on all shards."""
        engine, shards = self._engine, self._engine.transport.size
        rows_per_shard = -(-rows // shards)
        super().plan(rows_per_shard, spread, since_growth)
        self.pace *= shards
        sequence, first_new = engine.sequence, engine.next_arrival
        engine.query("begin_correction", sequence=sequence, first_new=first_new, rows=rows_per_shard, spread=spread)

    def abandon(self) -> None:
        """Stop the correction on all shards."""
        self._engine.query("abandon_correction")

    def progress(self) -> NDArray[np.float64]:
        """Return numbers that differ between two corrections that have not computed the same."""
        return np.concatenate([[self.credit, self.paid_growth], *self._engine.query("report_progress")])

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the pace as arrays, for saving."""
        return {name: np.array(getattr(self, name)) for name in _PACE_NUMBERS}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays of `state`."""
        for name in _PACE_NUMBERS:
            setattr(self, name, float(state[name]))
