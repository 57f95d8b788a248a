"""The cascade against a plain one on the same draws, and its frequencies against a / d."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.batch import Batch, Op
from ripplevec.graph.graph import Graph
from ripplevec.influence import _kernels as kernels
from ripplevec.influence.cascade import UNLIMITED_DEPTH, Cascade

Edges = list[tuple[int, int, float]]


def graph_of(edges: Edges, *, directed: bool = False, removed: tuple[int, ...] = ()) -> Graph:
    graph = Graph(directed=directed)
    list(graph.apply(Batch.from_any([edge for edge in edges if edge[0] != edge[1]])))
    if removed:
        list(graph.apply(Batch.vertices(list(removed), Op.REMOVE_VERTEX)))
    return graph


def random_edges(seed: int, vertices: int = 40, count: int = 110) -> Edges:
    rng = np.random.default_rng(seed)
    return [(int(u), int(v), float(w)) for u, v, w in rng.integers(1, [vertices, vertices, 7], (count, 3)) if u != v]


class Plain:
    """Influence as the paper words it, over dicts keyed by arrival number."""

    def __init__(self, edges: Edges, *, directed: bool = False, removed: tuple[int, ...] = ()) -> None:
        numbers: dict[int, int] = {}
        for u, v, _ in edges:
            numbers.setdefault(u, len(numbers))
            numbers.setdefault(v, len(numbers))
        gone = {numbers[vertex] for vertex in removed}
        self.away: dict[int, dict[int, float]] = {number: {} for number in numbers.values() if number not in gone}
        for u, v, weight in edges:
            for one, other, part in ((u, v, weight), (v, u, 0.0 if directed else weight)):
                ends = numbers[one], numbers[other]
                if not gone & set(ends):
                    known = self.away[ends[0]].get(ends[1], 0.0)
                    self.away[ends[0]][ends[1]] = known + part

    def rounds(self, source: int, depth: int | None, seed: int, attempt: int = 0) -> list[list[int]]:
        key = np.uint64(kernels.derive_key(seed, source, attempt))
        seen, front, found = {source}, [source], []
        while front and len(found) != depth:
            reached: dict[int, None] = {}
            for v in front:
                for u, weight in self.away[v].items():
                    coming = sum(row.get(u, 0.0) for row in self.away.values())
                    if u not in seen and weight and kernels.draw_uniform(key, u, v) < weight / coming:
                        reached[u] = None
            front = list(reached)
            seen |= set(front)
            found.append(front)
        return found


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("depth", [0, 1, 2, 3, 4, None])
def test_agrees_with_a_plain_cascade_on_the_same_draws(directed: bool, depth: int | None) -> None:
    edges, gone = random_edges(depth or 9), (3, 8)
    graph, plain = graph_of(edges, directed=directed, removed=gone), Plain(edges, directed=directed, removed=gone)
    longest = 0
    for seed in (0, 5, 2**40):
        cascade = Cascade(depth, seed)
        for row in graph.rows_by_arrival()[::3].tolist():
            number = int(graph.arrival[row])
            rows, ends = cascade.sample_rounds(graph, row, cascade.depth)
            found = [graph.arrival[rows[a:b]].tolist() for a, b in pairwise(ends)]
            assert found == plain.rounds(number, depth, seed)
            assert np.array_equal(cascade.sample_influenced(graph, row), rows)
            longest = max(longest, len(found))
    assert longest == depth if depth is not None else longest > 2


@settings(max_examples=40)
@given(
    edges=st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 6), st.sampled_from([0.25, 1.0, 5.0])).filter(
            lambda e: e[0] != e[1]
        ),
        min_size=1,
        max_size=15,
    ),
    seed=st.integers(0, 2**63 - 1),
    depth=st.sampled_from([0, 1, 2, None]),
)
def test_rounds_are_disjoint_and_lie_next_to_the_round_before(edges: Edges, seed: int, depth: int | None) -> None:
    graph = graph_of(edges)
    cascade = Cascade(depth, seed)
    for source in graph.rows_by_arrival().tolist():
        rows, ends = cascade.sample_rounds(graph, source, cascade.depth)
        assert source not in rows
        assert np.unique(rows).size == rows.size
        before = {source}
        for a, b in pairwise(ends):
            around = {u for v in before for u in graph.adjacency.neighbors(v).tolist()}
            assert set(rows[a:b].tolist()) <= around
            before = set(rows[a:b].tolist())
        if depth is not None:
            assert len(ends) - 1 <= depth


def frequencies(graph: Graph, source: int, depth: int, times: int) -> dict[int, float]:
    counts = np.zeros(graph.row_count)
    for seed in range(times):
        counts[Cascade(depth, seed).sample_influenced(graph, source)] += 1
    return dict(zip(graph.ids.to_list(np.arange(graph.row_count)), counts / times, strict=True))  # type: ignore[arg-type]


def agree(found: float, chance: float, times: int) -> bool:
    return abs(found - chance) <= 5 * np.sqrt(chance * (1 - chance) / times) + 1e-12


def test_frequencies_are_weight_over_strength() -> None:
    """0 asks 1 (all of its weight), 2 (1 of 4), 3 (5 of 8), 4 (1 of 100); nobody else."""
    edges: Edges = [(0, 1, 2.0), (0, 2, 1.0), (2, 5, 3.0), (0, 3, 5.0), (3, 6, 3.0), (0, 4, 1.0), (4, 7, 99.0)]
    found = frequencies(graph_of(edges), 0, 1, 4000)
    for vertex, chance in {0: 0.0, 1: 1.0, 2: 1 / 4, 3: 5 / 8, 4: 1 / 100, 5: 0.0, 6: 0.0, 7: 0.0}.items():
        assert agree(found[vertex], chance, 4000), vertex


def test_frequencies_multiply_along_a_path() -> None:
    edges: Edges = [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 3.0)]
    found = frequencies(graph_of(edges), 0, 2, 4000)
    for vertex, chance in {1: 1 / 2, 2: 1 / 2 * 1 / 4, 3: 0.0}.items():
        assert agree(found[vertex], chance, 4000), vertex


def test_a_vertex_asked_by_two_has_two_chances() -> None:
    edges: Edges = [(0, 1, 1.0), (0, 2, 1.0), (1, 3, 1e-6), (2, 3, 1e-6), (3, 4, 2e-6)]
    found = frequencies(graph_of(edges), 0, 2, 4000)
    assert agree(found[3], 1 - (3 / 4) ** 2, 4000)


def test_directed_influence_flows_along_edges_by_share_of_in_strength() -> None:
    """0 → 1 is 1 of the 4 that come in at 1, whatever goes out of it; 2 → 0 carries nothing back to 2."""
    edges: Edges = [(0, 1, 1.0), (5, 1, 3.0), (1, 6, 50.0), (2, 0, 9.0), (0, 3, 2.0), (3, 0, 7.0)]
    found = frequencies(graph_of(edges, directed=True), 0, 1, 4000)
    for vertex, chance in {1: 1 / 4, 5: 0.0, 6: 0.0, 2: 0.0, 3: 1.0}.items():
        assert agree(found[vertex], chance, 4000), vertex


def test_another_attempt_or_seed_is_another_draw_and_the_same_is_the_same() -> None:
    graph = graph_of(random_edges(1))
    sources = graph.rows_by_arrival().tolist()

    def all_of(seed: int, attempt: int = 0) -> list[list[int]]:
        cascade = Cascade(1, seed)
        return [cascade.sample_influenced(graph, source, attempt).tolist() for source in sources]

    assert all_of(0) == all_of(0)
    assert all_of(0) != all_of(0, attempt=1)
    assert all_of(0) != all_of(1)


def test_draws_do_not_depend_on_rows() -> None:
    """The same vertices with the same arrival numbers in other rows: the same draws."""
    edges = random_edges(2)
    graph, turned = graph_of(edges), graph_of(edges)
    order = np.random.default_rng(0).permutation(graph.row_count)
    packed = graph.adjacency.to_packed()
    starts = np.cumsum(packed["degree"]) - packed["degree"]
    back = np.argsort(order)
    parts = [np.arange(starts[row], starts[row] + packed["degree"][row]) for row in order]
    turned.adjacency = type(graph.adjacency).from_packed(
        {
            "degree": packed["degree"][order],
            "strength": packed["strength"][order],
            "neighbor": back[packed["neighbor"][np.concatenate(parts)]],
            "weight": packed["weight"][np.concatenate(parts)],
        },
        directed=False,
        duplicates="add",
    )
    turned.arrival[: graph.row_count] = graph.arrival[order]
    for row in range(graph.row_count):
        there = Cascade(3, 0).sample_influenced(turned, row)
        here = Cascade(3, 0).sample_influenced(graph, int(order[row]))
        assert turned.arrival[there].tolist() == graph.arrival[here].tolist()


def test_the_graph_may_grow_between_cascades() -> None:
    graph = graph_of([(0, 1, 1.0)])
    cascade = Cascade(1, 0)
    assert cascade.sample_influenced(graph, 0).tolist() == [1]
    list(graph.apply(Batch.from_any([(9, vertex) for vertex in range(100, 200)])))
    row = graph.ids.find_row(9)
    assert sorted(cascade.sample_influenced(graph, row)) == sorted(graph.adjacency.neighbors(row))


def test_no_depth_means_until_nobody_is_new() -> None:
    """On a path whose weights fall by 1000 each step the first vertex reaches far, the last hardly its neighbor."""
    graph = graph_of([(i, i + 1, 1000.0 ** (5 - i)) for i in range(10)])
    assert Cascade(None, 0).depth == UNLIMITED_DEPTH
    assert Cascade(None, 0).sample_influenced(graph, 0).tolist() == list(range(1, 11))
    assert Cascade(4, 0).sample_influenced(graph, 0).tolist() == [1, 2, 3, 4]
    assert Cascade(None, 0).sample_influenced(graph, 10).tolist() == []
