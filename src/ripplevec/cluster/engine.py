"""Engine of a model on several shards, with the methods of the single-machine `Engine`.

Results equal those of `Engine`: bit for bit without anchors, up to rounding with anchors that run on shards.

The driver knows the number of vertices and edges, the coordinates and the counters; it stores no rows. All rows are row
codes (see `routing.py`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch, Id, IdColumn, Op, id_column, ids_to_list, take_ids
from ripplevec.changes import BatchOutcome
from ripplevec.cluster import anchor
from ripplevec.cluster.batch_protocol import BatchProtocol
from ripplevec.cluster.checkpoint import ClusterSnapshot, gather_state, read_counters, split_state
from ripplevec.cluster.driver_reads import DriverReads
from ripplevec.cluster.gather import gather_graph
from ripplevec.cluster.read_snapshot import ReadSnapshot
from ripplevec.cluster.routing import EdgeEndpoints, intern_endpoints, schedule_waves, send_operations
from ripplevec.cluster.shard_graph import NO_PAIRS, NO_ROWS
from ripplevec.cluster.transport import Transport
from ripplevec.engine.state_validation import check_shards
from ripplevec.errors import SelfLoopWarning
from ripplevec.graph.adjacency import RowArray
from ripplevec.graph.batch_validation import bound_growth
from ripplevec.graph.graph import strip_prefix, unit_weights
from ripplevec.parameters import Parameters
from ripplevec.rules.anchor import CorrectionError
from ripplevec.rules.ripple import RippleRule
from ripplevec.rules.vector_store import VectorStore
from ripplevec.views.base import Progress
from ripplevec.views.solvers import MAX_DENSE_SIZE

Result = TypeVar("Result")
MAX_DRIVER_START_EDGES = 4_000_000
"""Largest graph whose start is computed on the driver; larger graphs are solved on the shards."""

_NO_ENDPOINTS = EdgeEndpoints(np.empty(0, np.int8), NO_PAIRS, NO_PAIRS, NO_ROWS, NO_ROWS)


class RemovedVertex(NamedTuple):
    """A vertex that a batch removed; a vertex of the same id may arrive again later in the batch."""

    id: Id
    number: int  # arrival number


class ClusterEngine(DriverReads):
    """The engine of a model on shards.

    Parameters
    ----------
    transport
        The shards.
    parameters
        Parameters of the model.
    """

    def __init__(self, transport: Transport, parameters: Parameters) -> None:
        self.transport, self.parameters = transport, parameters
        self.anchor_growth, self.start_size = parameters.resolved_anchor_growth, parameters.resolved_start_size
        self.anchor_lag = 0
        self.update_incomplete = False  # always: `FaultTolerantEngine` undoes an update that fails
        self._warned = False
        self.rule = cast(RippleRule, self.parameters.create_rule())  # used for its coordinates; the shards store rows
        self.next_arrival = self.loops = self._vertices = self._edges = 0
        self.reset_counters()

    # ------------------------------------------------------------------ updates

    def start(self, batch: Batch, progress: Progress | None = None) -> None:
        """Apply a batch as the initial graph and embed it from scratch."""
        self.run_atomically(partial(ClusterEngine._apply_start, batch=batch, progress=progress))

    def _apply_start(self, batch: Batch, progress: Progress | None) -> None:
        self._update(batch, self.next_arrival)
        self.events = len(batch)
        if self.edges:
            self._compute_start(progress)
        self._record_size()

    def apply(self, batch: Batch) -> BatchOutcome:
        """Apply a batch that `check_batch` accepts."""
        return self.run_atomically(partial(ClusterEngine._apply, batch=batch))

    def prepare_correction(self, batch: Batch) -> None:
        """Do nothing: anchors are not computed in the background here."""

    def apply_prepared(self, batch: Batch, prepared: None = None) -> BatchOutcome:
        """Apply a batch. Readers must be excluded."""
        return self.apply(batch)

    def start_pending_anchor(self) -> None:
        """Do nothing: anchors are not computed in the background here."""

    def may_trigger_anchor(self, batch: Batch) -> bool:
        """Return whether a batch may make an anchor due."""
        if 2 * len(batch) < self.growth_slack and batch.op is None:
            return False
        has_edges = self.has_edges if self.parameters.duplicates == "ignore" else None
        return self.may_exceed_growth(*bound_growth(batch, self.find_rows, self.degrees, has_edges))

    def fork_for_update(self) -> tuple[ReadSnapshot, ClusterEngine]:
        """Return a snapshot for readers during a long update, and the engine to update."""
        return ReadSnapshot(self), self

    def apply_arrival(self, ids: IdColumn, weights: NDArray[np.float64] | None) -> int:
        """Return −1: there is no fast path for a single arrival, which must be applied as a batch."""
        return -1

    def run_atomically(self, update: Callable[[ClusterEngine], Result]) -> Result:
        """Apply an update of the state; a subclass may undo it if it fails."""
        return update(self)

    def _apply(self, batch: Batch) -> BatchOutcome:
        first_new, anchors_before = self.next_arrival, self.anchors
        moved, removed, edges = self._update(batch, first_new)
        due = self._record_batch(len(batch), edges, moved.size + len(removed), self.rule.rows_shortened)
        corrected = self._anchor() if due else None
        if corrected is not None:
            moved = np.union1d(moved, corrected)
        if not self.edges:
            self.rule.reset(cast(Any, None))
            self._broadcast_coordinates()
        return BatchOutcome(moved, first_new, removed, self.anchors > anchors_before)

    def _update(self, batch: Batch, first_new: int) -> tuple[RowArray, list[Id], int]:
        """Update the graph, then the vectors; return rows that may have moved, removed ids, and changed edges."""
        endpoints, removed = self._update_graph(batch)
        # Arrival number of the first new vertex that was not removed again.
        first_kept = int(endpoints.new_numbers[0]) if endpoints.new_codes.size else self.next_arrival
        removed_ids, removed_numbers = self._find_absent(removed), np.array([v.number for v in removed], np.int64)
        self.rule.rows_shortened = 0
        if not self.ready:
            self._edges, changed, _ = map(
                sum, zip(*self.query("finish_graph_update", first_new=first_kept), strict=True)
            )
            return endpoints.new_codes, removed_ids, changed
        new, count, shards = endpoints.new_numbers - first_new, self.next_arrival - first_new, self.transport.size
        wave, step = schedule_waves(endpoints, first_new, count, shards)
        protocol = BatchProtocol(self.transport, self.rule, self.sequence + 1)
        result = protocol.run(endpoints.new_codes, (wave[new], step[new]), first_kept, removed_numbers)
        self._edges, self.rule.rows_shortened = result.edges, result.shortened
        moved = np.concatenate([rows * shards + shard for shard, rows in enumerate(result.moved)])
        return moved, removed_ids, result.changed

    def _update_graph(self, batch: Batch) -> tuple[EdgeEndpoints, list[RemovedVertex]]:
        """Update the graph; return all endpoints, with the new vertices that remain, and the removed vertices.

        The batch is split at vertex removals, because these change the rows that later operations refer to.
        """
        weight = unit_weights(len(batch)) if batch.weight is None else batch.weight.astype(np.float32)
        op = np.zeros(len(batch), np.int8) if batch.op is None else batch.op
        steps: list[EdgeEndpoints] = []
        removed: list[RemovedVertex] = []
        first = 0
        for cut in [*np.flatnonzero(op == Op.REMOVE_VERTEX).tolist(), len(batch)]:
            part = slice(first, cut)
            if cut > first:
                columns = take_ids(batch.src, part), take_ids(batch.dst, part), op[part]
                steps.append(intern_endpoints(self.transport, *columns, self.next_arrival))
                send_operations(self.transport, steps[-1], weight[part])
                self._count_operations(steps[-1])
            if cut < len(batch):
                removed.append(self._remove_vertex(take_ids(batch.src, slice(cut, cut + 1))))
            first = cut + 1
        endpoints = EdgeEndpoints(*map(np.concatenate, zip(_NO_ENDPOINTS, *steps, strict=True)))
        remaining = ~np.isin(endpoints.new_numbers, [vertex.number for vertex in removed])
        new_codes, new_numbers = endpoints.new_codes[remaining], endpoints.new_numbers[remaining]
        return endpoints._replace(new_codes=new_codes, new_numbers=new_numbers), removed

    def _count_operations(self, endpoints: EdgeEndpoints) -> None:
        """Count the new vertices and self-loops of a step."""
        self.next_arrival += endpoints.new_codes.size
        self._vertices += endpoints.new_codes.size
        loops = (endpoints.codes[:, 0] == endpoints.codes[:, 1]) & (endpoints.op == Op.ADD)
        self.loops += int(np.count_nonzero(loops))

    def _remove_vertex(self, column: IdColumn) -> RemovedVertex:
        """Remove a vertex, given as an id column of length one, with all its edges."""
        row = self.find_rows(column)
        code, number = int(row[0]), int(self.arrival_numbers(row)[0])
        neighbors = self.transport.call("remove_vertex", self._row_on_owner(code), parts=self.transport.size)
        self.transport.call("remove_neighbor", *neighbors, code=code, number=number)
        self._vertices -= 1
        return RemovedVertex(ids_to_list(column)[0], number)

    def _find_absent(self, removed: list[RemovedVertex]) -> list[Id]:
        """Return the ids of removed vertices that did not arrive again."""
        ids = [vertex.id for vertex in removed]
        rows = self.find_rows(id_column(ids)).tolist() if ids else []
        return [vertex for vertex, row in zip(ids, rows, strict=True) if row < 0]

    def warn_self_loops(self) -> None:
        """Warn about self-loops, once, after an update is complete: a warning filter may raise an error."""
        if self.loops and not self._warned:
            self._warned = True
            warnings.warn("Self-loops are ignored (further warnings suppressed).", SelfLoopWarning, stacklevel=3)

    # ------------------------------------------------------------------ starts and anchors

    def anchor(self) -> RowArray:
        """Correct all vectors now, or compute the start of a model that began empty; return the rows that moved."""
        return self.run_atomically(ClusterEngine._anchor)

    def _anchor(self) -> RowArray:
        try:
            moved = self._correct()
        except CorrectionError as error:
            moved = self._record_refused_anchor(error)
        else:
            self._record_anchor()
        self._record_size()
        return moved

    def _correct(self) -> RowArray:
        if not self.ready:
            self._compute_start()
            rows = self.rows_by_arrival()
            return rows[self.placed(rows)]
        threshold, shards = self.parameters.change_threshold, self.transport.size
        try:
            moved = anchor.anchor(self.transport, self.rule, self.sequence, threshold)
        except anchor.TooSmallError:
            return self._correct_on_driver(threshold)
        self._broadcast_coordinates()
        return np.concatenate([rows * shards + shard for shard, rows in enumerate(moved)])

    def _correct_on_driver(self, threshold: float) -> RowArray:
        """Gather a small graph on the driver and correct it as one machine does; return the rows that moved."""
        graph, rows = gather_graph(self)
        store = VectorStore(graph, self.parameters.dim, self.rule.precision)
        store.grow()
        store.vectors[: rows.size] = self.read_rows(rows, "vectors")
        moved = self.rule.anchor(store, self.sequence, threshold)
        self._broadcast_coordinates()
        self._send_rows("set_vectors", rows, store.vectors[: rows.size])
        return rows[moved]

    def _compute_start(self, progress: Progress | None = None) -> None:
        """Embed the graph from scratch; a small graph is gathered on the driver, for the same bits as one machine."""
        if self.edges > MAX_DRIVER_START_EDGES and self.count_connected() > 2 * self.rule.dim + MAX_DENSE_SIZE:
            anchor.start(self.transport, self.rule, progress)
            self._broadcast_coordinates()
            return
        graph, rows = gather_graph(self)
        store = VectorStore(graph, self.parameters.dim, self.rule.precision)
        self.rule.start(store, progress)
        self._broadcast_coordinates()
        self._send_rows("set_vectors", rows, store.vectors[: rows.size])

    def _broadcast_coordinates(self) -> None:
        """Send the coordinates to all shards."""
        self.transport.call("set_coordinates", learned=self.rule.state())

    # ------------------------------------------------------------------ saved state

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays, fetched one shard after the other."""
        return gather_state(self)

    def snapshot(self) -> ClusterSnapshot:
        """Return the current state, which can be saved while the engine continues."""
        return ClusterSnapshot(self)

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Replace the state by one that `state` returned for the same number of shards."""
        shards = split_state(state, self.transport.size)
        check_shards(shards, state, directed=self.parameters.directed, rule=self.rule)
        self.query("restore", shards)
        self.rule.restore(strip_prefix("rule_", state))
        self._broadcast_coordinates()
        self.next_arrival, self.loops = int(state["next_arrival"]), 0
        for name, value in read_counters(state).items():
            setattr(self, name, value)
        sizes = self.sizes()
        self._vertices, self._edges = sizes["vertices"], sizes["edges"]
