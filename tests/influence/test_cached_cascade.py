"""Cached cascade compared with a reference that keeps its sets in dicts, while the graph grows and shrinks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.batch import Batch, Op
from ripplevec.errors import InvalidValueError
from ripplevec.graph.graph import Graph
from ripplevec.influence.cached_cascade import CachedCascade
from ripplevec.influence.cascade import Cascade

SEED = 3


class DictCache:
    """Reference: stored rounds by arrival number. Sampling is that of `Cascade`, which has its own tests."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.stored: dict[int, list[list[int]]] = {}

    def influenced(self, graph: Graph, number: int) -> list[int]:
        rounds = sample_rounds(graph, number, min(self.depth, 1))
        rounds += [[] for _ in range(min(self.depth, 1) - len(rounds))]
        for later in range(self.depth - 1):
            passed_on = [w for u in rounds[0] for w in self.round_of(graph, u, later)]
            known = {number}.union(*rounds)
            rounds.append([w for w in dict.fromkeys(passed_on) if w not in known])
        self.stored[number] = rounds[: self.depth - 1] if self.depth else []
        return [u for found in rounds for u in found]

    def round_of(self, graph: Graph, number: int, later: int) -> list[int]:
        if number not in self.stored:
            self.stored[number] = sample_rounds(graph, number, self.depth - 1)
        found = self.stored[number]
        alive = set(graph.arrival[graph.arrival >= 0].tolist())
        return [u for u in found[later] if u in alive] if later < len(found) else []


def sample_rounds(graph: Graph, number: int, depth: int) -> list[list[int]]:
    rows, ends = Cascade(depth, SEED).sample_rounds(graph, row_of(graph, number), depth)
    return [graph.arrival[rows[a:b]].tolist() for a, b in pairwise(ends)]


def row_of(graph: Graph, number: int) -> int:
    return int(np.flatnonzero(graph.arrival == number)[0])


def arrival_numbers(graph: Graph, rows: np.ndarray) -> list[int]:
    return graph.arrival[rows].tolist()  # type: ignore[no-any-return]


def create_stream(seed: int, steps: int) -> list[Batch]:
    """Return batches of arrivals with a few neighbors each, and of occasional vertex removals."""
    rng = np.random.default_rng(seed)
    alive, batches = [0], [Batch.vertices([0])]
    for name in range(1, steps):
        around = rng.choice(alive, size=min(len(alive), int(rng.integers(1, 4))), replace=False)
        batches.append(Batch.arrival(name, around, rng.integers(1, 5, around.size)))
        alive.append(name)
        if len(alive) > 5 and rng.random() < 0.25:
            removed = alive.pop(int(rng.integers(len(alive))))
            batches.append(Batch.vertices([removed], Op.REMOVE_VERTEX))
    return batches


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 4])
@settings(max_examples=8)
@given(seed=st.integers(0, 1000))
def test_cached_cascade_changing_graph_matches_reference(depth: int, seed: int) -> None:
    graph, cached, reference = Graph(), CachedCascade(depth, SEED), DictCache(depth)
    for batch in create_stream(seed, 60):
        for delta in graph.apply(batch):
            for row in delta.arrived.tolist():
                found = cached.sample_influenced(graph, row)
                assert arrival_numbers(graph, found) == reference.influenced(graph, int(graph.arrival[row]))
                assert (graph.arrival[found] >= 0).all()
                assert row not in found
                assert np.unique(found).size == found.size
    assert depth == 0 or cached.used > 0 or depth == 1


def test_cached_cascade_changed_neighbors_uses_stored_rounds() -> None:
    """Vertex 1 passes on the set of its first cascade, although its neighbors have changed since."""
    graph, cached = Graph(), CachedCascade(2, SEED)
    list(graph.apply(Batch.from_any([(1, 2, 1.0)])))
    cached.sample_influenced(graph, 0)
    list(graph.apply(Batch.from_any([(3, 1, 1e6)])))
    row = graph.ids.find_row(3)
    assert arrival_numbers(graph, cached.sample_influenced(graph, row)) == [0, 1]
    list(graph.apply(Batch.from_any([(1, 2)], op=Op.REMOVE)))
    list(graph.apply(Batch.from_any([(4, 1, 1e12)])))
    assert arrival_numbers(graph, cached.sample_influenced(graph, graph.ids.find_row(4))) == [0, 1]


def test_cached_cascade_reused_row_does_not_inherit_sets() -> None:
    graph, cached = Graph(), CachedCascade(2, SEED)
    list(graph.apply(Batch.from_any([(1, 2)])))
    assert arrival_numbers(graph, cached.sample_influenced(graph, 0)) == [1]
    list(graph.apply(Batch.vertices([2], Op.REMOVE_VERTEX)))
    list(graph.apply(Batch.from_any([(3, 4)])))  # one of them reuses the row of 2
    assert graph.ids.find_row(3) == 1
    list(graph.apply(Batch.from_any([(5, 1)])))
    assert arrival_numbers(graph, cached.sample_influenced(graph, graph.ids.find_row(5))) == [0]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_restore_saved_cache_continues_identically(depth: int) -> None:
    graph, cached = Graph(), CachedCascade(depth, SEED)
    batches = create_stream(5, 80)
    for number, batch in enumerate(batches):
        if number == len(batches) // 2:
            state = cached.state()
            again = CachedCascade(depth, SEED)
            again.restore(state)
            for array in state.values():
                array[...] = -7
        for delta in graph.apply(batch):
            for row in delta.arrived.tolist():
                found = cached.sample_influenced(graph, row)
                if number >= len(batches) // 2:
                    assert np.array_equal(again.sample_influenced(graph, row), found)
    first, second = cached.state(), again.state()
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_cached_cascade_without_depth_raises() -> None:
    with pytest.raises(
        InvalidValueError, match="depth: expected a number of rounds when reuse_influence is on, got None"
    ):
        CachedCascade(None, SEED)
