"""Time window: growth, order of expiry, saved state and memory."""

from __future__ import annotations

import numpy as np
import pytest

from ripplevec.errors import FormatError
from ripplevec.temporal.window import EXPIRY_CHUNK, MIN_CAPACITY, Window


def record(window: Window, pairs: np.ndarray, times: np.ndarray) -> Window:
    window.record(np.zeros(len(pairs), np.int8), pairs + 1000, pairs, times.astype(np.float64))
    return window


def random_edges(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    pairs = np.sort(rng.choice(count * count, count, replace=False))
    pairs = np.stack([pairs // count, count + pairs % count], axis=1)
    return pairs, rng.permutation(count)


def test_pop_expired_many_edges_returns_oldest_first() -> None:
    count = 3 * EXPIRY_CHUNK
    pairs, times = random_edges(count)
    window = Window(10.0)
    for part in np.array_split(np.arange(count), 7):
        record(window, pairs[part], times[part])
    assert len(window) == count > MIN_CAPACITY
    ends, numbers, latest = window.pop_expired(now=2 * EXPIRY_CHUNK + 10.0)
    order = np.argsort(times)[: 2 * EXPIRY_CHUNK]
    assert np.array_equal(numbers, pairs[order])
    assert np.array_equal(ends, numbers + 1000)
    assert np.array_equal(latest, np.sort(times)[: 2 * EXPIRY_CHUNK])
    assert len(window) == EXPIRY_CHUNK


def test_pop_expired_edge_of_exactly_the_limit_stays() -> None:
    window = record(Window(10.0), np.array([[0, 1]]), np.array([5.0]))
    assert len(window.pop_expired(15.0)[0]) == 0
    assert len(window.pop_expired(np.nextafter(15.0, 16.0))[0]) == 1


def test_state_does_not_depend_on_history() -> None:
    pairs, times = random_edges(500)
    one, other = record(Window(10.0), pairs, times), Window(10.0)
    record(other, pairs[::-1], np.zeros(500))
    record(other, pairs, times)
    for name, array in one.state().items():
        assert np.array_equal(array, other.state()[name]), name
    again = Window(10.0)
    again.restore(one.state())
    for left, right in zip(again.pop_expired(260.0), one.pop_expired(260.0), strict=True):
        assert np.array_equal(left, right)
    assert len(again) == len(one) == 250


@pytest.mark.parametrize("count", [5_000, 21_000, 40_000])
def test_nbytes_per_edge_is_bounded(count: int) -> None:
    pairs, times = random_edges(count)
    window = Window(1.0)
    for part in np.array_split(np.arange(count), 100):
        record(window, pairs[part], times[part])
    assert 90 < window.nbytes / count < 190


def test_record_opposite_edges_are_two_if_directed() -> None:
    pairs = np.array([[0, 1], [1, 0]])
    assert len(record(Window(1.0, directed=True), pairs, np.zeros(2))) == 2
    assert len(record(Window(1.0), pairs, np.zeros(2))) == 1


def test_restore_inconsistent_state_raises() -> None:
    state = record(Window(1.0), np.array([[0, 1]]), np.zeros(1)).state()
    with pytest.raises(FormatError, match="edge times are inconsistent"):
        Window(1.0).restore(state | {"latest": np.zeros(2)})
