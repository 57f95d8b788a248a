"""Snapshot methods on timed streams: how well they rank the edges of the next snapshot, and seconds per step.

    python benchmarks/snapshots.py [--streams collegemsg,tgbl-wiki] [--seeds 2] [--methods timers,…] [--json FILE]
    python benchmarks/snapshots.py --grid [--methods "tuned timers,…"] [--jobs 8] [--settings FILE]

The events of a stream are cut into snapshots: the first half is the start, the rest has `--steps` parts of equal
length. A snapshot has all edges so far; the weight of an edge is the number of its events. After each snapshot, the new
edges of the next one between known vertices are scored by the cosine and by the inner product of their ends, against 20
sampled vertices that their first end has no edge to by then. Ripplevec applies the same edges as batches. Seconds are
processor time, because they depend less on other load on the machine.

`tuned NAME` is a method with the best of its candidates in `GRIDS`. With `--grid`, these are tried on the first half of
the events alone, with seed 0: the first half of these is the start, the rest has half as many parts. So no edge that is
scored later has been seen. The score is the mean of AUC and mean reciprocal rank, by cosine or by inner product,
whichever is higher. The candidates include the default settings. `--settings` is the record of the grid.
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
from _tuning import Grid, Settings, describe_settings, expand_grids, run_tasks, select_best
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec import Batch, Embedder
from ripplevec.lab.baselines import get_baseline
from ripplevec.lab.baselines.snapshots import SNAPSHOT_BASELINES
from ripplevec.lab.evaluation.label_metrics import normalize_rows
from ripplevec.lab.evaluation.link_prediction import summarize_scores
from ripplevec.lab.experiments.record import describe_environment
from ripplevec.lab.temporal.streams import load_stream

SETTINGS = Path(__file__).resolve().parents[1] / "results/snapshots_grid.json"
DIM = 90
NEGATIVES = 20
RIPPLEVEC_METHODS: dict[str, dict[str, Any]] = {"ripplevec": {}, "rule paper": {"rule": "paper"}}
RETRAINED = ("deepwalk", "prone")
TUNED = "tuned "
GRIDS: dict[str, list[Grid]] = {
    "dynnode2vec": [
        {},
        {"p": [0.5, 2.0], "q": [0.5, 2.0]},
        {"epochs": [3], "length": [20, 80]},
        {"length": [10, 20], "window": [5]},
    ],
    "glodyne": [{"share": [0.1, 0.3, 1.0]}, {"walks": [5, 20]}, {"epochs": [3]}, {"length": [20], "window": [5]}],
    "timers": [{"margin": [0.17, 0.05, 0.5, 1.0, 5.0, 20.0]}],
    "dynamic_triad": [
        {"closure": [0.01, 0.1, 1.0], "smoothness": [0.01, 0.1, 1.0]},
        {"steps": [400], "rate": [0.01, 0.05]},
        {"rate": [0.01]},
    ],
    "deepwalk": [
        {"length": [10, 40], "window": [5, 10], "epochs": [1, 3]},
        {"length": [80], "window": [5, 10]},
        {"length": [10, 40], "window": [7]},
    ],
    "prone": [{"mu": [0.1, 0.2, 0.5, 1.0], "theta": [0.25, 0.5, 1.0]}],
}
METHODS = (*RIPPLEVEC_METHODS, *SNAPSHOT_BASELINES, *RETRAINED, *(f"{TUNED}{name}" for name in GRIDS))
WARM_UP = np.argwhere(np.triu(np.random.default_rng(0).random((120, 120)) < 0.1, 1))  # edges of a small random graph

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


def build_method(name: str, seed: int, settings: Settings) -> Update:
    """Return the update function of a method; settings are those of a baseline."""
    if name in RIPPLEVEC_METHODS:
        model = Embedder(dim=DIM, seed=seed, threads=1, **RIPPLEVEC_METHODS[name])

        def apply(graph: csr_array, events: NDArray[np.int64]) -> NDArray[np.float32]:
            batch = Batch.of(events[:, 0], events[:, 1])
            (model.partial_fit if len(model) else model.fit)(batch)
            return model.vectors(np.arange(graph.shape[0]))

        return apply
    if name in RETRAINED:
        return lambda graph, events: get_baseline(name)(dim=DIM, seed=seed, **settings).embed(graph)
    method = SNAPSHOT_BASELINES[name](dim=DIM, seed=seed, **settings)
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


def load_pairs(stream: str) -> NDArray[np.int64]:
    """Return the ends of the events of a stream, without self-loops, numbered by arrival."""
    events = load_stream(stream)
    return number_by_arrival(np.column_stack([events.src, events.dst])[events.src != events.dst])


def run_method(
    name: str, stream: str, steps: int, seed: int, settings: Settings | None = None, first_half: bool = False
) -> dict[str, float]:
    """Follow a stream, or its first half, with a method; return its scores and seconds."""
    settings, pairs = settings or {}, load_pairs(stream)
    warm_up = build_method(name, seed, settings)
    for graph, events in zip(build_snapshots(parts := cut_stream(number_by_arrival(WARM_UP), 1)), parts, strict=True):
        warm_up(graph, events)  # compiles
    parts = cut_stream(pairs[: len(pairs) // 2], steps // 2) if first_half else cut_stream(pairs, steps)
    snapshots, update = list(build_snapshots(parts)), build_method(name, seed, settings)
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


def rate_metrics(metrics: dict[str, float]) -> float:
    """Return the score that settings are selected by."""
    return max((metrics[f"auc_{score}"] + metrics[f"mrr_{score}"]) / 2 for score in ("cosine", "inner"))


def select_settings(grid: dict[str, Any], stream: str, name: str) -> Settings:
    """Return the best settings of a method in the record of a grid."""
    prefix = f"{stream}, {name}, "
    rated = {run.removeprefix(prefix): rate_metrics(grid[run]) for run in grid if run.startswith(prefix)}
    return select_best(expand_grids(GRIDS[name]), rated)


def read_runs(path: Path | None) -> dict[str, Any]:
    """Return the runs of a record; none if there is no record."""
    return json.loads(path.read_text())["runs"] if path and path.exists() else {}


def plan_grid(options: argparse.Namespace) -> dict[str, tuple[Any, ...]]:
    """Return the arguments of `run_method` for every candidate of the tuned methods, by the name of the run."""
    names = [name.removeprefix(TUNED) for name in options.methods if name.startswith(TUNED)]
    return {
        f"{stream}, {name}, {describe_settings(settings)}": (name, stream, options.steps, 0, settings, True)
        for stream in options.streams
        for name in names
        for settings in expand_grids(GRIDS[name])
    }


def plan_runs(options: argparse.Namespace) -> dict[str, tuple[Any, ...]]:
    """Return the arguments of `run_method` for every run, by its name."""
    grid, tasks = read_runs(options.settings), {}
    for stream in options.streams:
        for method in options.methods:
            name = method.removeprefix(TUNED)
            settings = {} if name == method else select_settings(grid, stream, name)
            for seed in range(options.seeds):
                tasks[f"{stream}, {method}, {seed}"] = (name, stream, options.steps, seed, settings)
    return tasks


def main() -> None:
    """Run the methods or their grids, print the metrics, and put them into the record; it keeps its other runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=lambda text: text.split(","), default=["collegemsg"])
    parser.add_argument("--methods", type=lambda text: text.split(","), default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1, help="number of runs in parallel processes")
    parser.add_argument("--grid", action="store_true", help="try the candidates of the tuned methods")
    parser.add_argument("--settings", type=Path, default=SETTINGS, help="record of the grid")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    path = options.settings if options.grid else options.json
    record: dict[str, Any] = {"dim": DIM, "steps": options.steps, "runs": read_runs(path)}
    environment, tasks = describe_environment(), plan_grid(options) if options.grid else plan_runs(options)
    names = list(tasks)
    for number, metrics in run_tasks(run_method, list(tasks.values()), options.jobs):
        settings = tasks[names[number]][4]
        record["runs"][names[number]] = metrics | {"settings": settings, "environment": environment}
        print(names[number], settings, metrics, flush=True)
        if path:
            path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
