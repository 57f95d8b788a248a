"""The state of a model that lies on several shards, and how it changes: the same as on one machine, in the same bits.

The driver knows how many vertices and edges there are, the coordinates, and who is asked what. Rows are codes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch, Id, IdColumn, Op, id_column, ids_to_list, take_ids
from ripplevec.changes import BatchOutcome
from ripplevec.cluster import anchor
from ripplevec.cluster.batch_protocol import BatchProtocol
from ripplevec.cluster.checkpoint import ClusterSnapshot, counters_of, gather_state, split_state
from ripplevec.cluster.driver_reads import DriverReads
from ripplevec.cluster.gather import gather_graph
from ripplevec.cluster.read_snapshot import ReadSnapshot
from ripplevec.cluster.routing import EdgeEndpoints, intern_endpoints, send_operations, waves
from ripplevec.cluster.transport import Transport
from ripplevec.engine.saved_state import check_shards
from ripplevec.errors import SelfLoopWarning
from ripplevec.graph.batch_validation import check_batch
from ripplevec.graph.graph import strip_prefix, unit_weights
from ripplevec.graph.batch_validation import bound_growth
from ripplevec.parameters import Parameters
from ripplevec.rules.anchor import CorrectionError
from ripplevec.rules.ripple import RippleRule
from ripplevec.rules.vector_store import VectorStore
from ripplevec.views.base import Progress
from ripplevec.views.solvers import DENSE

Rows = NDArray[np.int64]
Result = TypeVar("Result")
_NO_ROWS: Rows = np.empty(0, np.int64)
MAX_DRIVER_START_EDGES = 4_000_000  # edges: larger graphs get their start where they are


class ClusterEngine(DriverReads):
    """A model on shards: `Engine` for whoever asks by its methods."""

    def __init__(self, transport: Transport, parameters: Parameters) -> None:
        self.transport, self.parameters = transport, parameters
        self.anchor_growth, self.start_size = parameters.resolved_anchor_growth, parameters.resolved_start_size
        self.anchor_lag = 0
        self.update_incomplete = False  # a change that fails is undone by whoever outlives shards
        self._warned = False
        self.rule = cast(RippleRule, self.parameters.create_rule())  # for its coordinates: the rows are elsewhere
        self.next_arrival = self.loops = self._vertices = self._edges = 0
        self.reset_counters()

    # ------------------------------------------------------------------ what goes in

    def start(self, batch: Batch, progress: Progress | None = None) -> None:
        """Take in a batch as the initial graph and embed it from nothing."""
        check_batch(self.graph_lookup, batch)
        self.run_atomically(partial(ClusterEngine._take_in, batch=batch, progress=progress))

    def _take_in(self, batch: Batch, progress: Progress | None) -> None:
        self._move(batch, self.next_arrival)
        self.events = len(batch)
        if self.edges:
            self._start(progress)
        self._note_size()

    def apply(self, batch: Batch) -> BatchOutcome:
        """Apply a batch: all of it, or, where it is refused, nothing of it."""
        check_batch(self.graph_lookup, batch)
        return self.run_atomically(partial(ClusterEngine._apply, batch=batch))

    def prepare(self, batch: Batch) -> None:
        """Nothing is worked out before a batch: anchors are not worked out in the background here."""

    def step(self, batch: Batch, prepared: None = None) -> BatchOutcome:
        """Apply a batch. Nobody may read meanwhile."""
        return self.apply(batch)

    def start_pending_anchor(self) -> None:
        """Nothing is begun after a batch."""

    def may_trigger_anchor(self, batch: Batch) -> bool:
        """Whether a batch may make an anchor due."""
        if 2 * len(batch) < self.growth_slack and batch.op is None:
            return False
        ignoring = self.parameters.duplicates == "ignore"
        return self.may_exceed_growth(
            *bound_growth(batch, self.find_rows, self.degrees, self.has_edges if ignoring else None)
        )

    def fork_for_update(self) -> tuple[ReadSnapshot, ClusterEngine]:
        """What readers are to see during a change that takes long, and what is to be changed."""
        return ReadSnapshot(self), self

    def _apply(self, batch: Batch) -> BatchOutcome:
        first_new, anchors = self.next_arrival, self.anchors
        moved, removed, edges = self._move(batch, first_new)
        due = self._count(len(batch), edges, moved.size + len(removed), self.rule.rows_shortened)
        corrected = self._anchor() if due else None
        if corrected is not None:
            moved = np.union1d(moved, corrected)
        if not self.edges:
            self.rule.reset(cast(Any, None))
            self._broadcast_coordinates()
        return BatchOutcome(moved, first_new, removed, self.anchors > anchors)

    def apply_arrival(self, names: IdColumn, weights: NDArray[np.float64] | None) -> int:
        """There is no short way for one arrival: it has to be applied as a batch."""
        return -1

    def anchor(self) -> Rows:
        """Correct all vectors now (or give a model that began empty its start); the rows that moved."""
        return self.run_atomically(ClusterEngine._anchor)

    def run_atomically(self, work: Callable[[ClusterEngine], Result]) -> Result:
        """Do what changes the state: all of it, or nothing."""
        return work(self)

    def _anchor(self) -> Rows:
        try:
            moved = self._corrected()
        except CorrectionError as error:
            moved = self._refuse(error)
        else:
            self._note_anchor()
        self._note_size()
        return moved

    def _corrected(self) -> Rows:
        if self.ready:
            threshold, shards = self.parameters.change_threshold, self.transport.size
            try:
                parts = anchor.anchor(self.transport, self.rule, self.sequence, threshold)
            except anchor.TooSmallError:
                return self._corrected_here(threshold)
            self._broadcast_coordinates()
            return np.concatenate([rows * shards + shard for shard, rows in enumerate(parts)])
        self._start()
        rows = self.rows_by_arrival()
        return rows[self.placed(rows)]

    def _corrected_here(self, threshold: float) -> Rows:
        """Correct a small graph, brought here, as one machine does; the rows that moved."""
        graph, rows = gather_graph(self)
        store = VectorStore(graph, self.parameters.dim, self.rule.precision)
        store.grow()
        store.vectors[: rows.size] = self.read_rows(rows, "vectors")
        moved = self.rule.anchor(store, self.sequence, threshold)
        self._broadcast_coordinates()
        self._send_rows("set_vectors", rows, store.vectors[: rows.size])
        return rows[moved]

    def _move(self, batch: Batch, first_new: int) -> tuple[Rows, list[Id], int]:
        """Change the graph, then let the vectors follow: rows that may have moved, vertices gone, edges changed."""
        ends, gone = self._enter(batch)
        first = int(ends.arrived_as[0]) if ends.arrived.size else self.next_arrival  # who is new and has not gone again
        removed, numbers = self._still_gone(gone), np.array([number for _, number in gone], np.int64)
        self.rule.rows_shortened = 0
        if not self.ready:
            self._edges, changed, _ = map(sum, zip(*self.query("finish_graph_update", first_new=first), strict=True))
            return ends.arrived, removed, changed
        new, count = ends.arrived_as - first_new, self.next_arrival - first_new
        wave, turn = waves(ends, first_new, count, self.transport.size)
        steps = BatchProtocol(self.transport, self.rule, self.sequence + 1)
        taken = steps.take(ends.arrived, (wave[new], turn[new]), first, numbers)
        self._edges, shards, self.rule.rows_shortened = taken.edges, self.transport.size, taken.shortened
        moved = np.concatenate([rows * shards + shard for shard, rows in enumerate(taken.moved)])
        return moved, removed, taken.changed

    def _enter(self, batch: Batch) -> tuple[EdgeEndpoints, list[tuple[Id, int]]]:
        """Change the graph step by step; all ends, with the newcomers that have not gone again, and who has gone."""
        weight = unit_weights(len(batch)) if batch.weight is None else batch.weight.astype(np.float32)
        op = np.zeros(len(batch), np.int8) if batch.op is None else batch.op
        steps, gone, first = [], [], 0
        for cut in [*np.flatnonzero(op == Op.REMOVE_VERTEX).tolist(), len(batch)]:
            part = slice(first, cut)
            if cut > first:
                columns = take_ids(batch.src, part), take_ids(batch.dst, part), op[part]
                steps.append(intern_endpoints(self.transport, *columns, self.next_arrival))
                send_operations(self.transport, steps[-1], weight[part])
                self._take_note(steps[-1])
            if cut < len(batch):
                gone.append(self._remove(take_ids(batch.src, slice(cut, cut + 1))))
            first = cut + 1
        ends = EdgeEndpoints(*map(np.concatenate, zip(_NO_ENDS, *steps, strict=True)))
        kept = ~np.isin(ends.arrived_as, [number for _, number in gone])
        return ends._replace(arrived=ends.arrived[kept], arrived_as=ends.arrived_as[kept]), gone

    def _take_note(self, ends: EdgeEndpoints) -> None:
        self.next_arrival += ends.arrived.size
        self._vertices += ends.arrived.size
        self.loops += int(np.count_nonzero((ends.codes[:, 0] == ends.codes[:, 1]) & (ends.op == Op.ADD)))

    def _remove(self, name: IdColumn) -> tuple[Id, int]:
        """Take a vertex out with all its edges; its name and the number it had."""
        row, shards = self.find_rows(name), self.transport.size
        number = int(self.arrival_numbers(row)[0])
        around = self.transport.call("remove_vertex", self._row_on_owner(int(row[0])), parts=shards)
        self.transport.call("remove_neighbor", *around, code=int(row[0]), number=number)
        self._vertices -= 1
        return ids_to_list(name)[0], number

    def _still_gone(self, gone: list[tuple[Id, int]]) -> list[Id]:
        """The names of those who have gone and not come again."""
        names = [name for name, _ in gone]
        rows = self.find_rows(id_column(names)).tolist() if names else []
        return [name for name, row in zip(names, rows, strict=True) if row < 0]

    def warn_self_loops(self) -> None:
        """Warn of self-loops, once, when all is done: a warning may be made an error."""
        if self.loops and not self._warned:
            self._warned = True
            warnings.warn("self-loops are left out (said once)", SelfLoopWarning, stacklevel=3)

    # ------------------------------------------------------------------ the start

    def _start(self, progress: Progress | None = None) -> None:
        """Embed the graph from nothing: a small one is brought here, so that it gets the start of one machine."""
        if self.edges > MAX_DRIVER_START_EDGES and self.count_connected() > 2 * self.rule.dim + DENSE:
            anchor.start(self.transport, self.rule, progress)
            self._broadcast_coordinates()
            return
        graph, rows = gather_graph(self)
        store = VectorStore(graph, self.parameters.dim, self.rule.precision)
        self.rule.start(store, progress)
        self._broadcast_coordinates()
        self._send_rows("set_vectors", rows, store.vectors[: rows.size])

    def _broadcast_coordinates(self) -> None:
        """Have all shards know the coordinates."""
        self.transport.call("set_coordinates", learned=self.rule.state())

    # ------------------------------------------------------------------ keeping it

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything as plain arrays, fetched from one shard after the other."""
        return gather_state(self)

    def copy(self) -> ClusterSnapshot:
        """The state as it is now, for whoever saves it while this goes on."""
        return ClusterSnapshot(self)

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave, on as many shards as there were."""
        shards = split_state(state, self.transport.size)
        check_shards(shards, state, directed=self.parameters.directed, rule=self.rule)
        self.query("restore", shards)
        self.rule.restore(strip_prefix("rule_", state))
        self._broadcast_coordinates()
        self.next_arrival, self.loops = int(state["next_arrival"]), 0
        for name, value in counters_of(state).items():
            setattr(self, name, value)
        sizes = self.sizes()
        self._vertices, self._edges = sizes["vertices"], sizes["edges"]


_NO_ENDS = EdgeEndpoints(
    np.empty(0, np.int8), np.empty((0, 2), np.int64), np.empty((0, 2), np.int64), _NO_ROWS, _NO_ROWS
)
