"""The state of a model and how it changes: by a batch, or by an anchor. A pure function of what came in."""

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
from ripplevec.engine.counters import COUNTERS, EngineCounters
from ripplevec.engine.digest import LocalDigestSource, StateSnapshot, digest
from ripplevec.engine.reads import EngineReads, Rows
from ripplevec.engine.saved_state import check_state
from ripplevec.graph.adjacency import DUPLICATE_POLICIES
from ripplevec.graph.batch_validation import check_batch
from ripplevec.graph.graph import Graph, GraphDelta, merge_deltas, strip_prefix
from ripplevec.graph.batch_validation import bound_growth
from ripplevec.rules.anchor import CorrectionError, PreparedCorrection
from ripplevec.rules.background_anchor import BackgroundAnchor
from ripplevec.rules.base import Rule
from ripplevec.rules.ripple import RippleRule
from ripplevec.rules.vector_store import VectorStore
from ripplevec.temporal.edge_aging import EdgeAging, select_digest_arrays
from ripplevec.views.base import Progress

LATEST = 2.0  # an anchor on its way is taken over at the latest when the graph has grown by this many times the growth


class Engine(EngineReads, EngineCounters):
    """Graph, vectors, rule and sequence number."""

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
        self.update_incomplete = False  # whether a change has been begun and is not complete: what there is must not be used
        self.anchor_growth, self.start_size, self.change_threshold = anchor_growth, start_size, change_threshold
        self.anchor_lag = anchor_lag  # events until an anchor that is due is taken over, as a share of the graph
        self.pending: BackgroundAnchor | None = None
        if aging is not None:
            aging.attach(graph)
        self.reset_counters()

    def start(self, batch: Batch, progress: Progress | None = None) -> None:
        """Take in a batch as the initial graph and embed it from nothing."""
        self.store.reserve(2 * len(batch))
        for delta in self._steps(batch):
            self.store.apply_delta(delta)
        self.events = self._events(batch)
        if self.graph.adjacency.edge_count:
            self.rule.start(self.store, progress)
        self._note_size()

    def apply(self, batch: Batch) -> BatchOutcome:
        """Apply a batch: all of it, or, where it is refused, nothing of it. Nobody may read meanwhile."""
        outcome = self.apply_prepared(batch, self.prepare(batch))
        self.start_pending_anchor()
        return outcome

    def prepare(self, batch: Batch) -> PreparedCorrection | CorrectionError | None:
        """Work out, if a batch is to take over an anchor, what all vectors will be before it. Readers may go on.

        The error, where the anchor came to nothing.
        """
        pending = self.pending
        if pending is None or not self._takes_over(pending):
            return None
        check_batch(self.graph, batch)
        self.update_incomplete = True  # the correction is used up: there is no second time
        try:
            prepared = pending.prepare(cast(RippleRule, self.rule), self.store, self.change_threshold)
        except CorrectionError as error:
            return error
        self.store.reserve(2 * len(batch), prepared.rows)
        return prepared

    def apply_prepared(self, batch: Batch, prepared: PreparedCorrection | CorrectionError | None = None) -> BatchOutcome:
        """Apply a batch in the coordinates prepared for it. Nobody may read meanwhile; then `start_pending_anchor` is to come."""
        first_new, steps = self.graph.next_arrival, self._steps(batch)
        self.store.reserve(2 * len(batch))
        self.update_incomplete = True
        anchors = self.anchors
        if prepared is not None:
            self.pending = None
        if isinstance(prepared, CorrectionError):
            self._refuse(prepared)
        elif prepared is not None:
            cast(RippleRule, self.rule).adopt(self.store, prepared)
            self._note_anchor()
        moved, removed, edges = self._move(steps, first_new)
        due = self._count(self._events(batch), edges, moved.size + len(removed), self.rule.rows_shortened)
        if self.pending is not None:
            self.pending.note(moved, self.store)
        corrected = self._correct() if due and self.pending is None else None
        for rows in (corrected, prepared.moved if isinstance(prepared, PreparedCorrection) else None):
            moved = moved if rows is None else _either(moved, rows, self.graph)
        if not self.graph.adjacency.edge_count:
            self.rule.reset(self.store)
            self.pending, self.growth_slack = None, 0.0
        self.update_incomplete = self.pending is not None and self.pending.correction is None
        return BatchOutcome(moved, first_new, removed, self.anchors > anchors)

    def start_pending_anchor(self) -> None:
        """Begin the anchor that the last batch made due, in the background. Readers may go on."""
        if self.update_incomplete and self.pending is not None:
            self.pending.begin(cast(RippleRule, self.rule), self.store)
            self.update_incomplete = False

    def apply_arrival(self, names: IdColumn, weights: NDArray[np.float64] | None) -> int:
        """Let the first of `names` arrive with edges to the others, in one kernel call; its row.

        −1, with nothing done, where it has to be applied as a batch. Nobody may read meanwhile.
        """
        if self.aging is not None or self.pending is not None or self.anchor_lag or len(names) >= self.growth_slack:
            return -1
        self.update_incomplete = True
        row, edges, changed = self.rule.apply_arrival(self.store, names, weights, self.sequence + 1)
        if row >= 0 and self._count(len(names) - 1, edges, changed, self.rule.rows_shortened):
            self.anchor()
        self.update_incomplete = False
        return row

    def may_trigger_anchor(self, batch: Batch) -> bool:
        """Whether a batch may make an anchor due that is worked out before the batch is complete."""
        if (self.ready and self._in_background()) or (self.pending is not None and not self._takes_over(self.pending)):
            return False
        if 2 * len(batch) < self.growth_slack and batch.op is None and self.aging is None:
            return False
        adjacency = self.graph.adjacency
        known_edges = adjacency.has_edges if adjacency.duplicate_policy == DUPLICATE_POLICIES["ignore"] else None
        vertices, edges = bound_growth(batch, self.find_rows, self.degrees, known_edges)
        return self.may_exceed_growth(vertices, edges + (0 if self.aging is None else self.aging.count_expiring(batch)))

    def fork_for_update(self) -> tuple[Engine, Engine]:
        """What readers are to see during a change that takes long, and what is to be changed."""
        return self, self.clone()

    def clone(self) -> Engine:
        """An engine in the same state, which shares nothing with this one that either changes."""
        other = copy(self)
        other.graph, other.rule, other.aging = self.graph.copy(), self.rule.copy(), deepcopy(self.aging)
        other.store = self.store.copy(other.graph)
        other.pending = None if self.pending is None else self.pending.copy()
        return other

    def warn_self_loops(self) -> None:
        """Warn of self-loops, once. For the caller, when all is done: a warning may be made an error."""
        self.graph.warn_self_loops()

    def _steps(self, batch: Batch) -> Iterable[GraphDelta]:
        """What a batch does to the graph; where edges grow old, the last step is the removal of those that did."""
        if self.aging is not None:
            return self.aging.apply(self.graph, batch)
        return self.graph.apply(batch, one_by_one=self.rule.one_by_one)

    def _events(self, batch: Batch) -> int:
        """How many events a batch was, once it is applied: an edge that expires is one too."""
        return len(batch) + (0 if self.aging is None else self.aging.expired_count)

    def _note_size(self) -> None:
        super()._note_size()
        self.edges_at_anchor = int(
            min(self.edges_at_anchor, self.graph.adjacency.weight_scale.effective_edges)
        )  # what has faded is no graph to grow

    def _takes_over(self, pending: BackgroundAnchor) -> bool:
        """Whether the next batch takes over an anchor on its way."""
        return self.events >= pending.until or self.growth >= LATEST * self.anchor_growth

    def _in_background(self) -> bool:
        return self.anchor_lag > 0 and isinstance(self.rule, RippleRule)

    def _correct(self) -> Rows | None:
        """Correct all vectors, or note that this is to be begun in the background; the rows that moved, if they did."""
        if not (self.rule.ready and self._in_background()):
            return self.anchor()
        lag = max(1, ceil(self.anchor_lag * (len(self) + self.edges)))  # a working time in proportion to the work
        self.pending = BackgroundAnchor(self.sequence, self.events + lag)
        self._note_size()
        return None

    def anchor(self) -> Rows:
        """Correct all vectors now (or give a model that began empty its start); the rows that moved."""
        self.pending = None  # what it would bring is brought now
        try:
            if self.rule.ready:
                moved = self.rule.anchor(self.store, self.sequence, self.change_threshold)
            else:
                self.rule.start(self.store)
                moved = np.flatnonzero(self.store.placed)
        except CorrectionError as error:
            moved = self._refuse(error)
        else:
            self._note_anchor()
        self._note_size()
        return moved

    def _move(self, steps: Iterable[GraphDelta], first_new: int) -> tuple[Rows, list[Id], int]:
        """Take the steps, the rule acting after each or after all: rows moved, vertices gone, edges changed."""
        if not self.rule.one_by_one:
            followed = [self.store.apply_delta(delta) for delta in steps]
            delta = self._joined(followed, first_new)
            return self.rule.apply(self.store, delta, self.sequence + 1), delta.removed_ids, _edges_changed(delta)
        moved: list[Rows] = [np.empty(0, np.int64)]
        removed: list[Id] = []
        edges = 0
        for delta in steps:
            moved.append(self.rule.apply(self.store, self.store.apply_delta(delta), self.sequence + 1))
            removed += delta.removed_ids
            edges += _edges_changed(delta)
        rows = np.unique(np.concatenate(moved))
        return rows[self.graph.arrival[rows] >= 0], self._gone(removed), edges

    def _gone(self, removed: list[Id]) -> list[Id]:
        return [name for name in removed if name not in self.graph.ids]

    def _joined(self, steps: list[GraphDelta], first_new: int) -> GraphDelta:
        """The steps as one, without the newcomers that have gone again."""
        delta = merge_deltas(steps)
        if not delta.vacated_rows.size:
            return delta
        rows = np.unique(delta.arrived)
        rows = rows[self.graph.arrival[rows] >= first_new]
        arrived = rows[np.argsort(self.graph.arrival[rows], kind="stable")]
        return delta._replace(arrived=arrived, removed_ids=self._gone(delta.removed_ids))

    def count_connected(self) -> int:
        """How many vertices have edges."""
        return int(np.count_nonzero(self.graph.adjacency.links.degree[: self.graph.row_count]))

    def diagnostics(self) -> dict[str, Any]:
        """How the model stands, in numbers."""
        graph, rows = self.graph, self.graph.row_count
        alive = graph.arrival[:rows] >= 0
        times = 0 if self.aging is None else self.aging.nbytes
        return {
            "vertices": len(graph),
            "edges": graph.adjacency.edge_count,
            "unplaced": int(np.count_nonzero(alive & (self.store.placed[:rows] == 0))),
            "ready": self.rule.ready,
            "orthogonality_error": self.rule.orthogonality_error(self.store),
            "growth_since_anchor": self.growth,
            "anchors": self.anchors,
            "anchors_refused": self.anchors_refused,
            "rows_shortened": self.rows_shortened,
            "sequence": self.sequence,
            "events": self.events,
            "changes": self.changes,
            **({} if self.aging is None else {"time": self.aging.time}),
            "bytes": graph.ids.nbytes + graph.adjacency.nbytes + times + rows * self.store.vectors[:1].nbytes,
        }

    def digest(self) -> str:
        """A hash of graph, vectors, coordinates and sequence number that does not depend on how they lie in memory."""
        held = LocalDigestSource(self.graph, self.store.vectors, self.store.placed)
        aging = {} if self.aging is None else select_digest_arrays(self.aging.state())
        return digest(held, self.rule.state() | aging, self.counters(), self.pending)

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything as plain arrays."""
        return self.copy().state()

    def copy(self) -> StateSnapshot:
        """The state as it is now, for whoever saves it while this goes on."""
        pending = None if self.pending is None else self.pending.copy()
        adjacency = self.graph.adjacency
        return StateSnapshot(self._arrays(), pending, directed=adjacency.directed, duplicates=adjacency.duplicates)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Everything as plain arrays, but for an anchor on its way."""
        rows = self.graph.row_count
        learned = self.rule.state()
        aging = {} if self.aging is None else self.aging.state()
        return {
            **{f"graph_{name}": array for name, array in self.graph.state().items()},
            **{f"rule_{name}": array for name, array in learned.items()},
            **{f"memory_{name}": array for name, array in aging.items()},
            "vectors": self.store.vectors[:rows].copy(),
            "placed": self.store.placed[:rows].copy(),
            "counters": np.array(list(self.counters().values())),
        }

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave, once it is known to be sound."""
        adjacency = self.graph.adjacency
        dim = self.store.vectors.shape[1]
        check_state(state, dim=dim, directed=adjacency.directed, rule=self.rule, aging=self.aging)
        self.graph = Graph.from_state(
            strip_prefix("graph_", state), directed=adjacency.directed, duplicates=adjacency.duplicates
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
        self.pending = BackgroundAnchor.from_state(pending, cast(RippleRule, self.rule), self.store) if pending else None
        self.growth_slack = 0.0


def _either(some: Rows, others: Rows, graph: Graph) -> Rows:
    """The rows in use in one list or the other; marked, because sorting or hashing so many keeps readers waiting."""
    marked = np.zeros(graph.row_count, bool)
    marked[some] = marked[others] = True
    return np.flatnonzero(marked & (graph.arrival[: graph.row_count] >= 0))


def _edges_changed(delta: GraphDelta) -> int:
    return int(np.count_nonzero(delta.changed_share[:, 0]))
