"""GraphSAGE with attributes and tuned settings, on the streams of `benchmarks/attributes.py`.

    python benchmarks/attribute_graphsage.py [--seeds 3] [--jobs 14] [--json FILE]

BlogCatalog and Flickr, 128 dimensions. The candidates of `GRIDS` are trained on the complete graph without labels. The
training vertices are half of all vertices, in the order of seed 0. The last fifth of them is held back, and a candidate
is scored on it by a classifier trained on the rest. So no test label of this split is used. The default settings are
among the candidates. The best candidate of each data set is scored as in `benchmarks/attribute_baselines.py`:
micro-F1 in percent, mean over the seeds, and processor seconds of a training.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import fmean, pstdev
from time import process_time
from typing import Any

from _report import write_record
from _tuning import Grid, Settings, describe_settings, expand_grids, run_tasks, select_best
from attribute_baselines import weigh
from attributes import DATASETS, DIM, read_attributes

from ripplevec.lab.baselines.graphsage import GraphSAGE
from ripplevec.lab.datasets import load
from ripplevec.lab.evaluation.label_metrics import classify
from ripplevec.lab.evaluation.protocols import Arrivals

GRIDS: list[Grid] = [
    {"steps": [800], "rate": [0.003]},
    {"steps": [400]},
    {"steps": [200], "rate": [0.003, 0.01, 0.03]},
    {"length": [2, 10]},
]
HELD_OUT_SHARE = 0.2


def train(name: str, settings: Settings, seed: int, validate: bool) -> dict[str, float]:
    """Return micro-F1 on the vertices held back from training, or on the test vertices, and the seconds."""
    dataset, attributes = load(name), weigh(read_attributes(name))
    order, half = Arrivals.from_dataset(dataset, seed).order, dataset.vertices // 2
    began = process_time()
    vectors = GraphSAGE(dim=DIM, seed=seed, **settings).embed(dataset.adjacency(), attributes)
    seconds, cut = process_time() - began, round(half * (1 - HELD_OUT_SHARE))
    parts = (order[:cut], order[cut:half]) if validate else (order[:half], order[half:])
    return {"micro": 100 * classify(vectors, dataset.labels, *parts).micro, "seconds": seconds}


def try_candidates(jobs: int) -> dict[str, dict[str, dict[str, float]]]:
    """Return the scores of every candidate by data set."""
    candidates = expand_grids(GRIDS)
    tasks = [(name, settings, 0, True) for settings in candidates for name in DATASETS]
    trials: dict[str, dict[str, dict[str, float]]] = {name: {} for name in DATASETS}
    for number, metrics in run_tasks(train, tasks, jobs):
        name, settings, *_ = tasks[number]
        trials[name][describe_settings(settings)] = metrics
        print(name, settings, metrics, flush=True)
    return trials


def select_candidates(trials: dict[str, dict[str, dict[str, float]]]) -> dict[str, Settings]:
    """Return the best candidate of every data set."""
    return {
        name: select_best(expand_grids(GRIDS), {text: metrics["micro"] for text, metrics in tried.items()})
        for name, tried in trials.items()
    }


def measure(seeds: int, jobs: int) -> dict[str, Any]:
    """Return the scores of all candidates, and the mean scores of the best ones."""
    trials = try_candidates(jobs)
    best = select_candidates(trials)
    tasks = [(name, best[name], seed, False) for seed in range(seeds) for name in DATASETS]
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in DATASETS}
    for number, metrics in run_tasks(train, tasks, jobs):
        runs[tasks[number][0]].append(metrics)
        print(*tasks[number], metrics, flush=True)
    record: dict[str, Any] = {"graphsage_tuned_seeds": float(seeds), "candidates": trials, "settings": best}
    for name, measured in runs.items():
        scores, seconds = ([metrics[key] for metrics in measured] for key in ("micro", "seconds"))
        record[f"{name}_graphsage_tuned"] = fmean(scores)
        record[f"{name}_graphsage_tuned_std"] = pstdev(scores)
        record[f"{name}_graphsage_tuned_seconds"] = fmean(seconds)
    return record


def main() -> None:
    """Parse the options, measure and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="number of trainings in parallel processes")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    record = measure(options.seeds, options.jobs)
    print({name: value for name, value in record.items() if name != "candidates"})
    if options.json:
        write_record(options.json, record)


if __name__ == "__main__":
    main()
