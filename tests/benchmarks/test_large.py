"""A hundred million edges, a few of them: the graph is the one that was promised, and its record fills the page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is counted on Linux alone")
EDGES = 20_000


@pytest.mark.filterwarnings("ignore:self-loops")
def test_a_record_says_what_the_page_asks_for(
    benchmark: Callable[[str], Any], page_of: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "record.json"
    monkeypatch.setattr("sys.argv", ["large", "--edges", str(EDGES), "--threads", "1", "--json", str(path)])
    benchmark("large").main()
    record = json.loads(path.read_text())
    assert record["environment"]["versions"]
    assert "rmat, float16" in page_of("large", record)
    assert record["preferential"]["vertices"] == EDGES // 10 + 1
    assert 0.95 * EDGES < record["preferential"]["edges"] <= EDGES  # an edge may come twice
    for graph in ("preferential", "rmat"):
        found = record[graph]
        assert found["edges_per_second"] == pytest.approx(0.9 * EDGES / found["stream_seconds"])
        assert 0 < found["us_per_edge_at_the_end"] * 0.1 * EDGES < 1e6 * found["stream_seconds"]
        assert 0 < found["resident_gib"] <= found["stream_peak_gib"] + 0.01


def test_a_batch_of_all_is_what_the_batches_hold(benchmark: Callable[[str], Any]) -> None:
    large, make = benchmark("large"), benchmark("_generated").preferential(EDGES)
    (batch,) = benchmark("_generated").batches(make, 0, 500, 500)
    assert large.all_of(make, 500).src.equals(batch.src)
    assert len(large.all_of(make, 500)) == 500
