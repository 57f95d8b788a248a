"""The points of the map: kept up to date from what batches change, whenever somebody looks."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Id
from ripplevec.changes import Changes
from ripplevec.embedder import Embedder
from ripplevec.service.map.map_sample import chosen, named, sample
from ripplevec.service.map.projection import Projection
from ripplevec.service.responses import RejectedRequest

MAX_POINTS = 50_000
"""How many vertices are shown at most; of more, a sample."""

MAX_BATCHES = 20_000
"""Batches between two looks beyond which the map is read anew instead."""

REFIT_GROWTH = 1.5
"""How many times as many points as at the last fit ask for another, where no anchor does."""

MAX_EXACT_INTEGER = 2**53
"""Integers beyond this are not exact in a browser, and go there as text."""


class ChangeLog(Protocol):
    """Who can say what batches have changed."""

    newest: int

    def after(self, since: int, limit: int) -> list[Changes]:
        """Up to `limit` batches behind `since`; refused where they are no longer known."""
        ...


class LabelStore(Protocol):
    """Who knows what vertices are labeled with."""

    version: int

    def get(self, vertex: Id) -> str | None:
        """The label of a vertex, if it has one."""
        ...


class MapState:
    """Which vertices are on the map, where they stand, and when each was touched last.

    Nothing is done before somebody looks. Between two fits of the projection (an anchor, or much growth) a point moves
    only where its vector does. `tick` counts looks that found something, `epoch` counts fits: who names both gets what
    has changed since, who does not gets everything.
    """

    def __init__(
        self,
        model: Embedder,
        feed: ChangeLog,
        labels: LabelStore,
        *,
        limit: int = MAX_POINTS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.model, self.labels, self.limit = model, labels, limit
        self.epoch, self.tick = secrets.randbelow(2**40), 0  # another service, another epoch: a page may outlive one
        self._feed, self._clock = feed, clock
        self._since, self._next_fit = -1, 0.0
        self._looking = threading.Lock()
        self._fit_due = True
        self._share = 1.0
        self._labeled = labels.version
        self._projection: Projection | None = None
        self._take([], np.empty(0, np.int64), np.empty((0, model.dim), np.float32))

    def look(self, epoch: int | None = None, tick: int | None = None) -> dict[str, Any]:
        """The points touched and gone since a tick of this epoch, or all of them."""
        with self._looking:
            self._refresh()
            self._label_anew()
            whole = epoch != self.epoch or tick is None
            recent = np.ones(len(self._ids), bool) if whole else self._touched > tick
            gone = [] if whole else self._arrival[recent & ~self._alive].tolist()
            points = self._columns(np.flatnonzero(recent & self._alive))
            return {"epoch": self.epoch, "tick": self.tick, "whole": whole, "points": points, "gone": gone}

    def place(self, ids: Sequence[Id]) -> dict[Id, dict[str, Any]]:
        """Where vertices stand, shown or not; those without a place are left out."""
        with self._looking:
            self._refresh()
            projection = self._projection
        if projection is None or not ids:
            return {}
        seen = named(self.model, list(ids))
        places, community = projection.place(seen.vectors).round(4), projection.community(seen.vectors)
        rows = zip(seen.ids, places.tolist(), community.tolist(), strict=True)
        return {name: {"x": x, "y": y, "community": number} for name, (x, y), number in rows}

    def _columns(self, slots: NDArray[np.int64]) -> dict[str, list[Any]]:
        x, y = self._places[slots].round(4).T.tolist()
        return {
            "id": [json_id(self._ids[slot]) for slot in slots.tolist()],
            "arrival": self._arrival[slots].tolist(),
            "x": x,
            "y": y,
            "community": self._community[slots].tolist(),
            "label": [self._label[slot] for slot in slots.tolist()],
        }

    # ------------------------------------------------------------------ keeping up

    def _refresh(self) -> None:
        noted = self._news()
        if noted is None:
            self._read_anew()
            return
        self._fit_due |= any(changes.anchored for changes in noted) or len(self._slot) > REFIT_GROWTH * self._fitted_on
        if self._fit_due and self._clock() >= self._next_fit:
            self._read_anew()
        elif noted:
            self._follow(noted)

    def _news(self) -> list[Changes] | None:
        """What batches changed since the last look; None where that is not known any more."""
        try:
            noted = self._feed.after(self._since, MAX_BATCHES)
        except RejectedRequest:
            noted = None
        if noted is None or len(noted) == MAX_BATCHES:
            self._since = self._feed.newest  # before anything is read: what is seen twice does no harm
            return None
        self._since = noted[-1].sequence if noted else self._since
        return noted

    def _read_anew(self) -> None:
        began = self._clock()
        self._share = min(1.0, self.limit / max(len(self.model), 1))
        seen = sample(self.model, self._share)
        self._projection = Projection.fit(seen.vectors, self._projection)
        self.epoch += 1
        self.tick += 1
        self._take(*seen)
        self._fit_due = False
        self._next_fit = began + max(1.0, 10 * (self._clock() - began))  # at most a tenth of the time goes into fits

    def _take(self, ids: list[Id], arrival: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        self._ids, self._arrival = ids, arrival
        self._slot = {name: slot for slot, name in enumerate(ids)}
        self._label = [self.labels.get(name) for name in ids]
        self._places, self._community = self._projected(vectors)
        self._touched = np.full(len(ids), self.tick)
        self._alive = np.ones(len(ids), bool)
        self._fitted_on = max(len(ids), 10)

    def _projected(self, vectors: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        if self._projection is None:
            return np.zeros((len(vectors), 2)), np.full(len(vectors), -1)
        return self._projection.place(vectors), self._projection.community(vectors)

    def _follow(self, noted: list[Changes]) -> None:
        """Move, add and take out the points of vertices that batches changed."""
        changed = dict.fromkeys(name for changes in noted for name in [*changes.removed, *changes.ids])
        seen = named(self.model, list(changed))
        here = dict(zip(seen.ids, range(len(seen.ids)), strict=True))
        self.tick += 1
        for name in changed.keys() & self._slot.keys():
            if name not in here or self._arrival[self._slot[name]] != seen.arrival[here[name]]:
                slot = self._slot.pop(name)
                self._alive[slot], self._touched[slot] = False, self.tick
        places, community = self._projected(seen.vectors)
        slots = np.array([self._slot.get(name, -1) for name in seen.ids], np.int64)
        old, new = np.flatnonzero(slots >= 0), np.flatnonzero((slots < 0) & chosen(seen.arrival, self._share))
        self._places[slots[old]], self._community[slots[old]] = places[old], community[old]
        self._touched[slots[old]] = self.tick
        self._append([seen.ids[row] for row in new.tolist()], seen.arrival[new], places[new], community[new])

    def _label_anew(self) -> None:
        """Touch the points whose labels have changed."""
        version = self.labels.version
        if version == self._labeled:
            return
        now = [self.labels.get(name) for name in self._ids]
        slots = [slot for slot, (old, new) in enumerate(zip(self._label, now, strict=True)) if old != new]
        self._label, self._labeled = now, version
        if slots:
            self.tick += 1
            self._touched[slots] = self.tick

    def _append(
        self,
        ids: list[Id],
        arrival: NDArray[np.int64],
        places: NDArray[np.float64],
        community: NDArray[np.int64],
    ) -> None:
        self._slot |= {name: slot for slot, name in enumerate(ids, len(self._ids))}
        self._ids += ids
        self._label += [self.labels.get(name) for name in ids]
        self._arrival = np.concatenate([self._arrival, arrival])
        self._places = np.concatenate([self._places, places])
        self._community = np.concatenate([self._community, community])
        self._touched = np.concatenate([self._touched, np.full(len(ids), self.tick)])
        self._alive = np.concatenate([self._alive, np.ones(len(ids), bool)])


def json_id(name: Id) -> Id:
    """An id as JSON carries it to a browser."""
    return str(name) if isinstance(name, int) and abs(name) > MAX_EXACT_INTEGER else name
