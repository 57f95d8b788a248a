"""The contract of every snapshot baseline."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.snapshots import SNAPSHOT_BASELINES, DynamicTriad, get_snapshot_baseline
from ripplevec.lab.evaluation import classify

SETTINGS: dict[str, dict[str, Any]] = {
    "dynamic_triad": {"steps": 60},
    "dynnode2vec": {"length": 20, "window": 5},
    "glodyne": {"length": 20, "window": 5},
    "timers": {},
}
NAMES = [name for name in SETTINGS if name != "dynamic_triad" or find_spec("torch")]
EACH = pytest.mark.parametrize("name", NAMES)


def build(name: str) -> Any:
    return get_snapshot_baseline(name)(dim=8, seed=1, **SETTINGS[name])


def test_get_snapshot_baseline_returns_class() -> None:
    assert SETTINGS.keys() == SNAPSHOT_BASELINES.keys()
    assert get_snapshot_baseline("dynamic_triad") is DynamicTriad
    with pytest.raises(InvalidValueError, match="one of 'dynamic_triad'"):
        get_snapshot_baseline("triad")


@EACH
def test_snapshot_baseline_last_vectors_predict_communities(name: str, snapshots: Any) -> None:
    method = build(name)
    vectors = [method.update(graph) for graph in snapshots][-1]
    assert vectors.shape == (160, 8)
    assert vectors.dtype == np.float32
    assert classify(vectors, snapshots.labels, np.arange(80), np.arange(80, 160)).micro > 0.75


@EACH
def test_snapshot_baseline_is_deterministic(name: str, snapshots: Any) -> None:
    first, second = ([method.update(graph) for graph in snapshots][-1] for method in (build(name), build(name)))
    np.testing.assert_array_equal(first, second)


@EACH
def test_snapshot_baseline_accepts_isolated_vertices(name: str) -> None:
    method = build(name)
    pair = csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    assert method.update(pair).any(axis=1).tolist() == [True, True, False]
    assert np.isfinite(method.update(pair)).all()


@EACH
def test_snapshot_baseline_with_fewer_rows_raises(name: str, snapshots: Any) -> None:
    method = build(name)
    method.update(next(iter(snapshots)))
    with pytest.raises(InvalidValueError, match="at least 80 rows"):
        method.update(csr_array(np.ones((2, 2)) - np.eye(2)))
