"""Benchmark of a stream with default parameters: latency up to the slowest arrival, with anchors and without.

    python benchmarks/realtime.py [--sizes 10000 200000 1000000] [--batches 1 1000] [--json FILE]

Two models of the same graph grow side by side: one with default parameters, one with anchors turned off
(`anchor_growth=0`). They take turns, so that other load on the machine affects both. The stream begins when an anchor
is due and ends when the next one is: it contains one anchor, which is what a long stream pays on average. It is not the
first one: that allocates memory which all later ones use again. A record that exists keeps the figures of other sizes
and batches; each names its commit.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from _report import write_record
from arrival import generate_edges
from numpy.typing import NDArray

from ripplevec import Embedder
from ripplevec.lab.experiments.record import describe_environment

DIM, EDGES_PER_ARRIVAL, BATCH_SIZE = 128, 5, 1_000
PERCENTILES = {"p50": 50.0, "p99": 99.0, "p999": 99.9, "slowest": 100.0}


def measure_stream(vertices: int, arrivals: int, batch_size: int, seed: int = 1) -> dict[str, float]:
    """Measure the same stream with anchors and without."""
    edges = generate_edges(vertices)
    models = {"default": Embedder(dim=DIM).fit(edges), "without": Embedder(dim=DIM, anchor_growth=0).fit(edges)}
    warm_up(models, batch_size)
    complete_anchor(models)
    make_anchor_due(models["default"])
    anchors, random = models["default"].engine.anchors, np.random.default_rng(seed)
    seconds: dict[str, list[NDArray[np.float64]]] = {name: [] for name in models}
    processor: dict[str, float] = dict.fromkeys(models, 0.0)
    first, stop = len(models["default"]), len(models["default"]) + arrivals
    while first < stop:
        last = min(first + max(batch_size, 500), stop)
        targets = (random.random((last - first, EDGES_PER_ARRIVAL)) * vertices).astype(np.int64)
        for name, model in models.items():
            began = time.process_time()
            seconds[name].append(add_arrivals(model, first, targets, batch_size))
            processor[name] += time.process_time() - began
        first = last
    return summarize(seconds, processor, arrivals, models["default"].engine.anchors - anchors)


def complete_anchor(models: dict[str, Embedder]) -> None:
    """Let both models grow by the same arrivals until the default one has computed an anchor."""
    engine, random = models["default"].engine, np.random.default_rng(2)
    make_anchor_due(models["default"])
    anchors = engine.anchors
    while engine.anchors == anchors or engine.correction is not None:
        first = len(models["default"])
        targets = random.integers(0, first, (BATCH_SIZE, EDGES_PER_ARRIVAL))
        for model in models.values():
            add_arrivals(model, first, targets, BATCH_SIZE)


def make_anchor_due(model: Embedder) -> None:
    """Let the last anchor lie so far back that the next arrivals make another one due."""
    engine = model.engine
    for _ in range(50):  # a fixed point: the growth between anchors depends on the size at the last one
        growth = 1 + engine.anchor_interval
        engine.vertices_at_anchor, engine.edges_at_anchor = ceil(len(model) / growth), ceil(engine.edges / growth)


def warm_up(models: dict[str, Embedder], batch_size: int) -> None:
    """Compile and load all kernels, on small models and with a few arrivals like those that are measured."""
    small = Embedder(dim=DIM).fit(generate_edges(2_000))
    for model in (small, *models.values()):
        first, random = len(model), np.random.default_rng(0)
        count = 300 if model is small else max(batch_size, 10)
        for step in range(2):
            targets = random.integers(0, first, (count, EDGES_PER_ARRIVAL))
            add_arrivals(model, first + step * count, targets, batch_size)


def add_arrivals(model: Embedder, first: int, targets: NDArray[np.int64], batch_size: int) -> NDArray[np.float64]:
    """Add vertices first, first + 1, … with edges to their targets; return the seconds of each call, a row per call.

    The second column counts only the time in which this thread had a processor. The figures are in an array: Python's
    garbage collector would go through hundreds of thousands of tuples now and then, during an arrival.
    """
    begins = range(0, len(targets), batch_size)
    seconds = np.empty((len(begins), 2))
    for index, begin in enumerate(begins):
        part = targets[begin : begin + batch_size]
        if batch_size == 1:
            call: partial[Any] = partial(model.add_vertex, first + begin, part[0].tolist())
        else:
            src = np.repeat(np.arange(first + begin, first + begin + len(part)), EDGES_PER_ARRIVAL)
            call = partial(model.partial_fit, np.stack([src, part.ravel()], axis=1))
        began, own = time.perf_counter(), time.thread_time()
        call()
        seconds[index] = time.perf_counter() - began, time.thread_time() - own
    return seconds


def summarize(
    seconds: dict[str, list[NDArray[np.float64]]], processor: dict[str, float], arrivals: int, anchors: int
) -> dict[str, float]:
    """Return percentiles and means in microseconds, and the cost with anchors relative to that without.

    Percentiles of the time on a processor (`thread_…`) are those that a quiet machine would have, about.
    """
    figures: dict[str, float] = {"anchors": anchors, "arrivals": arrivals}
    for name, parts in seconds.items():
        values, own = np.concatenate(parts).T
        figures[f"{name}_mean_us"] = float(values.sum()) / arrivals * 1e6
        figures[f"{name}_processor_us"] = processor[name] / arrivals * 1e6
        figures |= {f"{name}_{key}_us": float(np.percentile(values, q)) * 1e6 for key, q in PERCENTILES.items()}
        figures |= {f"{name}_thread_{key}_us": float(np.percentile(own, q)) * 1e6 for key, q in PERCENTILES.items()}
    figures["ratio"] = figures["default_mean_us"] / figures["without_mean_us"]
    figures["processor_ratio"] = figures["default_processor_us"] / figures["without_processor_us"]
    return figures


def main() -> None:
    """Parse the options, measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 200_000, 1_000_000])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, BATCH_SIZE], help="arrivals per call")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    record: dict[str, Any] = read_figures(options.json)
    record["sizes"] = sorted({*record.get("sizes", []), *options.sizes})
    for vertices in options.sizes:
        for batch_size in options.batches:
            figures = measure_stream(vertices, round(find_interval(vertices) * vertices), batch_size)
            record[f"{vertices}, {batch_size}"] = figures | {"commit": describe_environment()["commit"]}
            print(f"{vertices:,} vertices, batches of {batch_size:,} arrivals")
            for name, value in figures.items():
                print(f"    {name:24} {value:,.2f}", flush=True)
            if options.json:
                write_record(options.json, record)


def read_figures(path: Path | None) -> dict[str, Any]:
    """Return the figures of an earlier record, if there is one."""
    record: dict[str, Any] = json.loads(path.read_text()) if path is not None and path.exists() else {}
    commit = record.pop("environment", {}).get("commit")
    return {
        name: {"commit": commit} | figures if isinstance(figures, dict) else figures for name, figures in record.items()
    }


def find_interval(vertices: int) -> float:
    """Return the growth between two anchors of a graph of this size."""
    engine = Embedder().engine
    engine.vertices_at_anchor = vertices
    return engine.anchor_interval


if __name__ == "__main__":
    main()
