from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.cli import bench_run
from ripplevec.cli.bench_record import FIGURES
from ripplevec.cli.bench_run import DIM, Size, measure, run
from ripplevec.cli.console import progress

TINY = Size("tiny", 3_000, 50, 40, 3)


@pytest.fixture
def calls(monkeypatch):
    counted = Counter()
    for name in ("fit", "partial_fit", "add_vertex", "__getitem__", "nearest", "anchor"):
        monkeypatch.setattr(Embedder, name, counting(counted, name, getattr(Embedder, name)))
    return counted


def counting(counted, name, work):
    def count(*arguments):
        counted[name] += 1
        return work(*arguments)

    return count


def test_every_figure_is_measured_by_as_many_calls_as_the_size_says(calls):
    with progress() as bars:
        figures = measure(TINY, bars)
        assert not bars.tasks
    assert figures.keys() == FIGURES.keys()
    assert all(np.isfinite(value) and value > 0 for value in figures.values())
    assert calls["add_vertex"] == TINY.arrivals
    assert calls["__getitem__"] == TINY.reads
    assert calls["nearest"] == TINY.searches
    assert (calls["fit"], calls["anchor"]) == (1, 1)
    assert calls["partial_fit"] == 3  # 27,000 edges behind the start, 10,000 at a time
    assert figures["arrival_p50_us"] <= figures["arrival_p99_us"] <= figures["arrival_p999_us"]


def test_memory_is_that_of_the_model(monkeypatch):
    memory = bench_run._memory
    seen = {}
    monkeypatch.setattr(bench_run, "_memory", lambda model: seen.update(model.diagnostics()) or memory(model))
    with progress() as bars:
        figures = measure(TINY, bars)
    assert seen["vertices"] == TINY.vertices
    whole = seen["vertices"] * figures["bytes_per_vertex"] + seen["edges"] * figures["bytes_per_edge"]
    assert whole == pytest.approx(seen["bytes"])
    assert figures["bytes_per_vertex"] > 4 * DIM
    assert figures["bytes_per_edge"] >= 2 * (4 + 4)  # each end: whom, and with what weight


def test_the_same_in_small_comes_first(monkeypatch):
    sizes = []
    monkeypatch.setattr(bench_run, "measure", lambda size, bars: sizes.append(size.name) or {"size": size.vertices})
    with progress() as bars:
        assert run(TINY, bars) == {"size": TINY.vertices}
    assert sizes == ["warm up", "tiny"]
