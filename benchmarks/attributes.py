"""Benchmark of attributes: classification scores of streams with attributes, and the cost of an arrival with them.

    python benchmarks/attributes.py [--seeds 5] [--json FILE]

BlogCatalog and Flickr, 128 dimensions, start with half of the vertices, micro-F1 in percent, mean over the seeds:

- `current`: a classifier trained on the final vectors of the start, applied to the final vectors of the others;
- `arrival`: one trained on the vectors at the start, applied to the vectors on arrival;
- `no_edges`: the same, applied to the vectors that arrivals would have had from their attributes alone;
- `edges_current` and `edges_arrival`: without attributes, and `attributes_only`: tf-idf and SVD of all vertices.

The cost is processor time per arrival in a graph of communities, relative to the same arrivals without attributes: with
100 named values, and with 384 numbers. Both kinds of arrival alternate.
"""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np
from _report import run_benchmark
from numpy.typing import NDArray
from scipy.io import loadmat
from scipy.sparse import csr_array

from ripplevec import Embedder
from ripplevec.attributes.input import read_values
from ripplevec.attributes.projection import Projection
from ripplevec.lab.datasets import load
from ripplevec.lab.datasets.download import locate
from ripplevec.lab.datasets.published import available
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation.label_metrics import Classifier, classify
from ripplevec.lab.evaluation.protocols import Arrivals

DIM = 128
DATASETS = ("blog", "flickr")
COST_ARRIVALS, NAMES, NONZERO, WIDTH = 2_000, 20_000, 100, 384


def read_attributes(name: str) -> csr_array:
    """Return the attributes of a data set, one row per vertex."""
    (file,) = available()[name].files
    return csr_array(loadmat(locate(file), variable_names=["Attributes"])["Attributes"].astype(np.float64))


def measure_dataset(name: str, seed: int) -> dict[str, float]:
    """Return the scores of one stream."""
    dataset, matrix = load(name), read_attributes(name)
    arrivals, half = Arrivals.from_dataset(dataset, seed), dataset.vertices // 2
    order, labels = arrivals.order, dataset.labels[arrivals.order]
    model, edges = Embedder(dim=DIM, seed=seed), Embedder(dim=DIM, seed=seed)
    model.fit(arrivals.batch(0, half), attributes=(order[:half], matrix[order[:half]]))
    edges.fit(arrivals.batch(0, half))
    starts = [each.vectors(order[:half]) for each in (model, edges)]
    vectors: dict[str, list[NDArray[Any]]] = {"arrival": [], "no_edges": [], "edges_arrival": []}
    for position in range(half, dataset.vertices):
        vertex, neighbors = int(order[position]), arrivals.neighbors(position)
        row = matrix[[vertex]]
        vectors["no_edges"].append(model.preview(attributes=row))
        vectors["arrival"].append(model.add_vertex(vertex, neighbors, attributes=row))
        vectors["edges_arrival"].append(edges.add_vertex(vertex, neighbors))
    classifiers = [Classifier.train(start, labels[:half]) for start in starts]
    by_metric = {"arrival": 0, "no_edges": 0, "edges_arrival": 1}
    scores = {
        metric: classifiers[which].score(np.array(vectors[metric]), labels[half:])
        for metric, which in by_metric.items()
    }
    train, test = np.arange(half), np.arange(half, dataset.vertices)
    scores["current"] = classify(model.vectors(order), labels, train, test)
    scores["edges_current"] = classify(edges.vectors(order), labels, train, test)
    scores["attributes_only"] = classify(project_all(matrix, seed)[order], labels, train, test)
    return {metric: 100 * score.micro for metric, score in scores.items()}


def project_all(matrix: csr_array, seed: int) -> NDArray[Any]:
    """Return the projections of all rows, learned from all rows."""
    projection, rows = Projection(DIM, seed), read_values(np.arange(matrix.shape[0]), matrix)
    columns = projection.enter_columns(rows)
    projection.count_all(len(rows.ids), columns, rows.values)
    return projection.learn(rows.begin, columns, rows.values)


def measure_cost(dense: bool) -> float:
    """Return the cost of an arrival with attributes, relative to one without."""
    random, dataset = np.random.default_rng(0), planted_partition(communities=40, size=250, seed=0)
    arrivals, half = Arrivals.from_dataset(dataset, 0), dataset.vertices // 2
    rows: list[Any] = [random.normal(size=WIDTH).astype(np.float32) for _ in range(dataset.vertices)]
    if not dense:
        topics = random.integers(0, NAMES, (40, 400))
        words = [random.choice(topics[label], NONZERO, replace=False) for label in dataset.labels]
        rows = [{f"word{word}": 1.0 for word in chosen.tolist()} for chosen in words]
    start = arrivals.order[:half].tolist()
    models = Embedder(dim=DIM), Embedder(dim=DIM)
    models[0].fit(arrivals.batch(0, half))
    models[1].fit(arrivals.batch(0, half), attributes={vertex: rows[vertex] for vertex in start})
    seconds = np.zeros(2)
    for position in range(half, half + COST_ARRIVALS):
        vertex, neighbors = int(arrivals.order[position]), arrivals.neighbors(position)
        for which, model in enumerate(models):
            began = process_time()
            if which:
                model.add_vertex(vertex, neighbors, attributes=rows[vertex])
            else:
                model.add_vertex(vertex, neighbors)
            seconds[which] += process_time() - began
    return float(seconds[1] / seconds[0])


def measure(seeds: int) -> dict[str, float]:
    """Return all metrics."""
    metrics = {"seeds": float(seeds)}
    for name, dense in (("cost_100_names", False), ("cost_384_numbers", True)):
        measure_cost(dense)  # compiles kernels, also those of anchors, which come late in the stream
        metrics[name] = measure_cost(dense)
    for name in DATASETS:
        trials = [measure_dataset(name, seed) for seed in range(seeds)]
        for metric in trials[0]:
            values = [trial[metric] for trial in trials]
            metrics[f"{name}_{metric}"] = float(np.mean(values))
            metrics[f"{name}_{metric}_std"] = float(np.std(values))
    return metrics


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "seeds", 5)
