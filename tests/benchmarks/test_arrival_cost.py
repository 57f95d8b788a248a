"""Tests of the benchmark of arrivals: its methods, and that each can be timed."""

from __future__ import annotations

from typing import Any

from ripplevec.lab.datasets.synthetic import planted_partition


def test_read_methods_has_streaming_methods_of_the_study_only(benchmark: Any) -> None:
    methods = benchmark("arrival_cost").read_methods()
    assert {"ripplevec", "rule paper", "DAMF", "DNE"} <= methods.keys()
    assert "SDNE, retrained" not in methods


def test_time_arrival_returns_microseconds(benchmark: Any) -> None:
    cost = benchmark("arrival_cost")
    dataset = planted_partition(communities=2, size=30)
    assert cost.time_arrival({"method": "incremental_svd", "dim": 8}, dataset, 0) > 0
