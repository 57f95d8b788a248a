"""Cascade compared with a reference on the same draws, and its frequencies with a / d."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.batch import Batch, Op
from ripplevec.errors import InvalidValueError
from ripplevec.graph.graph import Graph
from ripplevec.influence import _kernels as kernels
from ripplevec.influence.cascade import UNLIMITED_DEPTH, CachedCascade, Cascade

Edges = list[tuple[int, int, float]]


def create_graph(edges: Edges, *, directed: bool = False, removed: tuple[int, ...] = ()) -> Graph:
    graph = Graph(directed=directed)
    list(graph.apply(Batch.from_any([edge for edge in edges if edge[0] != edge[1]])))
    if removed:
        list(graph.apply(Batch.vertices(list(removed), Op.REMOVE_VERTEX)))
    return graph


def random_edges(seed: int, vertices: int = 40, count: int = 110) -> Edges:
    rng = np.random.default_rng(seed)
    return [(int(u), int(v), float(w)) for u, v, w in rng.integers(1, [vertices, vertices, 7], (count, 3)) if u != v]


class DictCascade:
    """Reference: influence as defined in the paper, over dicts keyed by arrival number."""

    def __init__(self, edges: Edges, *, directed: bool = False, removed: tuple[int, ...] = ()) -> None:
        numbers: dict[int, int] = {}
        for u, v, _ in edges:
            numbers.setdefault(u, len(numbers))
            numbers.setdefault(v, len(numbers))
        removed_numbers = {numbers[vertex] for vertex in removed}
        self.outgoing: dict[int, dict[int, float]] = {
            number: {} for number in numbers.values() if number not in removed_numbers
        }
        for u, v, weight in edges:
            for one, other, part in ((u, v, weight), (v, u, 0.0 if directed else weight)):
                ends = numbers[one], numbers[other]
                if not removed_numbers & set(ends):
                    known = self.outgoing[ends[0]].get(ends[1], 0.0)
                    self.outgoing[ends[0]][ends[1]] = known + part

    def rounds(self, source: int, depth: int | None, seed: int, attempt: int = 0) -> list[list[int]]:
        key = np.uint64(kernels.derive_key(seed, source, attempt))
        seen, frontier, found = {source}, [source], []
        while frontier and len(found) != depth:
            reached: dict[int, None] = {}
            for v in frontier:
                for u, weight in self.outgoing[v].items():
                    incoming = sum(row.get(u, 0.0) for row in self.outgoing.values())
                    if u not in seen and weight and kernels.draw_uniform(key, u, v) < weight / incoming:
                        reached[u] = None
            frontier = list(reached)
            seen |= set(frontier)
            found.append(frontier)
        return found


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("depth", [0, 1, 2, 3, 4, None])
def test_cascade_same_draws_matches_reference(directed: bool, depth: int | None) -> None:
    edges, removed = random_edges(depth or 9), (3, 8)
    graph = create_graph(edges, directed=directed, removed=removed)
    reference = DictCascade(edges, directed=directed, removed=removed)
    longest = 0
    for seed in (0, 5, 2**40):
        cascade = Cascade(depth, seed)
        for row in graph.rows_by_arrival()[::3].tolist():
            number = int(graph.arrival[row])
            rows, ends = cascade.sample_rounds(graph, row, cascade.depth)
            found = [graph.arrival[rows[a:b]].tolist() for a, b in pairwise(ends)]
            assert found == reference.rounds(number, depth, seed)
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
def test_rounds_are_disjoint_and_adjacent_to_the_previous_round(edges: Edges, seed: int, depth: int | None) -> None:
    graph = create_graph(edges)
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


def is_close(found: float, probability: float, times: int) -> bool:
    return abs(found - probability) <= 5 * np.sqrt(probability * (1 - probability) / times) + 1e-12


def test_frequencies_one_round_are_weight_over_strength() -> None:
    """Vertex 0 has all of the strength of 1, 1/4 of that of 2, 5/8 of 3, 1/100 of 4, and no other edges."""
    edges: Edges = [(0, 1, 2.0), (0, 2, 1.0), (2, 5, 3.0), (0, 3, 5.0), (3, 6, 3.0), (0, 4, 1.0), (4, 7, 99.0)]
    found = frequencies(create_graph(edges), 0, 1, 4000)
    for vertex, probability in {0: 0.0, 1: 1.0, 2: 1 / 4, 3: 5 / 8, 4: 1 / 100, 5: 0.0, 6: 0.0, 7: 0.0}.items():
        assert is_close(found[vertex], probability, 4000), vertex


def test_frequencies_along_a_path_multiply() -> None:
    edges: Edges = [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 3.0)]
    found = frequencies(create_graph(edges), 0, 2, 4000)
    for vertex, probability in {1: 1 / 2, 2: 1 / 2 * 1 / 4, 3: 0.0}.items():
        assert is_close(found[vertex], probability, 4000), vertex


def test_frequency_of_vertex_with_two_sources_combines_both() -> None:
    edges: Edges = [(0, 1, 1.0), (0, 2, 1.0), (1, 3, 1e-6), (2, 3, 1e-6), (3, 4, 2e-6)]
    found = frequencies(create_graph(edges), 0, 2, 4000)
    assert is_close(found[3], 1 - (3 / 4) ** 2, 4000)


def test_directed_cascade_follows_edges_by_share_of_in_strength() -> None:
    """0 → 1 is 1/4 of the in-strength of 1, whatever its out-strength; 2 → 0 has no influence on 2."""
    edges: Edges = [(0, 1, 1.0), (5, 1, 3.0), (1, 6, 50.0), (2, 0, 9.0), (0, 3, 2.0), (3, 0, 7.0)]
    found = frequencies(create_graph(edges, directed=True), 0, 1, 4000)
    for vertex, probability in {1: 1 / 4, 5: 0.0, 6: 0.0, 2: 0.0, 3: 1.0}.items():
        assert is_close(found[vertex], probability, 4000), vertex


def test_cascade_another_attempt_or_seed_is_another_sample() -> None:
    graph = create_graph(random_edges(1))
    sources = graph.rows_by_arrival().tolist()

    def all_of(seed: int, attempt: int = 0) -> list[list[int]]:
        cascade = Cascade(1, seed)
        return [cascade.sample_influenced(graph, source, attempt).tolist() for source in sources]

    assert all_of(0) == all_of(0)
    assert all_of(0) != all_of(0, attempt=1)
    assert all_of(0) != all_of(1)


def test_cascade_does_not_depend_on_rows() -> None:
    """The same vertices with the same arrival numbers, but in other rows, get the same draws."""
    edges = random_edges(2)
    graph, permuted = create_graph(edges), create_graph(edges)
    order = np.random.default_rng(0).permutation(graph.row_count)
    packed = graph.adjacency.to_packed()
    starts = np.cumsum(packed["degree"]) - packed["degree"]
    back = np.argsort(order)
    parts = [np.arange(starts[row], starts[row] + packed["degree"][row]) for row in order]
    permuted.adjacency = type(graph.adjacency).from_packed(
        {
            "degree": packed["degree"][order],
            "strength": packed["strength"][order],
            "neighbor": back[packed["neighbor"][np.concatenate(parts)]],
            "weight": packed["weight"][np.concatenate(parts)],
        },
        directed=False,
        duplicates="add",
    )
    permuted.arrival[: graph.row_count] = graph.arrival[order]
    for row in range(graph.row_count):
        there = Cascade(3, 0).sample_influenced(permuted, row)
        here = Cascade(3, 0).sample_influenced(graph, int(order[row]))
        assert permuted.arrival[there].tolist() == graph.arrival[here].tolist()


def test_cascade_after_graph_growth_reaches_new_vertices() -> None:
    graph = create_graph([(0, 1, 1.0)])
    cascade = Cascade(1, 0)
    assert cascade.sample_influenced(graph, 0).tolist() == [1]
    list(graph.apply(Batch.from_any([(9, vertex) for vertex in range(100, 200)])))
    row = graph.ids.find_row(9)
    assert sorted(cascade.sample_influenced(graph, row)) == sorted(graph.adjacency.neighbors(row))


def test_cascade_without_depth_runs_until_no_vertex_is_new() -> None:
    """On a path whose weights fall by 1000 per step, the first vertex reaches far, and the last hardly its neighbor."""
    graph = create_graph([(i, i + 1, 1000.0 ** (5 - i)) for i in range(10)])
    assert Cascade(None, 0).depth == UNLIMITED_DEPTH
    assert Cascade(None, 0).sample_influenced(graph, 0).tolist() == list(range(1, 11))
    assert Cascade(4, 0).sample_influenced(graph, 0).tolist() == [1, 2, 3, 4]
    assert Cascade(None, 0).sample_influenced(graph, 10).tolist() == []


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
