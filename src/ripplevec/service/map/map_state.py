"""Map state: a sample of the vertices as points, updated on demand from the change feed."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Id, id_column
from ripplevec.changes import Changes
from ripplevec.embedder import Embedder
from ripplevec.engine.engine import Engine
from ripplevec.service.map.projection import Projection
from ripplevec.service.responses import RejectedRequest

_GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)  # its multiples are spread evenly over 64 bits (Fibonacci hashing)


class VertexSample(NamedTuple):
    """Placed vertices: their ids, arrival numbers and vectors."""

    ids: list[Id]
    arrival: NDArray[np.int64]
    vectors: NDArray[np.float32]


class Neighborhood(NamedTuple):
    """The arrival number and degree of a vertex, and some of its neighbors with their edge weights."""

    arrival: int
    degree: int
    neighbors: list[tuple[Id, float]]


def sample_vertices(model: Embedder, fraction: float) -> VertexSample:
    """Return about this fraction of the vertices in order of arrival.

    The sample is reproducible, and a smaller fraction yields a subset of it.
    """
    with model.lock.reading():
        return _read_rows(model.engine, model.engine.rows_by_arrival(partial(is_sampled, fraction=fraction)))


def read_vertices(model: Embedder, ids: list[Id]) -> VertexSample:
    """Return those of the given vertices that exist and are placed."""
    with model.lock.reading():
        engine = model.engine
        rows = engine.find_rows(id_column(ids))
        return _read_rows(engine, rows[rows >= 0])


def read_neighborhood(model: Embedder, vertex: Id, limit: int) -> Neighborhood:
    """Return a vertex with up to `limit` of its neighbors, those of the latest edges first."""
    with model.lock.reading():
        engine = model.engine
        row = int(engine.rows_of(id_column([vertex]))[0])
        info, (rows, weights) = engine.vertex_info(row), engine.neighbors(row, limit)
        neighbors = list(zip(engine.ids_of(rows), weights.tolist(), strict=True))
    return Neighborhood(info.arrival, info.degree, neighbors)


def is_sampled(arrival: NDArray[np.int64], fraction: float) -> NDArray[np.bool_]:
    """Return which vertices belong to a sample of this fraction; depends on their arrival numbers only."""
    if fraction >= 1:
        return np.ones(len(arrival), bool)
    return arrival.astype(np.uint64) * _GOLDEN_RATIO < np.uint64(fraction * 2.0**64)


def _read_rows(engine: Engine, rows: NDArray[np.int64]) -> VertexSample:
    rows = rows[engine.placed(rows)]
    return VertexSample(engine.ids_of(rows), engine.arrival_numbers(rows), engine.get_vectors(rows))


MAX_POINTS = 50_000
"""Maximum number of points; a larger graph is sampled."""

MAX_BATCHES = 20_000
"""Batches between two reads beyond which all vertices are read again instead."""

REFIT_GROWTH = 1.5
"""Growth of the number of points since the last fit that triggers another fit, besides an anchor."""

MAX_EXACT_INTEGER = 2**53
"""Larger integers are not exact in JavaScript and are sent as text."""


class RecentChanges(Protocol):
    """Source of the changes of recent batches."""

    newest: int

    def read_after(self, since: int, limit: int) -> list[Changes]:
        """Return up to `limit` batches after `since`; rejected if they are no longer retained."""
        ...


class LabelStore(Protocol):
    """Source of vertex labels."""

    version: int

    def get(self, vertex: Id) -> str | None:
        """Return the label of a vertex, or None."""
        ...


class MapState:
    """The points on the map, their positions, and the tick of the last update of each.

    Work is done only when the map is read. Between two fits of the projection (after an anchor or strong growth), a
    point moves only if its vector does. `tick` counts reads that found updates, `epoch` counts fits: a client that
    sends both gets the updates since then, any other client gets all points.
    """

    def __init__(
        self,
        model: Embedder,
        feed: RecentChanges,
        labels: LabelStore,
        *,
        limit: int = MAX_POINTS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.model, self.labels, self.limit = model, labels, limit
        self.epoch, self.tick = secrets.randbelow(2**40), 0  # random: a page may stay open across service restarts
        self._feed, self._clock = feed, clock
        self._since, self._next_fit_time = -1, 0.0
        self._lock = threading.Lock()
        self._fit_due = True
        self._fraction = 1.0
        self._labels_version = labels.version
        self._projection: Projection | None = None
        self._replace_points([], np.empty(0, np.int64), np.empty((0, model.dim), np.float32))

    def read(self, epoch: int | None = None, tick: int | None = None) -> dict[str, Any]:
        """Return the points updated and removed since a tick of the current epoch, otherwise all points."""
        with self._lock:
            self._refresh()
            self._refresh_labels()
            whole = epoch != self.epoch or tick is None
            updated = np.ones(len(self._ids), bool) if whole else self._updated_tick > tick
            gone = [] if whole else self._arrival[updated & ~self._alive].tolist()
            points = self._to_columns(np.flatnonzero(updated & self._alive))
            return {"epoch": self.epoch, "tick": self.tick, "whole": whole, "points": points, "gone": gone}

    def locate(self, ids: Sequence[Id]) -> dict[Id, dict[str, Any]]:
        """Return the positions of vertices, displayed or not; vertices that are not placed are omitted."""
        with self._lock:
            self._refresh()
            projection = self._projection
        if projection is None or not ids:
            return {}
        vertices = read_vertices(self.model, list(ids))
        positions = projection.project(vertices.vectors).round(4)
        communities = projection.assign_communities(vertices.vectors)
        rows = zip(vertices.ids, positions.tolist(), communities.tolist(), strict=True)
        return {vertex: {"x": x, "y": y, "community": community} for vertex, (x, y), community in rows}

    def _to_columns(self, slots: NDArray[np.int64]) -> dict[str, list[Any]]:
        x, y = self._positions[slots].round(4).T.tolist()
        return {
            "id": [json_id(self._ids[slot]) for slot in slots.tolist()],
            "arrival": self._arrival[slots].tolist(),
            "x": x,
            "y": y,
            "community": self._community[slots].tolist(),
            "label": [self._label[slot] for slot in slots.tolist()],
        }

    # ------------------------------------------------------------------ updates

    def _refresh(self) -> None:
        batches = self._read_new_batches()
        if batches is None:
            self._refit()
            return
        grown = len(self._slot) > REFIT_GROWTH * self._fitted_points
        self._fit_due |= any(changes.anchored for changes in batches) or grown
        if self._fit_due and self._clock() >= self._next_fit_time:
            self._refit()
        elif batches:
            self._apply_changes(batches)

    def _read_new_batches(self) -> list[Changes] | None:
        """Return the batches since the last read; None if they are no longer retained or too many."""
        batches: list[Changes] | None
        try:
            batches = self._feed.read_after(self._since, MAX_BATCHES)
        except RejectedRequest:
            batches = None
        if batches is None or len(batches) == MAX_BATCHES:
            self._since = self._feed.newest  # before the vertices are read: applying a change twice is harmless
            return None
        self._since = batches[-1].sequence if batches else self._since
        return batches

    def _refit(self) -> None:
        """Read a new sample of all vertices and fit the projection to it."""
        start_time = self._clock()
        self._fraction = min(1.0, self.limit / max(len(self.model), 1))
        sample = sample_vertices(self.model, self._fraction)
        self._projection = Projection.fit(sample.vectors, self._projection)
        self.epoch += 1
        self.tick += 1
        self._replace_points(*sample)
        self._fit_due = False
        # Spend at most a tenth of the time on fits.
        self._next_fit_time = start_time + max(1.0, 10 * (self._clock() - start_time))

    def _replace_points(self, ids: list[Id], arrival: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        self._ids, self._arrival = ids, arrival
        self._slot = {vertex: slot for slot, vertex in enumerate(ids)}  # index of each point in the columns
        self._label = [self.labels.get(vertex) for vertex in ids]
        self._positions, self._community = self._project(vectors)
        self._updated_tick = np.full(len(ids), self.tick)
        self._alive = np.ones(len(ids), bool)
        self._fitted_points = max(len(ids), 10)

    def _project(self, vectors: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        if self._projection is None:
            return np.zeros((len(vectors), 2)), np.full(len(vectors), -1)
        return self._projection.project(vectors), self._projection.assign_communities(vectors)

    def _apply_changes(self, batches: list[Changes]) -> None:
        """Move, add and remove the points of vertices that changed."""
        changed = dict.fromkeys(vertex for changes in batches for vertex in [*changes.removed, *changes.ids])
        current = read_vertices(self.model, list(changed))
        index = dict(zip(current.ids, range(len(current.ids)), strict=True))
        self.tick += 1
        for vertex in changed.keys() & self._slot.keys():
            # A vertex with another arrival number was removed and has arrived again.
            if vertex not in index or self._arrival[self._slot[vertex]] != current.arrival[index[vertex]]:
                slot = self._slot.pop(vertex)
                self._alive[slot], self._updated_tick[slot] = False, self.tick
        positions, community = self._project(current.vectors)
        slots = np.array([self._slot.get(vertex, -1) for vertex in current.ids], np.int64)
        moved = np.flatnonzero(slots >= 0)
        added = np.flatnonzero((slots < 0) & is_sampled(current.arrival, self._fraction))
        self._positions[slots[moved]], self._community[slots[moved]] = positions[moved], community[moved]
        self._updated_tick[slots[moved]] = self.tick
        added_ids = [current.ids[row] for row in added.tolist()]
        self._append_points(added_ids, current.arrival[added], positions[added], community[added])

    def _refresh_labels(self) -> None:
        """Mark the points whose labels have changed as updated."""
        version = self.labels.version
        if version == self._labels_version:
            return
        labels = [self.labels.get(vertex) for vertex in self._ids]
        slots = [slot for slot, (old, new) in enumerate(zip(self._label, labels, strict=True)) if old != new]
        self._label, self._labels_version = labels, version
        if slots:
            self.tick += 1
            self._updated_tick[slots] = self.tick

    def _append_points(
        self,
        ids: list[Id],
        arrival: NDArray[np.int64],
        positions: NDArray[np.float64],
        community: NDArray[np.int64],
    ) -> None:
        self._slot |= {vertex: slot for slot, vertex in enumerate(ids, len(self._ids))}
        self._ids += ids
        self._label += [self.labels.get(vertex) for vertex in ids]
        self._arrival = np.concatenate([self._arrival, arrival])
        self._positions = np.concatenate([self._positions, positions])
        self._community = np.concatenate([self._community, community])
        self._updated_tick = np.concatenate([self._updated_tick, np.full(len(ids), self.tick)])
        self._alive = np.concatenate([self._alive, np.ones(len(ids), bool)])


def json_id(vertex: Id) -> Id:
    """Convert an id to a JSON value that JavaScript reads exactly."""
    return str(vertex) if isinstance(vertex, int) and abs(vertex) > MAX_EXACT_INTEGER else vertex
