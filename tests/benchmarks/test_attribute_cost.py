"""Tests of the benchmark of arrivals with attributes: that each method can be timed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec.lab.datasets.synthetic import planted_partition

GRAPH = planted_partition(communities=4, size=40, inside=8, elsewhere=1)


@pytest.mark.parametrize("method", ["ripplevec", "online_dane_64"])
def test_time_arrival_returns_microseconds(method: str, benchmark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cost = benchmark("attribute_cost")
    random = np.random.default_rng(0)
    attributes = csr_array((random.random((160, 60)) < 0.2).astype(float))
    monkeypatch.setattr(cost, "load", lambda name: GRAPH)
    monkeypatch.setattr(cost, "read_attributes", lambda name: attributes)
    monkeypatch.setattr(cost, "DIM", 8)
    assert cost.time_arrival(method, "graph", 0, 70) > 0
