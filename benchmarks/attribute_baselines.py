"""Benchmark of other ways to use attributes, on the streams of `benchmarks/attributes.py`.

    python benchmarks/attribute_baselines.py [--seeds 5] [--json FILE]

BlogCatalog and Flickr, start with half of the vertices, micro-F1 in percent, mean over the seeds. A method returns
vectors of all vertices of the complete graph, unless it says otherwise:

- `extra_columns`: a model without attributes in 128 dimensions, at the end of its stream, and tf-idf and SVD of all
  attributes in 128 dimensions, side by side as 256 columns for a classifier. Rows of both have length one.

Methods that learn from edges and attributes together and are retrained can be added to `METHODS`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from _report import run_benchmark
from attributes import DATASETS, DIM, project_all, read_attributes
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec import Embedder
from ripplevec.lab.datasets import load
from ripplevec.lab.datasets.dataset import Dataset
from ripplevec.lab.evaluation.label_metrics import classify
from ripplevec.lab.evaluation.protocols import Arrivals

Method = Callable[[Dataset, csr_array, int], NDArray[np.float32]]


def join_columns(dataset: Dataset, attributes: csr_array, seed: int) -> NDArray[np.float32]:
    """Return the vectors of a stream without attributes, and projected attributes as extra columns."""
    arrivals, half = Arrivals.from_dataset(dataset, seed), dataset.vertices // 2
    model = Embedder(dim=DIM, seed=seed).fit(arrivals.batch(0, half))
    for position in range(half, dataset.vertices):
        model.add_vertex(int(arrivals.order[position]), arrivals.neighbors(position))
    projected = project_all(attributes, seed)
    lengths = np.linalg.norm(projected, axis=1, keepdims=True)
    return np.hstack([model.vectors(np.arange(dataset.vertices)), projected / np.where(lengths > 0, lengths, 1)])


METHODS: dict[str, Method] = {"extra_columns": join_columns}


def measure_dataset(name: str, seed: int) -> dict[str, float]:
    """Return the scores of all methods on one stream."""
    dataset, attributes = load(name), read_attributes(name)
    order, half = Arrivals.from_dataset(dataset, seed).order, dataset.vertices // 2
    scores = {}
    for method, embed in METHODS.items():
        vectors = embed(dataset, attributes, seed)
        scores[method] = 100 * classify(vectors, dataset.labels, order[:half], order[half:]).micro
    return scores


def measure(seeds: int) -> dict[str, float]:
    """Return all metrics."""
    metrics = {"seeds": float(seeds)}
    for name in DATASETS:
        trials = [measure_dataset(name, seed) for seed in range(seeds)]
        for method in METHODS:
            values = [trial[method] for trial in trials]
            metrics[f"{name}_{method}"] = float(np.mean(values))
            metrics[f"{name}_{method}_std"] = float(np.std(values))
    return metrics


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "seeds", 5)
