"""Tests of the benchmark of large graphs, on small ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is measured on Linux only")
EDGES = 20_000


@pytest.mark.filterwarnings("ignore:self-loops")
def test_large_record_contains_all_documented_metrics(
    benchmark: Callable[[str], Any], render_block: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "record.json"
    monkeypatch.setattr("sys.argv", ["large", "--edges", str(EDGES), "--threads", "1", "--json", str(path)])
    benchmark("large").main()
    record = json.loads(path.read_text())
    assert record["environment"]["versions"]
    assert "rmat, float16" in render_block("large", record)
    assert record["preferential"]["vertices"] == EDGES // 10 + 1
    assert 0.95 * EDGES < record["preferential"]["edges"] <= EDGES  # edges may repeat
    for graph in ("preferential", "rmat"):
        metrics = record[graph]
        assert metrics["edges_per_second"] == pytest.approx(0.9 * EDGES / metrics["stream_seconds"])
        assert 0 < metrics["us_per_edge_at_the_end"] * 0.1 * EDGES < 1e6 * metrics["stream_seconds"]
        assert 0 < metrics["resident_gib"] <= metrics["stream_peak_gib"] + 0.01


def test_generate_one_batch_holds_all_edges(benchmark: Callable[[str], Any]) -> None:
    large, generators = benchmark("large"), benchmark("_graph_generators")
    generate = generators.preferential_generator(EDGES)
    (batch,) = generators.generate_batches(generate, 0, 500, 500)
    assert large.generate_one_batch(generate, 500).src.equals(batch.src)
    assert len(large.generate_one_batch(generate, 500)) == 500
