"""Benchmark of attributes: classification scores of streams with attributes, and the cost of an arrival with them.

    python benchmarks/attributes.py [--seeds 5] [--parts NAME …] [--json FILE]

An existing record is kept: the metrics of the given parts are added to it.

BlogCatalog and Flickr, 128 dimensions, start with half of the vertices, micro-F1 in percent, mean over the seeds:

- `current`: a classifier trained on the final vectors of the start, applied to the final vectors of the others;
- `arrival`: one trained on the vectors at the start, applied to the vectors on arrival;
- `no_edges`: the same, applied to the vectors that arrivals would have had from their attributes alone;
- `edges_current` and `edges_arrival`: without attributes, and `attributes_only`: tf-idf and SVD of all vertices;
- `weight`: the weight of the attribute part that was chosen at the start.

The cost is processor time per arrival in a graph of communities, relative to the same arrivals without attributes: with
100 named values, and with 384 numbers. A model of 128 dimensions with attributes has 64 edge columns. `cost_…` compares
it with 128 edge columns, `cost_…_same_columns` with 64. All kinds of arrival alternate.

`growth_…` is the time that 100 named values add to an arrival in a graph with 4 times as many vertices, and with 10
times as many names, relative to 10,000 vertices and 20,000 names; without anchors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from _report import run_parts
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
    weight = model.diagnostics()["attribute_weight"]
    return {metric: 100 * score.micro for metric, score in scores.items()} | {"weight": weight}


def project_all(matrix: csr_array, seed: int) -> NDArray[Any]:
    """Return the projections of all rows, learned from all rows."""
    projection, rows = Projection(DIM, seed), read_values(np.arange(matrix.shape[0]), matrix)
    columns = projection.enter_columns(rows)
    projection.count_all(len(rows.ids), columns, rows.values)
    return projection.learn(rows.begin, columns, rows.values)


class Workload(NamedTuple):
    """A graph of communities whose vertices arrive with attributes."""

    arrivals: Arrivals
    rows: Callable[[int], Any]  # attributes of a vertex
    vertices: int

    def start(self, dim: int, attributes: bool, **parameters: Any) -> Embedder:
        """Return a model of the first half of the vertices."""
        half = self.vertices // 2
        rows = {vertex: self.rows(vertex) for vertex in self.arrivals.order[:half].tolist()} if attributes else None
        return Embedder(dim=dim, **parameters).fit(self.arrivals.batch(0, half), attributes=rows)


def make_workload(dense: bool, communities: int = 40, names: int = NAMES) -> Workload:
    """Return a graph with 384 numbers, or with 100 of so many names, for every vertex."""
    dataset = planted_partition(communities=communities, size=250, seed=0)
    topics = np.random.default_rng(0).integers(0, names, (communities, names // 50))

    def generate_row(vertex: int) -> Any:
        random = np.random.default_rng([1, vertex])
        if dense:
            return random.normal(size=WIDTH).astype(np.float32)
        words = random.choice(topics[dataset.labels[vertex]], NONZERO, replace=False)
        return {f"word{word}": 1.0 for word in words.tolist()}

    return Workload(Arrivals.from_dataset(dataset, 0), generate_row, dataset.vertices)


def time_arrivals(runs: Sequence[tuple[Workload, Embedder]]) -> NDArray[np.float64]:
    """Return the processor seconds of arrivals, which alternate between the models."""
    seconds = np.zeros(len(runs))
    for step in range(COST_ARRIVALS):
        for which, (workload, model) in enumerate(runs):
            position = workload.vertices // 2 + step
            vertex, neighbors = int(workload.arrivals.order[position]), workload.arrivals.neighbors(position)
            row = workload.rows(vertex) if model.engine.attribute_dim else None
            began = process_time()
            model.add_vertex(vertex, neighbors, attributes=row)
            seconds[which] += process_time() - began
    return seconds


def measure_cost(dense: bool) -> tuple[float, float]:
    """Return the cost of an arrival with attributes relative to one without, in as many dimensions or edge columns."""
    workload = make_workload(dense)
    models = workload.start(DIM, True), workload.start(DIM, False), workload.start(DIM // 2, False)
    cost, *others = time_arrivals([(workload, model) for model in models])
    return float(cost / others[0]), float(cost / others[1])


def measure_growth() -> dict[str, float]:
    """Return the cost of 100 named values in a larger graph and with more names, relative to a smaller one."""
    workloads = [make_workload(False), make_workload(False, communities=160), make_workload(False, names=10 * NAMES)]
    runs = [
        (workload, workload.start(DIM if attributes else DIM // 2, attributes, anchor_growth=0, views="sparse"))
        for workload in workloads
        for attributes in (True, False)
    ]
    seconds = time_arrivals(runs)
    extra = seconds[::2] - seconds[1::2]
    return {"growth_4x_vertices": float(extra[1] / extra[0]), "growth_10x_names": float(extra[2] / extra[0])}


def measure_costs() -> dict[str, float]:
    """Return the metrics of costs."""
    metrics = {}
    for name, dense in (("cost_100_names", False), ("cost_384_numbers", True)):
        measure_cost(dense)  # compiles kernels, also those of anchors, which come late in the stream
        metrics[name], metrics[f"{name}_same_columns"] = measure_cost(dense)
    return metrics | measure_growth()


def measure(part: str, seeds: int) -> dict[str, float]:
    """Return the metrics of the streams of a data set, or those of costs."""
    if part == "cost":
        return measure_costs()
    trials = [measure_dataset(part, seed) for seed in range(seeds)]
    metrics = {f"{part}_seeds": float(seeds)}
    for metric in trials[0]:
        values = [trial[metric] for trial in trials]
        metrics |= {f"{part}_{metric}": float(np.mean(values)), f"{part}_{metric}_std": float(np.std(values))}
    return metrics


if __name__ == "__main__":
    run_parts(__doc__, measure, "parts", [*DATASETS, "cost"], 5)
