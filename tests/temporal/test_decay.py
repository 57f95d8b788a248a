"""Forward decay: stored weights, exact rescaling, and the effective number of edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.graph._edge_kernels import MIN_WEIGHT
from ripplevec.graph.adjacency import Adjacency
from ripplevec.temporal.decay import MIN_EXPONENT, RESCALE_HALF_LIVES, Decay

ALL = np.ones(3, bool)


def test_stored_unit_doubles_per_half_life() -> None:
    decay = Decay(10.0)
    assert decay.stored_unit(np.array([0.0, 10.0, 25.0, -10.0])) == pytest.approx([1.0, 2.0, 2**2.5, 0.5])
    stored = decay.stored_weights(np.array([3.0, 1.0, 2.0]), np.array([0.0, 10.0, -20.0]), ALL)
    assert stored.tolist() == [3.0, 2.0, 0.5]


def test_stored_weights_very_old_event_is_minimum() -> None:
    stored = Decay(1.0).stored_weights(np.array([1e30, 1.0, 1.0]), np.array([-1e9, -1e300, -300.0]), ALL)
    assert stored.tolist() == [MIN_WEIGHT] * 3
    assert Decay(1.0).stored_unit(np.array([-1e9]))[0] == 2.0**MIN_EXPONENT


@settings(max_examples=50, deadline=None)
@given(time=st.floats(0, 400), later=st.floats(0, 100), half_life=st.floats(0.5, 30))
def test_stored_unit_after_halvings_is_exact(time: float, later: float, half_life: float) -> None:
    one, other = Decay(half_life), Decay(half_life)
    other.halvings = 7.0
    times = np.array([time, time + later])
    assert np.array_equal(one.stored_unit(times), other.stored_unit(times) * 2.0**7)


def test_rescale_after_many_half_lives_halves_everything() -> None:
    decay, adjacency = Decay(2.0), Adjacency()
    adjacency.ensure_rows(2)
    adjacency.apply(np.zeros(1, np.int8), np.array([[0, 1]]), np.ones(1, np.float32))
    decay.stored_weights(None, np.zeros(1), np.ones(1, bool))
    adjacency.scale_weights(decay.rescale(2 * RESCALE_HALF_LIVES - 0.1))
    assert (decay.halvings, adjacency.links.strength[0]) == (0, 1.0)
    adjacency.scale_weights(decay.rescale(2 * RESCALE_HALF_LIVES + 1))
    assert (decay.halvings, adjacency.links.strength[0]) == (RESCALE_HALF_LIVES, 0.5**RESCALE_HALF_LIVES)
    assert (decay.unit_sum, decay.unit_square_sum) == (0.5**RESCALE_HALF_LIVES, 0.25**RESCALE_HALF_LIVES)
    assert decay.stored_unit(np.array([2 * RESCALE_HALF_LIVES + 1])) == pytest.approx(np.sqrt(2))
    adjacency.scale_weights(decay.rescale(1e300))
    assert adjacency.links.strength[0] == decay.unit_sum == MIN_WEIGHT
    assert decay.stored_unit(np.array([1e300]))[0] < 2


@settings(max_examples=200, deadline=None)
@given(times=st.lists(st.floats(1.3, 100), min_size=1, max_size=4))
def test_rescale_any_time_keeps_unit_in_range(times: list[float]) -> None:
    """Includes times so large that consecutive floats are more than 1 apart."""
    decay, adjacency = Decay(1.0), Adjacency()
    for now in sorted(10.0**time for time in times):
        adjacency.scale_weights(decay.rescale(now))
        assert 1 <= decay.stored_unit(np.array([now]))[0] < 2.0**RESCALE_HALF_LIVES


def test_weight_scale_counts_effective_edges() -> None:
    decay = Decay(100.0)
    assert decay.weight_scale(0.0, 0) == (1.0, np.inf)
    decay.stored_weights(np.full(50, 3.0), np.zeros(50), np.ones(50, bool))
    assert decay.weight_scale(0.0, 50) == pytest.approx((1.0, 50.0))
    assert decay.weight_scale(300.0, 50) == pytest.approx((8.0, 50.0))  # no new edges: all weights decayed equally
    assert decay.weight_scale(300.0, 40) == pytest.approx((8.0, 40.0))  # some edges were repeated, or removed
    decay.stored_weights(None, np.full(50, 2000.0), np.ones(50, bool))
    assert decay.weight_scale(2000.0, 100) == pytest.approx((2.0**20, 50.0), rel=1e-4)
    assert decay.weight_scale(2000.0, 1600).effective_edges == 100.0  # the bound: 1600 / 16


def test_stored_weights_removed_edges_are_not_counted() -> None:
    decay = Decay(1.0)
    decay.stored_weights(np.array([1.0, 5.0, 7.0]), np.zeros(3), np.array([True, False, False]))
    assert decay.unit_sum == decay.unit_square_sum == 1.0


def test_restore_state_continues_identically() -> None:
    decay, again = Decay(3.0), Decay(3.0)
    decay.stored_weights(np.array([1.0, 5.0, 7.0]), np.array([0.0, 1.0, 2.0]), ALL)
    again.restore(decay.state())
    assert again.weight_scale(2.0, 3) == decay.weight_scale(2.0, 3)
