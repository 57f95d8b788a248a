"""The operator on shards against that of one machine, on the same graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ripplevec.views import operators
from ripplevec.views.operators import Operator
from ripplevec.views.subspace import apply_chebyshev_filter, rayleigh_ritz

SEEDS, SHARDS = st.integers(0, 2**32 - 1), st.integers(1, 4)


def here(pair: Any, tau: float) -> Operator:
    return Operator(pair.one._engine.graph.adjacency, pair.vertices, tau)


def close(ours: Any, theirs: Any, relative: float = 1e-6) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=relative, atol=relative * max(np.abs(theirs).max(initial=0.0), 1e-9))


@settings(max_examples=30)
@given(seed=SEEDS, shards=SHARDS, vertices=st.integers(2, 40), edges=st.integers(1, 120), tau=st.floats(0.01, 20))
@example(seed=0, shards=4, vertices=2, edges=3, tau=1.0)  # two shards have no vertex, or three
@example(seed=0, shards=4, vertices=40, edges=5, tau=1.0)  # most vertices have no edge
def test_every_step_agrees_with_one_machine(
    pair_of: Any, seed: int, shards: int, vertices: int, edges: int, tau: float
) -> None:
    pair, draw = pair_of(seed, shards, vertices, edges), np.random.default_rng(seed)
    one = here(pair, tau)
    block, other = draw.standard_normal((2, vertices, 4)).astype(np.float32)
    one.clear_unusable_rows(block)
    one.clear_unusable_rows(other)
    with pair.workspace() as workspace:
        many, left, right = workspace.operator(tau), pair.put(workspace, block), pair.put(workspace, other)
        assert (many.active_count, many.mean_degree) == (one.active_count, pytest.approx(one.mean_degree))
        close(many.center(left), one.center(block))
        close(many.gram(left, right), one.gram(block, other))
        close(many.gram(left, left), one.gram(block, block))
        close(many.column_norms(left), one.column_norms(block))
        close(many.column_square_sums(left), one.column_square_sums(block))
        close(pair.read(many.apply(left)), one.apply(block), 1e-5)
        for operator, own, written in ((many, left, right), (one, block, other)):
            operator.combine(own[:, 1:3], written[:, 2:4], (0.5, -1.0, 2.0))
            operator.deflate(own)
            operator.scale_columns(own, np.array([1.0, 2.0, 3.0, 4.0]))
            operator.scale_columns(own[:, :2], np.array([5.0, 7.0]), np.divide)
            operator.transform_columns(own, np.arange(16.0).reshape(4, 4))
        close(pair.read(right), other, 1e-5)
        close(pair.read(left), block, 1e-4)


@settings(max_examples=30)
@given(seed=SEEDS, shards=SHARDS, edges=st.integers(1, 200), tau=st.floats(0.01, 300))
def test_the_ends_of_the_spectrum_are_those_of_one_machine(
    pair_of: Any, seed: int, shards: int, edges: int, tau: float
) -> None:
    pair = pair_of(seed, shards, 40, edges)
    with pair.workspace() as workspace:
        many = workspace.operator(tau)
        close(many.spectrum_bounds(), here(pair, tau).spectrum_bounds())
        close(many.spectrum_lower_bound(), here(pair, tau).spectrum_lower_bound())


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("shards", [1, 2, 4])
def test_noise_is_the_same_for_any_number_of_shards(pair_of: Any, shards: int, kind: Any) -> None:
    pair = pair_of(1, shards)
    expected = here(pair, 1.0).make_noise(7, 3, kind)
    with pair.workspace() as workspace:
        operator = workspace.operator(1.0)
        assert np.array_equal(pair.read(operator.make_noise(7, 3, kind)), expected)
        assert not np.array_equal(pair.read(operator.make_noise(8, 3, kind)), expected)


def test_noise_is_drawn_in_parts(pair_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = pair_of(1, 3)
    monkeypatch.setattr("ripplevec.cluster.shard_matrices.WORDS", 7)
    with pair.workspace() as workspace:
        drawn = pair.read(workspace.operator(1.0).make_noise(7, 3, np.float32))
    assert np.array_equal(drawn, here(pair, 1.0).make_noise(7, 3, np.float32))


@pytest.mark.parametrize("room", [operators.WORKSPACE_BYTES, 0])
def test_filters_and_ritz_values_are_those_of_one_machine(
    pair_of: Any, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr(operators, "WORKSPACE_BYTES", room)  # none: 16 columns at a time
    pair, block = pair_of(2, 3, 60, 300), np.random.default_rng(0).standard_normal((60, 20))
    one = here(pair, 2.0)
    one.clear_unusable_rows(block)
    with pair.workspace() as workspace:
        many, sheet = workspace.operator(2.0), pair.put(workspace, block)
        values = []
        for operator, own in ((many, sheet), (one, block)):
            operator.deflate(own)
            apply_chebyshev_filter(operator, own, -1.0, 0.1, 5)
            values.append(rayleigh_ritz(operator, own))
        close(*values)
        close(np.abs(pair.read(sheet)), np.abs(block), 1e-5)
