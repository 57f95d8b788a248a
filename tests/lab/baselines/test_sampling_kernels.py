from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from ripplevec.influence._kernels import derive_key, draw_uniform
from ripplevec.lab.baselines._sampling_kernels import (
    MAX_REJECTIONS,
    AliasTable,
    EdgeSampler,
    TrainingSchedule,
    build_alias_table,
    build_walk_graph,
    sample_alias,
    train_on_edges,
    walk_by_weight,
    walk_with_bias,
)


def weighted_reference(matrix: np.ndarray, start: int, key: np.uint64, length: int) -> list[int]:
    path, here = [], start
    for step in range(length):
        path.append(here)
        neighbors = np.flatnonzero(matrix[here]) if here >= 0 else np.empty(0, int)
        if not len(neighbors):
            here = -1
            continue
        share = np.cumsum(matrix[here, neighbors])
        here = int(neighbors[np.searchsorted(share[:-1], draw_uniform(key, start, step) * share[-1], side="right")])
    return path


@settings(max_examples=50)
@given(st.integers(1, 12), st.floats(0, 1), st.integers(1, 20), st.integers(0, 1000), st.booleans())
def test_walk_by_weight_equals_python_reference(
    vertices: int, density: float, length: int, seed: int, directed: bool
) -> None:
    rng = np.random.default_rng(seed)
    matrix = (rng.random((vertices, vertices)) < density) * rng.integers(1, 5, (vertices, vertices)).astype(float)
    matrix = matrix if directed else matrix + matrix.T
    graph = csr_array(matrix)
    cumulative = np.concatenate([[0.0], np.cumsum(graph.data)])
    starts, walks = rng.permutation(vertices), np.empty((vertices, length), np.int64)
    key = np.uint64(derive_key(seed, 0, 0))
    walk_by_weight(graph.indptr.astype(np.int64), graph.indices.astype(np.int64), cumulative, starts, key, walks)
    assert walks.tolist() == [weighted_reference(matrix, int(start), key, length) for start in starts]


def test_walk_by_weight_chooses_neighbors_by_weight() -> None:
    first, neighbor = np.array([0, 2, 3, 4]), np.array([1, 2, 0, 0])
    cumulative = np.array([0.0, 1.0, 4.0, 5.0, 8.0])
    walks = np.empty((1, 20_001), np.int64)
    walk_by_weight(first, neighbor, cumulative, np.array([0]), np.uint64(derive_key(3, 0, 0)), walks)
    assert (walks[0, ::2] == 0).all()
    assert abs((walks[0, 1::2] == 2).mean() - 0.75) < 0.02


def biased_reference(
    matrix: np.ndarray, biases: tuple[float, float, float], start: int, key: np.uint64, length: int
) -> list[int]:
    path = [start]
    for step in range(length - 1):
        here, before = path[-1], path[-2] if step else -1
        neighbors = np.flatnonzero(matrix[here]) if here >= 0 else np.empty(0, int)
        if not len(neighbors):
            path.append(-1)
            continue
        bias = np.array([biases[0 if x == before else 1 if step == 0 or matrix[before, x] else 2] for x in neighbors])
        for trial in range(MAX_REJECTIONS + 1):
            share = np.cumsum(matrix[here, neighbors] * (bias if trial == MAX_REJECTIONS else 1))
            aim = draw_uniform(key, start, step + (2 * trial << 32)) * share[-1]
            at = int(np.searchsorted(share[:-1], aim, side="right"))
            refused = draw_uniform(key, start, step + ((2 * trial + 1) << 32)) * max(biases) >= bias[at]
            if step == 0 or trial == MAX_REJECTIONS or not refused:
                break
        path.append(int(neighbors[at]))
    return path


@settings(max_examples=50)
@given(
    st.integers(1, 10), st.floats(0, 1), st.integers(0, 1000), st.sampled_from([1.0, 0.25, 4.0, 1e-6]), st.booleans()
)
def test_walk_with_bias_equals_python_reference(
    vertices: int, density: float, seed: int, bias: float, directed: bool
) -> None:
    rng = np.random.default_rng(seed)
    matrix = (rng.random((vertices, vertices)) < density) * rng.integers(1, 5, (vertices, vertices)).astype(float)
    matrix = matrix if directed else matrix + matrix.T
    biases, key = (bias, 1.0, 0.5), np.uint64(derive_key(seed, 0, 0))
    starts, walks = rng.permutation(vertices), np.empty((vertices, 12), np.int64)
    walk_with_bias(build_walk_graph(csr_array(matrix)), biases, starts, key, walks)
    assert walks.tolist() == [biased_reference(matrix, biases, int(start), key, 12) for start in starts]


@settings(max_examples=50)
@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30))
def test_build_alias_table_represents_distribution(weights: list[float]) -> None:
    shares = np.array(weights) / sum(weights)
    table = build_alias_table(np.array(weights))
    assert ((table.chance > 0) & (table.chance <= 1 + 1e-9)).all()
    mass = table.chance.copy()
    np.add.at(mass, table.other, 1 - table.chance)
    np.testing.assert_allclose(mass / len(weights), shares, rtol=1e-6, atol=1e-12)


def test_sample_alias_draws_entries_by_chance() -> None:
    table = AliasTable(np.array([0.25, 1.0]), np.array([1, 1]))
    drawn = [sample_alias(table, share) for share in (0.0, 0.12, 0.13, 0.49, 0.5, 0.99)]
    assert drawn == [0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("same", [True, False])
def test_train_on_edges_equals_python_reference(same: bool) -> None:
    rng, key, schedule = np.random.default_rng(0), np.uint64(derive_key(1, 0, 0)), TrainingSchedule(50, 3, 0.5)
    ends, weights = np.array([[0, 1], [1, 0], [1, 2], [2, 1]]), np.array([1.0, 1.0, 3.0, 3.0])
    sampler = EdgeSampler(ends, build_alias_table(weights), build_alias_table(np.ones(4)))
    vectors = rng.standard_normal((4, 3)).astype(np.float32)
    contexts = vectors if same else rng.standard_normal((4, 3)).astype(np.float32)
    x = vectors.astype(np.float64)
    y = x if same else contexts.astype(np.float64)
    train_on_edges(sampler, vectors, contexts, schedule, key, 0, 50)
    for sample in range(50):
        source, target = ends[sample_alias(sampler.by_weight, draw_uniform(key, sample, 0))]
        noise = [sample_alias(sampler.noise, draw_uniform(key, sample, turn)) for turn in (1, 2, 3)]
        step = np.zeros(3)
        for other, label in [(target, 1), *((v, 0) for v in noise if v not in (source, target))]:
            push = 0.5 * (1 - sample / 50) * (label - 1 / (1 + np.exp(-x[source] @ y[other])))
            step += push * y[other]
            y[other] += push * x[source]
        x[source] += step
    np.testing.assert_allclose(vectors, x, atol=1e-4)
    np.testing.assert_allclose(contexts, y, atol=1e-4)
