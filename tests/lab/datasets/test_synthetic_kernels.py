from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.lab.datasets._synthetic_kernels import attach_by_degree, attach_within_communities


def reference(labels: np.ndarray, noise: float, draws: np.ndarray) -> list[list[int]]:
    slots: dict[int, list[int]] = {label: [] for label in range(int(labels.max()) + 1)}
    targets = []
    for vertex, own in enumerate(labels):
        row = []
        for leave, whose, which in draws[vertex]:
            home = own if leave >= noise and slots[own] else labels[int(whose * vertex)]
            row.append(slots[home][int(which * len(slots[home]))] if vertex else -1)
        slots[own].append(vertex)
        slots[own] += [end for target in row if vertex and labels[target] == own for end in (target, vertex)]
        targets.append(row)
    return targets


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(1, 4), st.integers(1, 4), st.floats(0, 1), st.integers(0, 1000))
def test_attach_within_communities_equals_python_reference(
    vertices: int, communities: int, per_vertex: int, noise: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(communities, size=vertices)
    draws = rng.random((vertices, per_vertex, 3))
    sizes = np.bincount(labels, minlength=communities) * (1 + 2 * per_vertex)
    targets = attach_within_communities(labels, np.cumsum(sizes) - sizes, noise, draws)
    assert targets.tolist() == reference(labels, noise, draws)


@settings(max_examples=30)
@given(st.integers(0, 40), st.integers(1, 4), st.integers(0, 1000))
def test_attach_by_degree_equals_python_reference(arrivals: int, per_vertex: int, seed: int) -> None:
    draws = np.random.default_rng(seed).random((arrivals, per_vertex))
    ends: list[int] = []
    for vertex, row in enumerate(draws, start=1):
        earlier = list(ends) or [0]
        for draw in row:
            ends += [earlier[int(draw * len(earlier))], vertex]
    assert attach_by_degree(draws).tolist() == ends[::2]
