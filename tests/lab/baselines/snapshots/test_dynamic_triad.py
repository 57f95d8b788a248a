from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec.lab.baselines.snapshots.dynamic_triad import DynamicTriad, sample_triads


def test_sample_triads_are_open_before_and_closed_as_labeled(snapshots: Any) -> None:
    after = snapshots.matrix.toarray()
    before = after.copy()
    before[::3] = before[:, ::3] = 0
    triads, closes = sample_triads(csr_array(before), csr_array(after), 500, np.random.default_rng(0))
    first, second, center = triads.T
    assert len(triads) > 50
    assert (before[first, center] > 0).all()
    assert (before[second, center] > 0).all()
    assert (before[first, second] == 0).all()
    np.testing.assert_array_equal(closes, after[first, second] > 0)


def test_dynamic_triad_edges_are_shorter_than_other_pairs(snapshots: Any) -> None:
    pytest.importorskip("torch")
    graph = next(iter(snapshots))
    vectors = DynamicTriad(dim=8, steps=60).update(graph)
    distances = np.square(vectors[:, None] - vectors[None]).sum(axis=2)
    assert distances[graph.toarray() > 0].mean() < 0.5 * distances.mean()


def test_dynamic_triad_smoothness_limits_movement(snapshots: Any) -> None:
    pytest.importorskip("torch")

    def movement(smoothness: float) -> float:
        method = DynamicTriad(dim=8, steps=60, smoothness=smoothness)
        first, second = (method.update(graph).copy() for graph in list(snapshots)[:2])
        return float(np.abs(second[:80] - first).mean())

    assert movement(10.0) < movement(1e-6)
