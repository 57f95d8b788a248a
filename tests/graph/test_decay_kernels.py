"""All weights are halved together: exactly, but for those that are too faint already."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.graph.adjacency import Adjacency
from ripplevec.graph._edge_kernels import MIN_WEIGHT

ROWS = 7
edges = st.lists(
    st.tuples(st.integers(0, ROWS - 1), st.integers(0, ROWS - 1), st.sampled_from([1e-30, 0.1, 1.0, 3e5, 1e30])),
    max_size=30,
)


def made_of(history: list[tuple[int, int, float]], directed: bool) -> Adjacency:
    adjacency = Adjacency(directed=directed)
    adjacency.ensure_rows(ROWS)
    pairs = np.array([edge[:2] for edge in history], np.int64).reshape(-1, 2)
    weight = np.array([edge[2] for edge in history], np.float32)
    adjacency.apply(np.zeros(len(history), np.int8), pairs, weight)
    return adjacency


@settings(max_examples=60, deadline=None)
@given(history=edges, directed=st.booleans(), halvings=st.sampled_from([0, 1, 20, 90, 500]))
def test_weights_fade_by_a_power_of_two_and_no_further_than_the_faintest(
    history: list[tuple[int, int, float]], directed: bool, halvings: int
) -> None:
    adjacency = made_of(history, directed)
    slots, before = adjacency.slots(), adjacency.copy()
    adjacency.scale_weights(0.5**halvings)
    for name in ("outgoing", "incoming") if directed else ("weight",):
        old, new = getattr(before.links, name)[slots], getattr(adjacency.links, name)[slots]
        expected = np.where(old > 0, np.maximum(old.astype(np.float64) * 0.5**halvings, MIN_WEIGHT), 0.0)
        assert np.array_equal(new, expected.astype(np.float32))
    adjacency.check()


@pytest.mark.parametrize("directed", [False, True])
def test_nothing_is_rounded_while_nothing_is_too_faint(directed: bool) -> None:
    adjacency = made_of([(u, (u + k) % ROWS, 1 / (u + k)) for u in range(ROWS) for k in (1, 2)], directed)
    strength = adjacency.links.strength.copy(), adjacency.links.in_strength.copy()
    adjacency.scale_weights(2.0**-20)
    assert np.array_equal(adjacency.links.strength * 2.0**20, strength[0])
    assert np.array_equal(adjacency.links.in_strength * 2.0**20, strength[1])
    adjacency.check()
