"""The benchmark of the growth between anchors, on small graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def test_appearing_communities_connect_every_vertex_to_earlier_ones(benchmark: Any) -> None:
    edges = benchmark("anchor_interval").appearing_communities(400, communities=20)
    assert (edges[:, 1] < edges[:, 0]).all()
    assert (np.bincount(edges[:, 0], minlength=400)[1:] == 5).all()


def test_stream_with_a_longer_interval_has_fewer_anchors(benchmark: Any) -> None:
    intervals = benchmark("anchor_interval")
    edges = intervals.appearing_communities(1_600, communities=10)
    often, seldom = (intervals.measure_stream(edges, 400, interval) for interval in (0.2, 1.0))
    assert often["anchors"] > seldom["anchors"] > 0
    assert all(0 < figures[name] < 1 for figures in (often, seldom) for name in ("mrr", "mrr of recent"))


def test_interval_record_contains_all_documented_metrics(
    benchmark: Any, render_block: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    intervals = benchmark("anchor_interval")
    monkeypatch.setattr(intervals, "INTERVALS", (0.5, 1.0))
    block = render_block("anchor_interval", intervals.measure_intervals(300))
    assert "| | 0.5 | 1.0 |" in block
    assert "Appearing communities:" in block
