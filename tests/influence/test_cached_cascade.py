"""Reused influence against a plain reference that keeps its sets in dicts, while the graph grows and shrinks."""

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


class Plain:
    """Stored rounds by arrival number; the drawing itself is the cascade's, tested on its own."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.stored: dict[int, list[list[int]]] = {}

    def influenced(self, graph: Graph, number: int) -> list[int]:
        rounds = drawn(graph, number, min(self.depth, 1))
        rounds += [[] for _ in range(min(self.depth, 1) - len(rounds))]
        for later in range(self.depth - 1):
            passed_on = [w for u in rounds[0] for w in self.round_of(graph, u, later)]
            known = {number}.union(*rounds)
            rounds.append([w for w in dict.fromkeys(passed_on) if w not in known])
        self.stored[number] = rounds[: self.depth - 1] if self.depth else []
        return [u for found in rounds for u in found]

    def round_of(self, graph: Graph, number: int, later: int) -> list[int]:
        if number not in self.stored:
            self.stored[number] = drawn(graph, number, self.depth - 1)
        found = self.stored[number]
        alive = set(graph.arrival[graph.arrival >= 0].tolist())
        return [u for u in found[later] if u in alive] if later < len(found) else []


def drawn(graph: Graph, number: int, depth: int) -> list[list[int]]:
    rows, ends = Cascade(depth, SEED).sample_rounds(graph, row_of(graph, number), depth)
    return [graph.arrival[rows[a:b]].tolist() for a, b in pairwise(ends)]


def row_of(graph: Graph, number: int) -> int:
    return int(np.flatnonzero(graph.arrival == number)[0])


def numbers(graph: Graph, rows: np.ndarray) -> list[int]:
    return graph.arrival[rows].tolist()  # type: ignore[no-any-return]


def stream(seed: int, steps: int) -> list[Batch]:
    """Arrivals with a few neighbors each, and now and then a vertex that goes."""
    rng = np.random.default_rng(seed)
    alive, batches = [0], [Batch.vertices([0])]
    for name in range(1, steps):
        around = rng.choice(alive, size=min(len(alive), int(rng.integers(1, 4))), replace=False)
        batches.append(Batch.arrival(name, around, rng.integers(1, 5, around.size)))
        alive.append(name)
        if len(alive) > 5 and rng.random() < 0.25:
            gone = alive.pop(int(rng.integers(len(alive))))
            batches.append(Batch.vertices([gone], Op.REMOVE_VERTEX))
    return batches


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 4])
@settings(max_examples=8)
@given(seed=st.integers(0, 1000))
def test_agrees_with_a_plain_reference_while_vertices_come_and_go(depth: int, seed: int) -> None:
    graph, reused, plain = Graph(), CachedCascade(depth, SEED), Plain(depth)
    for batch in stream(seed, 60):
        for delta in graph.apply(batch):
            for row in delta.arrived.tolist():
                found = reused.sample_influenced(graph, row)
                assert numbers(graph, found) == plain.influenced(graph, int(graph.arrival[row]))
                assert (graph.arrival[found] >= 0).all()
                assert row not in found
                assert np.unique(found).size == found.size
    assert depth == 0 or reused.used > 0 or depth == 1


def test_later_rounds_are_as_old_as_the_cascade_that_made_them() -> None:
    """1 passes on what it reached when it was asked first, though its neighbors have changed since."""
    graph, reused = Graph(), CachedCascade(2, SEED)
    list(graph.apply(Batch.from_any([(1, 2, 1.0)])))
    reused.sample_influenced(graph, 0)
    list(graph.apply(Batch.from_any([(3, 1, 1e6)])))
    row = graph.ids.find_row(3)
    assert numbers(graph, reused.sample_influenced(graph, row)) == [0, 1]
    list(graph.apply(Batch.from_any([(1, 2)], op=Op.REMOVE)))
    list(graph.apply(Batch.from_any([(4, 1, 1e12)])))
    assert numbers(graph, reused.sample_influenced(graph, graph.ids.find_row(4))) == [0, 1]


def test_sets_do_not_pass_from_a_removed_vertex_to_the_next_in_its_row() -> None:
    graph, reused = Graph(), CachedCascade(2, SEED)
    list(graph.apply(Batch.from_any([(1, 2)])))
    assert numbers(graph, reused.sample_influenced(graph, 0)) == [1]
    list(graph.apply(Batch.vertices([2], Op.REMOVE_VERTEX)))
    list(graph.apply(Batch.from_any([(3, 4)])))  # one of them has the row of 2
    assert graph.ids.find_row(3) == 1
    list(graph.apply(Batch.from_any([(5, 1)])))
    assert numbers(graph, reused.sample_influenced(graph, graph.ids.find_row(5))) == [0]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_saved_and_restored_goes_on_as_if_nothing_had_been(depth: int) -> None:
    graph, reused = Graph(), CachedCascade(depth, SEED)
    batches = stream(5, 80)
    for number, batch in enumerate(batches):
        if number == len(batches) // 2:
            state = reused.state()
            again = CachedCascade(depth, SEED)
            again.restore(state)
            for array in state.values():
                array[...] = -7
        for delta in graph.apply(batch):
            for row in delta.arrived.tolist():
                found = reused.sample_influenced(graph, row)
                if number >= len(batches) // 2:
                    assert np.array_equal(again.sample_influenced(graph, row), found)
    first, second = reused.state(), again.state()
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_depth_must_be_a_number() -> None:
    with pytest.raises(
        InvalidValueError, match="depth: expected a number of rounds when reuse_influence is on, got None"
    ):
        CachedCascade(None, SEED)
