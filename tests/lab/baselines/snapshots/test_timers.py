from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.lab.baselines.snapshots import timers
from ripplevec.lab.baselines.snapshots.timers import Timers


def smallest_error(matrix: np.ndarray, count: int) -> float:
    values = np.sort(np.linalg.eigvalsh(matrix) ** 2)
    return float(values[: len(values) - count].sum())


@pytest.mark.parametrize("dense_size", [400, 0])
def test_timers_bound_is_below_smallest_error(dense_size: int, snapshots: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timers, "MAX_DENSE_SIZE", dense_size)
    method = Timers(dim=8, margin=100.0)
    for graph in snapshots:
        method.update(graph)
        assert method.lower_bound(graph) <= smallest_error(graph.toarray(), 8) + 1e-6
    assert method.restarts == 1


def test_timers_error_stays_within_margin_of_bound(snapshots: Any) -> None:
    method = Timers(dim=8, margin=0.05)
    for graph in snapshots:
        method.update(graph)
        approximation = (method._basis * method._values) @ method._basis.T
        error = np.square(graph.toarray() - approximation).sum()
        assert error <= 1.05 * smallest_error(graph.toarray(), 8) + 1e-6
    assert method.restarts > 1


def test_timers_after_restart_vectors_are_scaled_eigenvectors(snapshots: Any) -> None:
    graph = next(iter(snapshots))
    vectors = Timers(dim=4).update(graph)
    values = np.linalg.eigvalsh(graph.toarray())
    largest = np.sort(np.abs(values))[::-1][:4]
    np.testing.assert_allclose(np.sort(np.square(vectors).sum(axis=0))[::-1], largest, rtol=1e-4)
