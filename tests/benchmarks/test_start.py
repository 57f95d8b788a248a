from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.views import large_start


@pytest.mark.parametrize("name", ["communities", "preferential"])
def test_generators_give_five_edges_per_vertex(benchmark: Any, name: str) -> None:
    pairs = benchmark("start").GRAPHS[name](2_000)
    assert 0 <= pairs.min() <= pairs.max() < 2_000
    assert 0.99 < len(pairs) / (5 * 2_000) <= 1


def test_growth_exponent_is_that_of_a_power_law(benchmark: Any) -> None:
    sizes = [100, 300, 1_000]
    exponent = benchmark("start").growth_exponent(sizes, [2.0 * size**1.3 for size in sizes])
    assert exponent == pytest.approx(1.3)


def test_measure_graph_compares_a_start_with_an_anchor(benchmark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    start = benchmark("start")
    monkeypatch.setattr(start, "reset_peak_memory", lambda: None)  # not permitted everywhere
    monkeypatch.setattr(large_start, "MIN_VERTICES", 0)
    found = start.measure_graph(start.build_graph(start.community_edges(2_000), 2_000), 2_000)
    assert found["start_in_anchors"] > 0
    assert np.isfinite(list(found.values())).all()
    assert -0.2 < found["ritz_sum_missing_percent"] < 1


def test_start_record_contains_all_documented_metrics(
    benchmark: Any, render_block: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = benchmark("start")
    monkeypatch.setattr(start, "reset_peak_memory", lambda: None)
    block = render_block("start", start.measure(4_000))
    assert "4,000 vertices, communities" in block
    assert "n^" in block
