from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.cli import bench_run
from ripplevec.cli.bench_run import (
    DIM,
    METRICS,
    Workload,
    compute_ratios,
    measure,
    read_record,
    run_benchmark,
    write_record,
)
from ripplevec.cli.console import show_progress
from ripplevec.errors import FormatError

TINY = Workload("tiny", 3_000, 50, 40, 3)
RECORDED = {name: float(place) for place, name in enumerate(METRICS, 1)}


@pytest.fixture
def call_counts(monkeypatch):
    counts = Counter()
    for name in ("fit", "partial_fit", "add_vertex", "__getitem__", "nearest", "anchor"):
        monkeypatch.setattr(Embedder, name, count_calls(counts, name, getattr(Embedder, name)))
    return counts


def count_calls(counts, name, method):
    def counted(*arguments):
        counts[name] += 1
        return method(*arguments)

    return counted


def test_measure_makes_as_many_calls_as_the_workload_says(call_counts):
    with show_progress() as bars:
        metrics = measure(TINY, bars)
        assert not bars.tasks
    assert metrics.keys() == METRICS.keys()
    assert all(np.isfinite(value) and value > 0 for value in metrics.values())
    assert call_counts["add_vertex"] == TINY.arrivals
    assert call_counts["__getitem__"] == TINY.reads
    assert call_counts["nearest"] == TINY.searches
    assert (call_counts["fit"], call_counts["anchor"]) == (1, 1)
    assert call_counts["partial_fit"] == 3  # 27,000 edges after the start, 10,000 per batch
    assert metrics["arrival_p50_us"] <= metrics["arrival_p99_us"] <= metrics["arrival_p999_us"]


def test_measure_memory_adds_up_to_the_bytes_of_the_model(monkeypatch):
    diagnostics, read_diagnostics = {}, Embedder.diagnostics

    def record_diagnostics(model, **options):
        diagnostics.update(read_diagnostics(model, **options))
        return read_diagnostics(model, **options)

    monkeypatch.setattr(Embedder, "diagnostics", record_diagnostics)
    with show_progress() as bars:
        metrics = measure(TINY, bars)
    assert diagnostics["vertices"] == TINY.vertices
    total = diagnostics["vertices"] * metrics["bytes_per_vertex"] + diagnostics["edges"] * metrics["bytes_per_edge"]
    assert total == pytest.approx(diagnostics["bytes"])
    assert metrics["bytes_per_vertex"] > 4 * DIM
    assert metrics["bytes_per_edge"] >= 2 * (4 + 4)  # a neighbor and a weight at each end


def test_run_benchmark_measures_a_warm_up_first(monkeypatch):
    names = []
    monkeypatch.setattr(bench_run, "measure", lambda load, bars: names.append(load.name) or {"size": load.vertices})
    monkeypatch.setattr(bench_run, "wait_for_all_kernels", lambda: names.append("wait"))
    with show_progress() as bars:
        assert run_benchmark(TINY, bars) == {"size": TINY.vertices}
    assert names == ["warm up", "wait", "warm up", "tiny"]


def test_ratio_of_a_better_metric_is_above_one():
    better = {name: 3 * value if METRICS[name].higher_is_better else value / 3 for name, value in RECORDED.items()}
    assert compute_ratios(better, {"figures": RECORDED}) == pytest.approx(dict.fromkeys(METRICS, 3.0))


def test_ratios_without_record_are_empty():
    assert compute_ratios(RECORDED, {}) == {}


def test_write_record_keeps_other_workloads(tmp_path):
    path = tmp_path / "record.json"
    write_record(path, "full", RECORDED)
    write_record(path, "quick", {name: 2 * value for name, value in RECORDED.items()})
    assert read_record(path, "full")["figures"] == RECORDED
    assert read_record(path, "quick")["figures"]["bytes_per_edge"] == 2 * RECORDED["bytes_per_edge"]
    assert read_record(path, "quick")["environment"]["machine"]


@pytest.mark.parametrize("content", ["no json", "[]", '{"full": 1}', json.dumps({"full": {"figures": RECORDED}})])
def test_read_record_of_another_format_raises_format_error(tmp_path, content):
    path = tmp_path / "record.json"
    path.write_text(content)
    with pytest.raises(FormatError, match=r"record\.json: expected a record"):
        read_record(path, "full")


def test_read_record_with_zero_metric_raises_format_error(tmp_path):
    path = tmp_path / "record.json"
    write_record(path, "full", {**RECORDED, "nearest_ms": 0.0})
    with pytest.raises(FormatError, match="above 0"):
        read_record(path, "full")
