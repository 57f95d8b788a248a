"""Tests of the distributed operator against the operator of one machine on the same graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ripplevec.views import operators
from ripplevec.views.operators import Operator
from ripplevec.views.solvers import apply_chebyshev_filter, rayleigh_ritz

SEEDS, SHARDS = st.integers(0, 2**32 - 1), st.integers(1, 4)


def local_operator(pair: Any, tau: float) -> Operator:
    return Operator(pair.one._engine.graph.adjacency, pair.vertices, tau)


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
    pair, draw = graph_pair(seed, shards, vertices, edges), np.random.default_rng(seed)
    one = local_operator(pair, tau)
    block, other = draw.standard_normal((2, vertices, 4)).astype(np.float32)
    one.clear_unusable_rows(block)
    one.clear_unusable_rows(other)
    with pair.open_graph() as graph:
        many, left, right = graph.operator(tau), pair.put(graph, block), pair.put(graph, other)
        assert (many.active_count, many.mean_degree) == (one.active_count, pytest.approx(one.mean_degree))
        assert_close(many.center(left), one.center(block))
        assert_close(many.gram(left, right), one.gram(block, other))
        assert_close(many.gram(left, left), one.gram(block, block))
        assert_close(many.column_norms(left), one.column_norms(block))
        assert_close(many.column_square_sums(left), one.column_square_sums(block))
        assert_close(pair.read(many.apply(left)), one.apply(block), 1e-5)
        for operator, own, written in ((many, left, right), (one, block, other)):
            operator.combine(own[:, 1:3], written[:, 2:4], (0.5, -1.0, 2.0))
            operator.deflate(own)
            operator.scale_columns(own, np.array([1.0, 2.0, 3.0, 4.0]))
            operator.scale_columns(own[:, :2], np.array([5.0, 7.0]), np.divide)
            operator.transform_columns(own, np.arange(16.0).reshape(4, 4))
        assert_close(pair.read(right), other, 1e-5)
        assert_close(pair.read(left), block, 1e-4)


@settings(max_examples=30)
@given(seed=SEEDS, shards=SHARDS, edges=st.integers(1, 200), tau=st.floats(0.01, 300))
def test_spectrum_bounds_match_single_machine(graph_pair: Any, seed: int, shards: int, edges: int, tau: float) -> None:
    pair = graph_pair(seed, shards, 40, edges)
    with pair.open_graph() as graph:
        many = graph.operator(tau)
        assert_close(many.spectrum_bounds(), local_operator(pair, tau).spectrum_bounds())
        assert_close(many.spectrum_lower_bound(), local_operator(pair, tau).spectrum_lower_bound())


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("shards", [1, 2, 4])
def test_noise_is_independent_of_shard_count(graph_pair: Any, shards: int, kind: Any) -> None:
    pair = graph_pair(1, shards)
    expected = local_operator(pair, 1.0).make_noise(7, 3, kind)
    with pair.open_graph() as graph:
        operator = graph.operator(1.0)
        assert np.array_equal(pair.read(operator.make_noise(7, 3, kind)), expected)
        assert not np.array_equal(pair.read(operator.make_noise(8, 3, kind)), expected)


def test_noise_drawn_in_blocks_is_unchanged(graph_pair: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = graph_pair(1, 3)
    monkeypatch.setattr("ripplevec.cluster.shard_matrices.NOISE_BLOCK_WORDS", 7)
    with pair.open_graph() as graph:
        drawn = pair.read(graph.operator(1.0).make_noise(7, 3, np.float32))
    assert np.array_equal(drawn, local_operator(pair, 1.0).make_noise(7, 3, np.float32))


@pytest.mark.parametrize("room", [operators.WORKSPACE_BYTES, 0])
def test_chebyshev_filter_and_ritz_values_match_single_machine(
    graph_pair: Any, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr(operators, "WORKSPACE_BYTES", room)  # without room, 16 columns at a time
    pair, block = graph_pair(2, 3, 60, 300), np.random.default_rng(0).standard_normal((60, 20))
    one = local_operator(pair, 2.0)
    one.clear_unusable_rows(block)
    with pair.open_graph() as graph:
        many, handle = graph.operator(2.0), pair.put(graph, block)
        values = []
        for operator, own in ((many, handle), (one, block)):
            operator.deflate(own)
            apply_chebyshev_filter(operator, own, -1.0, 0.1, 5)
            values.append(rayleigh_ritz(operator, own))
        assert_close(*values)
        assert_close(np.abs(pair.read(handle)), np.abs(block), 1e-5)
