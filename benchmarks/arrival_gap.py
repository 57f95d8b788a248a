"""Benchmark of vectors on arrival against an embedding that is computed again for every 5 % of growth.

    python benchmarks/arrival_gap.py [--seeds 3] [--json FILE]

The stream starts with half of the vertices. Micro-F1 in percent of the vectors that newcomers get on arrival, and of
those from an exact embedding of the graph at the end of each 5 % of growth, with the same views. Both are scored by two
classifiers, because the age of the classifier matters more than the way in which the vectors were made:

- *old classifier*: trained once, on the vectors at the start. The exact embeddings are rotated onto these vectors.
- *new classifier*: trained again for every 5 % of growth, on the current vectors of the first half of the vertices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from _report import run_benchmark
from numpy.typing import NDArray
from scipy.linalg import orthogonal_procrustes

from ripplevec import Embedder
from ripplevec.lab.datasets import load
from ripplevec.lab.datasets.dataset import Dataset
from ripplevec.lab.datasets.published import PUBLISHED
from ripplevec.lab.evaluation.label_metrics import Classifier
from ripplevec.lab.evaluation.protocols import Arrivals

DIM, GROWTH = 90, 0.05


class Newcomers(NamedTuple):
    """The newcomers of 5 % of growth, with their vectors made in one way."""

    vertices: NDArray[np.int64]
    vectors: NDArray[np.float32]
    current: NDArray[np.float32]  # vectors of the first half of the vertices at the end of this growth


def stream(dataset: Dataset, arrivals: Arrivals, model: Embedder, seed: int) -> Iterator[tuple[Newcomers, Newcomers]]:
    """Add all newcomers; return them with their vectors on arrival, and with those of an exact embedding."""
    half = dataset.vertices // 2
    first, begin = arrivals.order[:half], half
    at_start = model.vectors(first)
    while begin < dataset.vertices:
        end = min(dataset.vertices, int(begin * (1 + GROWTH)) + 1)
        vertices = arrivals.order[begin:end]
        on_arrival = np.stack([add_vertex(model, arrivals, position) for position in range(begin, end)])
        again = Embedder(dim=DIM, seed=seed, views=model.diagnostics()["views"]).fit(arrivals.batch(0, end))
        exact = again.vectors(arrivals.order[:end])
        exact = exact @ orthogonal_procrustes(exact[:half], at_start)[0]
        yield Newcomers(vertices, on_arrival, model.vectors(first)), Newcomers(vertices, exact[begin:], exact[:half])
        begin = end


def add_vertex(model: Embedder, arrivals: Arrivals, position: int) -> NDArray[np.float32]:
    """Add the vertex at this position of the stream; return its vector."""
    vertex = int(arrivals.order[position])
    model.add_vertex(vertex, arrivals.neighbors(position))
    return model[vertex]


def measure_stream(dataset: Dataset, seed: int) -> dict[str, float]:
    """Return the micro-F1 on arrival and of the exact embeddings, by both classifiers."""
    arrivals, labels = Arrivals.from_dataset(dataset, seed), dataset.labels
    first = arrivals.order[: dataset.vertices // 2]
    model = Embedder(dim=DIM, seed=seed).fit(arrivals.batch(0, len(first)))
    old = Classifier.train(model.vectors(first), labels[first])
    correct = defaultdict(list)
    for ways in stream(dataset, arrivals, model, seed):
        for way, (vertices, vectors, current) in zip(("arrival", "exact"), ways, strict=True):
            new = Classifier.train(current, labels[first])
            for age, classifier in (("old", old), ("new", new)):
                correct[f"{way}, {age} classifier"].append(classifier.predict(vectors) == labels[vertices])
    return {name: 100 * float(np.concatenate(parts).mean()) for name, parts in correct.items()}


def measure(seeds: int) -> dict[str, float]:
    """Return the scores on all data sets, mean and standard deviation over the seeds."""
    metrics = {"seeds": float(seeds)}
    for name in PUBLISHED:
        trials = [measure_stream(load(name), seed) for seed in range(seeds)]
        for score in trials[0]:
            values = [trial[score] for trial in trials]
            metrics[f"{name}, {score}"] = float(np.mean(values))
            metrics[f"{name}, {score}, std"] = float(np.std(values))
    return metrics


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "seeds", 3)
