"""Snapshot methods on timed streams: how well they rank the edges of the next snapshot, and seconds per step.

    python benchmarks/snapshots.py [--streams collegemsg,tgbl-wiki] [--seeds 2] [--methods timers,…] [--json FILE]

The events of a stream are cut into snapshots: the first half is the start, the rest has `--steps` parts of equal
length. A snapshot has all edges so far; the weight of an edge is the number of its events. After each snapshot, the new
edges of the next one between known vertices are scored by the cosine and by the inner product of their ends, against 20
sampled vertices that their first end has no edge to by then. Ripplevec applies the same edges as batches. Seconds are
processor time, because they depend less on other load on the machine.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from ripplevec import Batch, Embedder
from ripplevec.lab.baselines import get_baseline
from ripplevec.lab.baselines.snapshots import SNAPSHOT_BASELINES
from ripplevec.lab.evaluation.label_metrics import normalize_rows
from ripplevec.lab.evaluation.link_prediction import summarize_scores
from ripplevec.lab.experiments.record import describe_environment
from ripplevec.lab.temporal.streams import load_stream

DIM = 90
NEGATIVES = 20
RIPPLEVEC_METHODS: dict[str, dict[str, Any]] = {"ripplevec": {}, "rule paper": {"rule": "paper"}}
RETRAINED = ("deepwalk", "prone")
METHODS = (*RIPPLEVEC_METHODS, *SNAPSHOT_BASELINES, *RETRAINED)

Update = Callable[[csr_array, NDArray[np.int64]], NDArray[np.float32]]
"""Takes the next snapshot and its events, and returns a vector per row."""


def cut_stream(pairs: NDArray[np.int64], steps: int) -> list[NDArray[np.int64]]:
    """Cut events into the first half, and `steps` parts of the second half."""
    bounds = np.linspace(len(pairs) // 2, len(pairs), steps + 1).astype(int)
    return np.split(pairs, bounds[:-1])


def number_by_arrival(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the vertices by their first event."""
    ids, first, codes = np.unique(pairs.ravel(), return_index=True, return_inverse=True)
    rank = np.empty(len(ids), np.int64)
    rank[np.argsort(first)] = np.arange(len(ids))
    return rank[codes].reshape(-1, 2)


def build_snapshots(parts: list[NDArray[np.int64]]) -> Iterator[csr_array]:
    """Yield the graph after every part, with as many rows as vertices so far."""
    for last in range(1, len(parts) + 1):
        ends = np.concatenate(parts[:last])
        size = int(ends.max()) + 1
        half = csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(size, size))
        yield csr_array(half + half.T)


def build_method(name: str, seed: int) -> Update:
    """Return the update function of a method."""
    if name in RIPPLEVEC_METHODS:
        model = Embedder(dim=DIM, seed=seed, threads=1, **RIPPLEVEC_METHODS[name])

        def apply(graph: csr_array, events: NDArray[np.int64]) -> NDArray[np.float32]:
            batch = Batch.of(events[:, 0], events[:, 1])
            (model.partial_fit if len(model) else model.fit)(batch)
            return model.vectors(np.arange(graph.shape[0]))

        return apply
    if name in RETRAINED:
        return lambda graph, events: get_baseline(name)(dim=DIM, seed=seed).embed(graph)
    method = SNAPSHOT_BASELINES[name](dim=DIM, seed=seed)
    return lambda graph, events: method.update(graph)


def score_next(
    vectors: NDArray[Any], before: csr_array, after: csr_array, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Return the scores of the new edges between known vertices, each followed by those of its sampled non-edges."""
    size = before.shape[0]
    fresh = csr_array(after[:size, :size] - after[:size, :size].multiply(before > 0)).tocoo()
    edges = np.column_stack([fresh.row, fresh.col])[(fresh.data > 0) & (fresh.row < fresh.col)]
    rows = []
    present = np.flatnonzero(np.diff(before.indptr) > 0)
    for source, target in edges:
        linked = after.indices[after.indptr[source] : after.indptr[source + 1]]
        others = present[~np.isin(present, np.append(linked, source))]
        if others.size and before.indptr[source] < before.indptr[source + 1]:
            chosen = np.append(target, generator.choice(others, NEGATIVES))
            rows.append(vectors[chosen] @ vectors[source])
    return np.array(rows).reshape(-1, 1 + NEGATIVES)


def run_method(name: str, stream: str, steps: int, seed: int) -> dict[str, float]:
    """Follow a stream with a method; return its scores and seconds."""
    events = load_stream(stream)
    pairs = np.column_stack([events.src, events.dst])[events.src != events.dst]
    parts = cut_stream(number_by_arrival(pairs), steps)
    snapshots, update = list(build_snapshots(parts)), build_method(name, seed)
    scores: dict[str, list[NDArray[np.float64]]] = {"cosine": [], "inner": []}
    seconds = []
    for position, graph in enumerate(snapshots):
        began = time.process_time()
        vectors = update(graph, parts[position])
        seconds.append(time.process_time() - began)
        if position + 1 < len(snapshots):
            for score, rows in (("cosine", normalize_rows(vectors)), ("inner", vectors)):
                generator = np.random.default_rng([seed, position])
                scores[score].append(score_next(rows, graph, snapshots[position + 1], generator))
    result: dict[str, float] = {}
    for score, parts_scored in scores.items():
        summary = asdict(summarize_scores(np.concatenate(parts_scored)))
        result |= {f"{metric}_{score}": summary[metric] for metric in ("auc", "mrr")} | {"edges": summary["edges"]}
    return result | {"start_seconds": seconds[0], "step_seconds": fmean(seconds[1:])}


def main() -> None:
    """Run the methods, print their metrics, and put them into the record; it keeps its other runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", default="collegemsg")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    record: dict[str, Any] = {"dim": DIM, "steps": options.steps, "runs": {}}
    if options.json and options.json.exists():
        record["runs"] = json.loads(options.json.read_text())["runs"]
    environment = describe_environment()
    with threadpool_limits(limits=1):
        for stream in options.streams.split(","):
            for name in options.methods.split(","):
                for seed in range(options.seeds):
                    run = f"{stream}, {name}, {seed}"
                    metrics = run_method(name, stream, options.steps, seed)
                    record["runs"][run] = metrics | {"environment": environment}
                    print(run, metrics, flush=True)
                    if options.json:
                        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
