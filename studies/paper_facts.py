"""Measure properties of data sets and streams that explain the scores of rule `paper`.

    python studies/paper_facts.py [FILE]     # by default results/streams.json

These are how strongly the index order follows the classes, how many components the graphs and their starts have, and
how many vertices an arrival influences. The tables of docs/paper.md show them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import normalized_mutual_info_score as nmi

from ripplevec import Embedder
from ripplevec.lab import datasets
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.evaluation import stream
from ripplevec.lab.evaluation.protocols import Arrivals, ChangedVectors
from ripplevec.lab.experiments.record import describe_environment

ROOT = Path(__file__).resolve().parent.parent
START, SEED = 0.5, 0
PAPER: dict[str, Any] = {"rule": "paper", "dim": 90, "seed": SEED, "threads": 1}


def measure_index_order(dataset: Dataset) -> dict[str, float]:
    """Return how well the first half in index order represents the classes of the second half."""
    labels, half = dataset.labels, dataset.vertices // 2
    tenth = np.arange(len(labels)) * 10 // len(labels)
    sizes = np.unique(labels, return_counts=True)[1] / len(labels)
    shuffled = np.random.default_rng(SEED).permutation(labels)
    return {
        "classes": len(sizes),
        "entropy_of_classes_over_most": float(-(sizes @ np.log(sizes)) / np.log(len(sizes))),
        "classes_in_first_half": len(np.unique(labels[:half])),
        "second_half_of_unseen_class": float(np.mean(~np.isin(labels[half:], labels[:half]))),
        "nmi_of_tenth_and_class": float(nmi(tenth, labels)),
        "nmi_if_shuffled": float(nmi(tenth, shuffled)),
    }


def measure_components(dataset: Dataset) -> dict[str, int]:
    """Return the components of the whole graph and of the start, and how many of its vertices the largest one lacks."""
    start = round(START * dataset.vertices)
    arrivals = Arrivals.from_dataset(dataset, SEED)
    whole, (count, component) = arrivals.graph(dataset.vertices), connected_components(arrivals.graph(start))
    return {
        "components": int(connected_components(whole)[0]),
        "components_of_start": int(count),
        "start_outside_largest": int(start - np.bincount(component).max()),
    }


def measure_influence(dataset: Dataset) -> dict[str, float]:
    """Return the sizes of influenced sets at depth 1, and the share of zero vectors at the end."""
    observer = SetSizes()
    stream(Embedder(**PAPER, on_empty="zero", late_placement=False), dataset, START, SEED, observer=observer)
    sizes = np.array(observer.sizes)
    model = Embedder(**PAPER)
    final = stream(model, dataset, START, SEED).final_vectors
    return {
        "sets_drawn": len(sizes),
        "nobody_influenced": float(np.mean(sizes == 0)),
        "one_influenced": float(np.mean(sizes == 1)),
        "zero_at_the_end": float(np.mean(~final.any(axis=1))),
        "never_placed": model.diagnostics()["unplaced"] / dataset.vertices,
    }


class SetSizes:
    """Observes the size of the influenced set of every arrival that has a placed neighbor, empty sets included.

    For a model in which an arrival changes nothing but itself and its influenced set: empty sets are not replaced, and
    no vertex is placed later.
    """

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self._unplaced = 0

    def begin(self, model: Any, present: NDArray[np.int64]) -> None:
        """Count the vertices without a vector after the start."""
        self._unplaced = model.diagnostics()["unplaced"]

    def step(self, model: Any, present: NDArray[np.int64], arrived: int, changes: ChangedVectors) -> None:
        """Count the vertices that an arrival has moved; an arrival without a placed neighbor draws no set."""
        unplaced = model.diagnostics()["unplaced"]
        if unplaced == self._unplaced:
            self.sizes.append(len(changes.ids) - arrived)
        self._unplaced = unplaced


if __name__ == "__main__":
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "results/streams.json"
    facts = {}
    for name in datasets.available():
        data = datasets.load(name)
        facts[name] = {
            "index": measure_index_order(data),
            "components": measure_components(data),
            "influence": measure_influence(data),
        }
    content = {
        "start": START,
        "seed": SEED,
        "dim": PAPER["dim"],
        "environment": describe_environment(),
        "datasets": facts,
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
