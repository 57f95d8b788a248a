"""The state of a model and how it changes: by a batch, or by an anchor. A pure function of what came in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from os import PathLike
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ripplet.events import Batch, Id, IdColumn, as_list, id_column, weight_column
from ripplet.graph.graph import Delta, Graph, joined, under
from ripplet.graph.ids import names_for_kernels
from ripplet.rules.anchor import Aside
from ripplet.rules.base import Rule
from ripplet.rules.field import Field
from ripplet.rules.pending import Pending
from ripplet.rules.ripple import RippleRule
from ripplet.views.base import Progress

Rows = NDArray[np.int64]
LATEST = 2.0  # an anchor on its way is taken over at the latest when the graph has grown by this many times the growth


class Outcome(NamedTuple):
    """What applying a batch did, by row."""

    moved: Rows
    first_new: int  # arrival numbers from here on are new
    removed: list[Id]
    anchored: bool


class Engine:
    """Graph, vectors, rule and sequence number."""

    def __init__(
        self,
        graph: Graph,
        rule: Rule,
        dim: int,
        *,
        anchor_growth: float = 0.0,
        anchor_lag: int = 0,
        start_size: int = 0,
        change_threshold: float = 0.0,
        directory: str | PathLike[str] | None = None,
    ) -> None:
        self.graph, self.rule = graph, rule
        self.field = Field(graph, dim, rule.precision, directory)
        self.aside: Aside = nullcontext  # set by whoever keeps readers out while a batch is applied
        self.anchor_growth, self.start_size, self.change_threshold = anchor_growth, start_size, change_threshold
        self.anchor_lag = anchor_lag  # batches between the one that makes an anchor due and the one that takes it over
        self.pending: Pending | None = None
        self.sequence = 0
        self.events = self.changes = self.anchors = 0
        self.vertices_then = self.edges_then = self.edge_events = 0  # at and since the last anchor

    def start(self, batch: Batch, progress: Progress | None = None) -> None:
        """Take in a batch as the initial graph and embed it from nothing."""
        self.field.expect(2 * len(batch))
        for delta in self.graph.apply(batch):
            self.field.follow(delta)
        self.events = len(batch)
        if self.graph.adjacency.edges:
            self.rule.start(self.field, progress)
        self._note_size()
        self.graph.mention_loops()

    def apply(self, batch: Batch) -> Outcome:
        """Apply a batch: all of it, or, where it is refused, nothing of it."""
        first_new = self.graph.next_arrival
        self.field.expect(2 * len(batch))
        steps = self.graph.apply(batch, one_by_one=self.rule.one_by_one)
        moved, removed, edges = self._move(steps, first_new)
        due = self._count(len(batch), edges, moved.size + len(removed))
        corrected = self._correct(due, moved)
        if corrected is not None:
            moved = _either(moved, corrected, self.graph.rows)
        if not self.graph.adjacency.edges:
            self.rule.reset(self.field)
            self.pending = None
        self.graph.mention_loops()
        return Outcome(moved, first_new, removed, corrected is not None)

    def arrive(self, vertex: Id, neighbours: Sequence[Id], weights: Any) -> int:
        """Apply one arrival, in one kernel call where the rule has one; its row."""
        if not isinstance(neighbours, list | tuple):
            neighbours = as_list(id_column(neighbours, "neighbours"))
        column = id_column([vertex, *neighbours], "vertex and neighbours")
        shares = None if weights is None else weight_column(weights, len(neighbours))
        row, edges, changed = -1, 0, 0
        if self.pending is None and not self.anchor_lag:  # else an anchor has to know which rows it moved
            row, edges, changed = self.rule.arrive(self.field, column, shares, self.sequence + 1)
        if row < 0:
            self.apply(Batch.arrival(vertex, neighbours, weights))
            return self.graph.ids.find_one(as_list(column)[0])
        if self._count(len(neighbours), edges, changed):
            self.anchor()
        self.graph.mention_loops()
        return row

    def _count(self, events: int, edges: int, changes: int) -> bool:
        """Note that a batch has been applied; whether an anchor is due."""
        self.sequence += 1
        self.events += events
        self.edge_events += edges
        self.changes += changes
        return self._due()

    def _correct(self, due: bool, moved: Rows) -> Rows | None:
        """Correct all vectors if it is time, or begin to in the background; the rows that moved, None if none could."""
        corrected = None
        if self.pending is not None:
            self.pending.note(moved, self.field)
            if self.sequence >= self.pending.until or self.growth >= LATEST * self.anchor_growth:
                corrected = self._take_over(self.pending)
        if not due or self.pending is not None:
            return corrected
        if not (self.anchor_lag and self.rule.ready and isinstance(self.rule, RippleRule)):
            return self.anchor()
        with self.aside():
            self.pending = Pending.begin(self.rule, self.field, self.sequence, self.anchor_lag)
        self._note_size()
        return corrected

    def _take_over(self, pending: Pending) -> Rows:
        """Correct all vectors by the anchor that was begun some batches ago; waits for it if need be."""
        moved = pending.take_over(cast(RippleRule, self.rule), self.field, self.change_threshold, self.aside)
        self.anchors += 1
        self.pending = None
        return moved

    def anchor(self) -> Rows:
        """Correct all vectors now (or give a model that began empty its start); the rows that moved."""
        self.pending = None  # what it would bring is brought now
        if self.rule.ready:
            moved = self.rule.anchor(self.field, self.sequence, self.change_threshold, self.aside)
        else:
            self.rule.start(self.field, aside=self.aside)
            moved = np.flatnonzero(self.field.placed)
        self.anchors += 1
        self._note_size()
        return moved

    @property
    def growth(self) -> float:
        """By how much the graph has grown or changed since the last anchor: by vertices, or by half of its edges."""
        vertices = len(self.graph) / max(self.vertices_then, 1) - 1
        return max(vertices, self.edge_events / (2 * max(self.edges_then, 1)))

    def _move(self, steps: Iterable[Delta], first_new: int) -> tuple[Rows, list[Id], int]:
        """Take the steps, the rule acting after each or after all: rows moved, vertices gone, edges changed."""
        if not self.rule.one_by_one:
            followed = [self.field.follow(delta) for delta in steps]
            delta = self._joined(followed, first_new)
            return self.rule.apply(self.field, delta, self.sequence + 1), delta.removed, _edges_changed(delta)
        moved: list[Rows] = [np.empty(0, np.int64)]
        removed: list[Id] = []
        edges = 0
        for delta in steps:
            moved.append(self.rule.apply(self.field, self.field.follow(delta), self.sequence + 1))
            removed += delta.removed
            edges += _edges_changed(delta)
        rows = np.unique(np.concatenate(moved))
        return rows[self.graph.arrival[rows] >= 0], self._gone(removed), edges

    def _gone(self, removed: list[Id]) -> list[Id]:
        return [name for name in removed if name not in self.graph.ids]

    def _joined(self, steps: list[Delta], first_new: int) -> Delta:
        """The steps as one, without the newcomers that have gone again."""
        delta = joined(steps)
        if not delta.vacated.size:
            return delta
        rows = np.unique(delta.arrived)
        rows = rows[self.graph.arrival[rows] >= first_new]
        arrived = rows[np.argsort(self.graph.arrival[rows], kind="stable")]
        return delta._replace(arrived=arrived, removed=self._gone(delta.removed))

    def _due(self) -> bool:
        if not self.rule.ready:  # the start of a model that began empty comes whether or not there are anchors
            return 2 * self.graph.adjacency.edges >= self.start_size and self._with_edges() >= self.start_size
        return self.anchor_growth > 0 and self.growth >= self.anchor_growth

    def _with_edges(self) -> int:
        return int(np.count_nonzero(self.graph.adjacency.links.count[: self.graph.rows]))

    def _note_size(self) -> None:
        self.vertices_then, self.edges_then, self.edge_events = len(self.graph), self.graph.adjacency.edges, 0

    def serve(self, rows: Rows) -> NDArray[np.float32]:
        """The vectors of rows as readers get them."""
        return self.rule.serve(self.field.vectors[rows])

    def serve_one(self, row: int) -> NDArray[np.float32]:
        """The vector of one row as readers get it."""
        return self.rule.serve(self.field.vectors[row : row + 1])[0]

    def diagnostics(self) -> dict[str, Any]:
        """How the model stands, in numbers."""
        graph, rows = self.graph, self.graph.rows
        alive = graph.arrival[:rows] >= 0
        return {
            "vertices": len(graph),
            "edges": graph.adjacency.edges,
            "unplaced": int(np.count_nonzero(alive & (self.field.placed[:rows] == 0))),
            "ready": self.rule.ready,
            "orthogonality_error": self.rule.error(self.field),
            "growth_since_anchor": self.growth,
            "anchors": self.anchors,
            "sequence": self.sequence,
            "events": self.events,
            "changes": self.changes,
            "bytes": graph.ids.nbytes + graph.adjacency.nbytes + rows * self.field.vectors[:1].nbytes,
        }

    def digest(self) -> str:
        """A hash of graph, vectors, coordinates and sequence number that does not depend on how they lie in memory."""
        field = self.field
        return _digest(self.graph, field.vectors, field.placed, self.rule.state(), self._counters(), self.pending)

    def _counters(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self.COUNTERS}

    COUNTERS = ("sequence", "events", "changes", "anchors", "vertices_then", "edges_then", "edge_events")

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything as plain arrays."""
        return Copy(self).state()

    def present(self) -> dict[str, NDArray[Any]]:
        """Everything as plain arrays, but for an anchor on its way."""
        rows = self.graph.rows
        learned = self.rule.state()
        return {
            **{f"graph_{name}": array for name, array in self.graph.state().items()},
            **{f"rule_{name}": array for name, array in learned.items()},
            "vectors": self.field.vectors[:rows].copy(),
            "placed": self.field.placed[:rows].copy(),
            "counters": np.array(list(self._counters().values())),
        }

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        adjacency = self.graph.adjacency
        self.graph = Graph.from_state(
            under("graph_", state), directed=adjacency.directed, duplicates=adjacency.duplicates
        )
        self.rule.restore(under("rule_", state))
        self.field = self.field.on(self.graph)
        rows = self.graph.rows
        self.field.vectors[:rows], self.field.placed[:rows] = state["vectors"], state["placed"]
        for name, value in zip(self.COUNTERS, state["counters"].tolist(), strict=True):
            setattr(self, name, value)
        pending = under("pending_", state)
        self.pending = Pending.from_state(pending, cast(RippleRule, self.rule), self.field) if pending else None


