"""Decay and expiry of edges compared with a reference that recomputes every edge after every batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec import Batch, Embedder, Op, UnknownEdgeError

HALF_LIFE, EXPIRE_AFTER = 4.0, 7.5
row = st.tuples(
    st.sampled_from([Op.ADD, Op.ADD, Op.ADD, Op.ADD, Op.REMOVE, Op.REMOVE_VERTEX, Op.VERTEX]),
    st.integers(0, 5),
    st.integers(0, 5),
    st.sampled_from([0.5, 1.0, 3.0]),
    st.one_of(st.just(np.nan), st.integers(0, 40).map(float)),
)
streams = st.lists(st.lists(row, min_size=1, max_size=8), max_size=10)


class DictGraph:
    """Reference: edges with all their arrivals; everything is recomputed after every batch."""

    def __init__(self, duplicates: str, directed: bool, expires: bool) -> None:
        self.duplicates, self.directed, self.expires = duplicates, directed, expires
        self.vertices: set[int] = set()
        self.edges: dict[tuple[int, int], list[tuple[float, float]]] = {}
        self.now = np.nan

    def key(self, u: int, v: int) -> tuple[int, int]:
        return (u, v) if self.directed else (min(u, v), max(u, v))

    def is_valid(self, op: Op, u: int, v: int) -> bool:
        if op == Op.REMOVE:
            return u != v and self.key(u, v) in self.edges
        return op != Op.REMOVE_VERTEX or u in self.vertices

    def apply(self, op: Op, u: int, v: int, weight: float, time: float) -> None:
        self.now = np.fmax(self.now, time)
        if op == Op.REMOVE_VERTEX:
            self.vertices.remove(u)
            self.edges = {key: arrivals for key, arrivals in self.edges.items() if u not in key}
        elif op == Op.REMOVE:
            del self.edges[self.key(u, v)]
        elif op == Op.VERTEX:
            self.vertices.add(u)
        else:
            self.vertices |= {u, v}
            if u != v:
                self.edges.setdefault(self.key(u, v), []).append((self.now if np.isnan(time) else time, weight))

    def expire(self, first: float) -> None:
        """Remove expired edges; edges before the first timestamp arrived at that timestamp."""
        for arrivals in self.edges.values():
            arrivals[:] = [(first if np.isnan(time) else time, weight) for time, weight in arrivals]
        if self.expires:
            oldest = self.now - EXPIRE_AFTER
            self.edges = {
                key: arrivals for key, arrivals in self.edges.items() if not max(t for t, _ in arrivals) < oldest
            }

    def weights(self) -> dict[tuple[int, int], float]:
        return {key: self.weight(arrivals) for key, arrivals in self.edges.items()}

    def weight(self, arrivals: list[tuple[float, float]]) -> float:
        age = 0.0 if np.isnan(self.now) else self.now
        decayed = [weight * 2.0 ** (((age if np.isnan(t) else t) - age) / HALF_LIFE) for t, weight in arrivals]
        return {"add": sum(decayed), "ignore": max(decayed), "replace": decayed[-1]}[self.duplicates]


def decayed_weights(model: Embedder, directed: bool) -> dict[tuple[int, int], float]:
    """Return the edges of a model with their current weights."""
    found: dict[tuple[int, int], float] = {}
    links, unit = model.engine.graph.adjacency.links, model.engine.graph.adjacency.weight_scale.unit
    for u in model.ids:
        slots = model.engine.graph.adjacency.slots(np.array([model.engine.find_row(u)]))
        for slot in slots:
            v = model.engine.ids_of(np.array([links.neighbor[slot]]))[0]
            if links.outgoing[slot] > 0:
                found[(u, v) if directed else (min(u, v), max(u, v))] = float(links.outgoing[slot]) / unit
    return found


@settings(max_examples=150, deadline=None)
@given(
    stream=streams,
    duplicates=st.sampled_from(["add", "ignore", "replace"]),
    directed=st.booleans(),
    expires=st.booleans(),
)
def test_edge_aging_random_stream_matches_reference(
    stream: list[list[Any]], duplicates: str, directed: bool, expires: bool
) -> None:
    model = Embedder(
        dim=2,
        start_size=1000,
        duplicates=duplicates,
        directed=directed,
        half_life=HALF_LIFE,
        expire_after=EXPIRE_AFTER if expires else None,
    )
    reference, first = DictGraph(duplicates, directed, expires), np.nan
    events = 0
    for rows in stream:
        batch = []
        for op, u, v, weight, time in rows:
            if reference.is_valid(op, u, v) and not (op == Op.ADD and u == v):
                reference.apply(op, u, v, weight, time)
                batch.append((u, v, weight, op, time))
                first = time if np.isnan(first) else first
        before = len(reference.edges)
        reference.expire(first)
        if batch:
            model.partial_fit(Batch.of(*map(list, zip(*batch, strict=True))))
            events += len(batch) + before - len(reference.edges)
        assert decayed_weights(model, directed) == pytest.approx(reference.weights(), rel=1e-5)
        assert set(model.ids) == reference.vertices
        assert model.engine.edges == len(reference.edges)
        assert model.engine.events == events
        model.check()
        if expires:
            assert model.engine.aging is not None
            window, arrival = model.engine.aging.window, model.engine.graph.arrival
            assert window is not None
            saved = window.state()
            assert (arrival[saved["ends"]] == saved["numbers"]).all(axis=1).sum() == len(reference.edges)


def test_expiry_repeated_edge_counts_from_its_latest_arrival() -> None:
    model = Embedder(dim=2, expire_after=10)
    model.partial_fit(Batch.of([0, 1, 5], [1, 2, 6], time=[0, 0, 8]))
    model.partial_fit(Batch.of([0, 1], [1, 1], op=[Op.REMOVE, Op.REMOVE_VERTEX], time=[1, 1]))
    model.partial_fit(Batch.of([0, 1], [1, 2], time=[6, 7]))
    model.partial_fit(Batch.of([5], [6], time=[16]))
    assert model.degree([0, 1, 2]).tolist() == [1, 2, 1]
    changes = model.partial_fit(Batch.of([5], [6], time=[16.5]))
    assert model.degree([0, 1, 2]).tolist() == [0, 1, 1]
    assert changes.removed == []


def test_remove_edges_expired_edge_is_accepted() -> None:
    model = Embedder(dim=2, expire_after=1)
    model.partial_fit(Batch.of([0, 2], [1, 3], time=[0, 5]))
    assert model.engine.edges == 1
    model.remove_edges([(0, 1)])
    assert model.engine.edges == 1
    with pytest.raises(KeyError, match="9"):
        model.remove_edges([(0, 9)])
    with pytest.raises(UnknownEdgeError):
        Embedder(dim=2, half_life=1).fit([(0, 1), (1, 2)]).remove_edges([(0, 2)])


def test_clock_rejected_batch_is_unchanged() -> None:
    model = Embedder(dim=2, half_life=1.0, expire_after=5.0)
    model.partial_fit(Batch.of([0], [1], time=[3.0]))
    before = model.digest()
    with pytest.raises(KeyError):
        model.partial_fit(Batch.of([0, 7], [2, 7], op=[Op.ADD, Op.REMOVE_VERTEX], time=[90.0, 91.0]))
    assert model.digest() == before
    assert model.diagnostics()["time"] == 3.0
