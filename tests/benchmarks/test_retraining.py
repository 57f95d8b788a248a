from __future__ import annotations

from typing import Any

from ripplevec.lab.datasets.synthetic import planted_partition


def test_measure_dataset_times_every_method(benchmark: Any) -> None:
    retraining = benchmark("retraining")
    seconds = retraining.measure_dataset(planted_partition(communities=2, size=30), 8)
    assert seconds.keys() == {"prone", "fastrp", "spectral", "ripplevec"}
    assert all(value >= 0 for value in seconds.values())