class Copy:
    """The state of an engine at one moment, for whoever saves it while the engine goes on."""

    def __init__(self, engine: Engine) -> None:
        self.sequence = engine.sequence
        self._arrays = engine.present()
        self._pending = None if engine.pending is None else engine.pending.copy()
        self._adjacency = engine.graph.adjacency

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything as plain arrays, an anchor on its way included: that is waited for."""
        pending = {} if self._pending is None else self._pending.state()
        return self._arrays | {f"pending_{name}": array for name, array in pending.items()}

    def digest(self) -> str:
        """The digest the engine had."""
        arrays = self._arrays
        directed, duplicates = self._adjacency.directed, self._adjacency.duplicates
        graph = Graph.from_state(under("graph_", arrays), directed=directed, duplicates=duplicates)
        counters = dict(zip(Engine.COUNTERS, arrays["counters"].tolist(), strict=True))
        return _digest(graph, arrays["vectors"], arrays["placed"], under("rule_", arrays), counters, self._pending)


def _digest(
    graph: Graph,
    vectors: NDArray[Any],
    placed: NDArray[np.uint8],
    learned: dict[str, NDArray[Any]],
    counters: dict[str, int],
    pending: Pending | None,
) -> str:
    order, hasher = graph.in_order(), hashlib.blake2b(digest_size=16)
    links, arrival = graph.adjacency.links, graph.arrival
    slots = graph.adjacency.slots(order)
    parts = [
        *_id_arrays(graph.ids.column(order)),
        arrival[order],
        links.count[order].astype(np.int64),
        arrival[links.neighbour[slots]],
        links.weight[slots],
        links.outgoing[slots],
        vectors[order],
        placed[order],
        *(learned[name] for name in sorted(learned) if not name.startswith("cascade_")),
        np.array(
            [
                counters["sequence"],
                graph.next_arrival,
                *(counters[name] for name in ("edge_events", "vertices_then", "edges_then")),
            ]
        ),
        *([] if pending is None else [np.array([pending.since, pending.until])]),
    ]
    for part in parts:
        hasher.update(str((part.dtype, part.shape)).encode())
        hasher.update(np.ascontiguousarray(part).data)
    return hasher.hexdigest()


def _either(some: Rows, others: Rows, rows: int) -> Rows:
    """The rows in one list or the other; by marking them, because sorting or hashing so many keeps readers waiting."""
    marked = np.zeros(rows, bool)
    marked[some] = marked[others] = True
    return np.flatnonzero(marked)


def _edges_changed(delta: Delta) -> int:
    return int(np.count_nonzero(delta.chance[:, 0]))


def _id_arrays(column: IdColumn) -> list[NDArray[Any]]:
    if isinstance(column, np.ndarray):
        return [column]
    if isinstance(column, pa.Array):
        begins, ends, text = names_for_kernels(column)
        return [ends - begins, text[begins[0] : ends[-1]] if len(begins) else text]
    return [np.frombuffer(repr(column).encode(), np.uint8)]
