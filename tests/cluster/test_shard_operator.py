"""Tests of the operator on shards against the operator of one machine on the same graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ripplevec.cluster.shard import Shard
from ripplevec.cluster.shard_operator import ShardedAdjacency, ShardOperator
from ripplevec.views import operators
from ripplevec.views.operators import Operator
from ripplevec.views.solvers import apply_chebyshev_filter, rayleigh_ritz

SEEDS, SHARDS = st.integers(0, 2**32 - 1), st.integers(1, 4)


def local_operator(pair: Any, tau: float) -> Operator:
    return Operator(pair.one.engine.graph.adjacency, pair.vertices, tau)


def to_shard_matrix(graph: ShardedAdjacency, block: NDArray[Any]) -> NDArray[Any]:
    """Return the matrix of one shard, filled from a block whose rows are in order of arrival."""
    rows, numbers = graph.shard.list_rows()
    matrix = graph.zeros(block.shape[1], block.dtype)
    matrix[rows] = block[numbers]
    return matrix


def run_on_shards(pair: Any, tau: float, blocks: list[NDArray[Any]], program: Any) -> tuple[Any, list[NDArray[Any]]]:
    """Run a program on all shards; return its result, and its matrices by arrival number."""

    def run(shard: Shard) -> Any:
        graph = ShardedAdjacency(shard)
        with graph.mapped():
            result, matrices = program(graph.operator(tau), *(to_shard_matrix(graph, block) for block in blocks))
        rows, numbers = shard.list_rows()
        return result, numbers, [matrix[rows] for matrix in matrices]

    results = pair.run(run)
    gathered = []
    for index, matrix in enumerate(results[0][2]):
        gathered.append(np.zeros((pair.vertices, matrix.shape[1]), matrix.dtype))
        for _, numbers, matrices in results:
            gathered[-1][numbers] = matrices[index]
    for other, _, _ in results[1:]:
        assert_same(other, results[0][0])  # all shards continue with the same numbers
    return results[0][0], gathered


def assert_same(left: Any, right: Any) -> None:
    assert all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


def assert_close(actual: Any, expected: Any, relative: float = 1e-6) -> None:
    np.testing.assert_allclose(
        actual, expected, rtol=relative, atol=relative * max(np.abs(expected).max(initial=0.0), 1e-9)
    )


@settings(max_examples=30)
@given(seed=SEEDS, shards=SHARDS, vertices=st.integers(2, 40), edges=st.integers(1, 120), tau=st.floats(0.01, 20))
@example(seed=0, shards=4, vertices=2, edges=3, tau=1.0)  # two or three shards are empty
@example(seed=0, shards=4, vertices=40, edges=5, tau=1.0)  # most vertices have no edge
def test_operator_steps_match_single_machine(
    graph_pair: Any, seed: int, shards: int, vertices: int, edges: int, tau: float
) -> None:
    def program(operator: Operator, left: Any, right: Any) -> Any:
        results = [
            np.array([operator.active_count, operator.mean_degree]),
            operator.center(left),
            operator.gram(left, right),
            operator.gram(left, left),
            operator.column_norms(left),
            operator.column_square_sums(left),
            np.array(operator.max_row_length(left)),
        ]
        applied = operator.apply(left)
        operator.combine(left[:, 1:3], right[:, 2:4], (0.5, -1.0, 2.0))
        operator.deflate(left)
        operator.scale_columns(left, np.array([1.0, 2.0, 3.0, 4.0]))
        operator.scale_columns(left[:, :2], np.array([5.0, 7.0]), np.divide)
        operator.transform_columns(left, np.arange(16.0).reshape(4, 4))
        return results, [applied, right, left]

    pair, draw = graph_pair(seed, shards, vertices, edges), np.random.default_rng(seed)
    one = local_operator(pair, tau)
    blocks = draw.standard_normal((2, vertices, 4)).astype(np.float32)
    for block in blocks:
        one.clear_unusable_rows(block)
    numbers, matrices = run_on_shards(pair, tau, list(blocks), program)
    expected_numbers, expected_matrices = program(one, *blocks.copy())
    for actual, expected in zip(numbers, expected_numbers, strict=True):
        assert_close(actual, expected)
    for actual, expected in zip(matrices, expected_matrices, strict=True):
        assert_close(actual, expected, 1e-4)


@settings(max_examples=30)
@given(seed=SEEDS, shards=SHARDS, edges=st.integers(1, 200), tau=st.floats(0.01, 300))
def test_spectrum_estimates_match_single_machine(
    graph_pair: Any, seed: int, shards: int, edges: int, tau: float
) -> None:
    def program(operator: Operator) -> Any:
        estimate = operator.estimate_spectrum()
        return [estimate.low, estimate.high, operator.spectrum_lower_bound(), estimate.quantile(0.1)], []

    pair = graph_pair(seed, shards, 40, edges)
    assert_close(run_on_shards(pair, tau, [], program)[0], program(local_operator(pair, tau))[0])


@pytest.mark.parametrize("block_words", [7, 1 << 20])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shards", [1, 2, 4])
def test_noise_is_independent_of_shard_count(
    graph_pair: Any, monkeypatch: pytest.MonkeyPatch, shards: int, dtype: Any, block_words: int
) -> None:
    def program(operator: Operator) -> Any:
        return [], [operator.make_noise(7, 3, dtype), operator.make_noise(8, 3, dtype)]

    monkeypatch.setattr("ripplevec.cluster.shard_operator.NOISE_BLOCK_WORDS", block_words)
    pair = graph_pair(1, shards)
    (first, second), expected = run_on_shards(pair, 1.0, [], program)[1], program(local_operator(pair, 1.0))[1]
    assert np.array_equal(first, expected[0])
    assert np.array_equal(second, expected[1])
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("workspace_bytes", [operators.WORKSPACE_BYTES, 0])
def test_chebyshev_filter_and_ritz_values_match_single_machine(
    graph_pair: Any, monkeypatch: pytest.MonkeyPatch, workspace_bytes: int
) -> None:
    def program(operator: Operator, block: Any) -> Any:
        operator.deflate(block)
        apply_chebyshev_filter(operator, block, -1.0, 0.1, 5)
        return [rayleigh_ritz(operator, block)], [block]

    monkeypatch.setattr(operators, "WORKSPACE_BYTES", workspace_bytes)  # with 0 bytes, 16 columns at a time
    pair, block = graph_pair(2, 3, 60, 300), np.random.default_rng(0).standard_normal((60, 20))
    one = local_operator(pair, 2.0)
    one.clear_unusable_rows(block)
    (values,), (vectors,) = run_on_shards(pair, 2.0, [block], program)
    (expected_values,), (expected_vectors,) = program(one, block.copy())
    assert_close(values, expected_values)
    assert_close(np.abs(vectors), np.abs(expected_vectors), 1e-5)


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), shards=SHARDS, vertices=st.integers(1, 40), edges=st.integers(0, 90))
@example(seed=0, shards=4, vertices=1, edges=0)
def test_slots_are_mapped_to_matrix_rows_and_restored(
    graph_pair: Any, seed: int, shards: int, vertices: int, edges: int
) -> None:
    def program(operator: Any) -> Any:
        graph, used = operator.graph, operator.adjacency.slots()
        mapped = graph.graph.adjacency.links.neighbor[used]
        assert mapped.min(initial=0) >= 0
        assert mapped.max(initial=0) < len(graph.zeros(1, np.float32))
        return [], []

    pair = graph_pair(seed, shards, vertices, edges)
    before = pair.slots()
    run_on_shards(pair, 1.0, [], program)
    assert all(map(np.array_equal, pair.slots(), before))


@pytest.mark.parametrize("in_files", [False, True])
def test_copy_for_solver_is_stored_where_vectors_are(graph_pair: Any, tmp_path: Any, in_files: bool) -> None:
    def program(operator: ShardOperator) -> Any:
        shard = operator.graph.shard
        copied = operator.graph.copy_for_solver(shard.store.vectors[: operator.rows], 1)
        memory: Any = copied
        while isinstance(memory, np.ndarray) and memory.base is not None:
            memory = memory.base
        assert isinstance(memory, np.ndarray) is not in_files
        return [], [copied]

    pair = graph_pair(0, 2, storage_dir=tmp_path if in_files else None)
    (copied,) = run_on_shards(pair, 1.0, [], program)[1]
    assert np.array_equal(copied, pair.one.engine.store.vectors[:40])
