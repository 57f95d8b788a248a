from __future__ import annotations

from collections import Counter
from itertools import count

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from ripplevec.influence._kernels import derive_key, draw_uniform
from ripplevec.lab.baselines._struc2vec_kernels import (
    align_greedily,
    align_rings,
    collect_rings,
    compare_rings,
    walk_layers,
)

Runs = list[tuple[int, int]]
RUNS = st.dictionaries(st.integers(1, 60), st.integers(1, 9), min_size=1, max_size=25).map(
    lambda counts: sorted(counts.items())
)


def random_graph(vertices: int, density: float, seed: int) -> np.ndarray:
    upper = np.triu(np.random.default_rng(seed).random((vertices, vertices)) < density, 1)
    return upper | upper.T


def rings_of(matrix: np.ndarray, source: int, layers: int) -> list[Runs]:
    ring, seen, found = {source}, {source}, []
    for _ in range(layers):
        found.append(sorted(Counter(int(matrix[vertex].sum()) for vertex in ring).items()))
        ring = {int(near) for vertex in ring for near in np.flatnonzero(matrix[vertex])} - seen
        seen |= ring
    return found


def warped(a: Runs, b: Runs) -> float:
    table = np.full((len(a) + 1, len(b) + 1), np.inf)
    table[0, 0] = 0
    for i, (one, own) in enumerate(a):
        for j, (other, others) in enumerate(b):
            step = (max(one, other) / min(one, other) - 1) * max(own, others)
            table[i + 1, j + 1] = step + min(table[i, j], table[i, j + 1], table[i + 1, j])
    return float(table[-1, -1])


def aligned(a: Runs, b: Runs) -> float:
    workspace = np.full((2, max(len(a), len(b)) + 1), np.nan)
    return align_rings(np.array(a, np.int32), np.array(b, np.int32), workspace[0], workspace[1])


@settings(max_examples=50)
@given(st.integers(2, 14), st.floats(0, 0.6), st.integers(1, 5), st.integers(0, 1000))
def test_collect_rings_equals_python_reference(vertices: int, density: float, layers: int, seed: int) -> None:
    matrix = random_graph(vertices, density, seed)
    graph, sources = csr_array(matrix), np.random.default_rng(seed).permutation(vertices)
    begins, runs = collect_rings(graph.indptr.astype(np.int64), graph.indices.astype(np.int64), sources, layers)
    parts = [[tuple(run) for run in part.tolist()] for part in np.split(runs, begins[1:-1])]
    assert parts == [ring for source in sources for ring in rings_of(matrix, int(source), layers)]


def test_collect_rings_with_many_runs_enlarges_buffer() -> None:
    matrix = random_graph(300, 0.2, 0)
    graph, sources = csr_array(matrix), np.arange(300)
    begins, runs = collect_rings(graph.indptr.astype(np.int64), graph.indices.astype(np.int64), sources, 3)
    assert len(runs) == begins[-1] > 4096
    assert runs[begins[-4] :].tolist() == [list(run) for ring in rings_of(matrix, 299, 3) for run in ring]


@given(RUNS, RUNS)
def test_align_rings_equals_full_dynamic_time_warping(a: Runs, b: Runs) -> None:
    np.testing.assert_allclose(aligned(a, b), warped(a, b), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(aligned(b, a), warped(a, b), rtol=1e-9, atol=1e-12)


@given(RUNS, RUNS)
def test_align_greedily_never_costs_less_than_optimum(a: Runs, b: Runs) -> None:
    assert align_greedily(np.array(a, np.int32), np.array(b, np.int32)) >= warped(a, b) * (1 - 1e-12)


def test_align_rings_of_equal_rings_costs_nothing() -> None:
    assert aligned([(2, 3), (5, 1)], [(2, 3), (5, 1)]) == 0
    assert aligned([(2, 3)], [(4, 5)]) == 5
    assert aligned([(2, 3), (3, 1)], [(2, 3)]) == 1.5


def test_compare_rings_sums_costs_until_ring_is_missing() -> None:
    layers, reach = 4, 3
    matrix = random_graph(20, 0.08, 0)
    matrix = matrix[matrix.any(axis=1)][:, matrix.any(axis=1)]
    graph, vertices = csr_array(matrix), len(matrix)
    begins, runs = collect_rings(
        graph.indptr.astype(np.int64), graph.indices.astype(np.int64), np.arange(vertices), layers
    )
    distance = np.full((layers, vertices, reach), np.nan)
    compare_rings(begins, runs, distance, 0, vertices)
    around = [rings_of(matrix, vertex, layers) for vertex in range(vertices)]
    expected = np.full_like(distance, np.inf)
    for v, j in np.ndindex(vertices, reach):
        if v + 1 + j < vertices:
            pairs = zip(around[v], around[v + 1 + j], strict=True)
            expected[:, v, j] = np.cumsum([warped(*pair) if all(pair) else np.inf for pair in pairs])
    assert np.isinf(expected[-1, :-reach]).any()
    np.testing.assert_allclose(distance, expected)


def layered(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Build three layers of six vertices with up to two partners on either side; upper layers hold fewer vertices."""
    rng = np.random.default_rng(seed)
    weights = np.zeros((3, 6, 4))
    top = rng.integers(0, 3, 6)
    for v, slot in np.ndindex(6, 2):
        if (u := v + 1 + slot) < 6:
            shared = np.arange(3) <= min(top[v], top[u])
            weights[shared, v, 2 + slot] = weights[shared, u, 1 - slot] = 1 - rng.random()
    up = rng.random((3, 6)) * np.vstack([weights[1:].any(axis=2), np.zeros((1, 6))])
    return np.cumsum(weights, axis=2), up


def walked(cumulative: np.ndarray, up: np.ndarray, stay: float, start: int, key: np.uint64, length: int) -> list[int]:
    path, layer, numbers = [start], 0, (draw_uniform(key, start, i) for i in count())
    while len(path) < length:
        stays, number, here = next(numbers) < stay, next(numbers), path[-1]
        if not stays:
            layer = layer + 1 if number < up[layer, here] else max(layer - 1, 0)
            continue
        sums = cumulative[layer, here]
        slot = next(slot for slot in range(4) if sums[slot] >= (1 - number) * sums[-1])
        path.append(here + (-2, -1, 1, 2)[slot])
    return path


@settings(max_examples=50)
@given(st.integers(0, 1000), st.integers(1, 30))
def test_walk_layers_equals_python_reference(seed: int, length: int) -> None:
    cumulative, up = layered(seed)
    starts, walks = np.random.default_rng(seed).permutation(6), np.empty((6, length), np.int64)
    key = np.uint64(derive_key(seed, 0, 0))
    walk_layers(cumulative, up, 0.3, starts, key, walks)
    assert walks.tolist() == [walked(cumulative, up, 0.3, int(start), key, length) for start in starts]


def test_walk_layers_chooses_partners_by_weight() -> None:
    cumulative = np.array([[[0.0, 3.0], [1.0, 4.0], [2.0, 2.0]]])
    walks = np.empty((1, 20_000), np.int64)
    walk_layers(cumulative, np.zeros((1, 3)), 0.5, np.array([1]), np.uint64(derive_key(3, 0, 0)), walks)
    assert (walks[0, ::2] == 1).all()
    assert abs((walks[0, 1::2] == 2).mean() - 0.75) < 0.02
