from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec.lab.baselines.streaming import DNE


def test_dne_training_approaches_the_optimum_of_its_objective() -> None:
    """With enough dimensions, x_u · y_v of an edge nears log(w W / (d_u d_v)) − log(negatives)."""
    ring = np.zeros((30, 30))
    for u in range(30):
        for distance in (1, 2, 3):
            ring[u, (u + distance) % 30] = ring[(u + distance) % 30, u] = 1
    distances = []
    for samples in (10, 4000):
        method = DNE(dim=32, samples=samples, negatives=1, rate=0.05)
        method.start(csr_array(ring))
        distances.append(method._distance_from_optimum().mean())
    assert distances[1] < 0.5 * distances[0]


def test_dne_chunk_moves_only_new_and_most_affected_vertices(small_stream: Any) -> None:
    method = DNE(dim=8, samples=100, chunk=4, modified=3)
    method.start(small_stream.graph)
    before = method.vectors().copy()
    for v, neighbors in small_stream.arrivals[:4]:
        method.add_vertex(v, neighbors)
    moved = np.flatnonzero((method.vectors()[: len(before)] != before).any(axis=1))
    assert 1 <= len(moved) <= 3


def test_dne_smoothness_keeps_modified_vertices_closer(small_stream: Any) -> None:
    movement = []
    for smoothness in (0.001, 20.0):
        method = DNE(dim=8, samples=300, chunk=4, modified=3, smoothness=smoothness)
        method.start(small_stream.graph)
        before = method.vectors().copy()
        for v, neighbors in small_stream.arrivals[:4]:
            method.add_vertex(v, neighbors)
        movement.append(float(np.abs(method.vectors()[: len(before)] - before).sum()))
    assert movement[1] < 0.8 * movement[0]


@pytest.mark.parametrize("name", ["samples", "negatives", "modified", "chunk"])
def test_dne_with_invalid_settings_raises(name: str) -> None:
    with pytest.raises(ValueError, match=f"DNE.{name}: expected an integer ≥ 1"):
        DNE(**{name: 0})
