from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation.latency import latency
from ripplevec.lab.evaluation.protocols import stream

GRAPH = planted_partition(communities=3, size=30, inside=8, elsewhere=1)


def test_percentiles_are_in_microseconds(neighbor_mean: Any) -> None:
    seconds = np.random.default_rng(0).permutation(np.arange(1001)) * 1e-6
    told = latency(replace(stream(neighbor_mean(), GRAPH), arrival_seconds=seconds))
    assert (told.p50, told.p99, told.maximum) == pytest.approx((500, 990, 1000))


def test_every_step_of_a_stream_is_timed(neighbor_mean: Any) -> None:
    single, several = stream(neighbor_mean(), GRAPH), stream(neighbor_mean(), GRAPH, batch=10)
    assert (len(single.arrival_seconds), len(several.arrival_seconds)) == (45, 5)
    assert single.stream_seconds == pytest.approx(single.arrival_seconds.sum())
    assert 0 < latency(single).p50 <= latency(single).p99 <= latency(single).maximum
