"""Benchmark of other ways to use attributes, on the streams of `benchmarks/attributes.py`.

    python benchmarks/attribute_baselines.py [--seeds 5] [--methods NAME …] [--json FILE]

An existing record is kept: the metrics of the given methods are added to it.

BlogCatalog and Flickr, start with half of the vertices, micro-F1 in percent, mean over the seeds. A method returns
vectors of all vertices of the complete graph, unless it says otherwise:

- `extra_columns`: a model without attributes in 128 dimensions, at the end of its stream, and tf-idf and SVD of all
  attributes in 128 dimensions, side by side as 256 columns for a classifier. Rows of both have length one.
- `graphsage`: GraphSAGE with attributes (tf-idf) as features, trained on the complete graph without labels;
- `dane`: the offline model of DANE with attributes (tf-idf), computed from the complete graph;
- `online_dane_64`, `online_dane_1024`, `online_dane_never`: DANE with attributes at the end of its stream, with an
  update after so many arrivals, or none. `…_arrival` scores the vectors on arrival, and `…_no_edges` those that
  arrivals would have had from their attributes alone, both by a classifier trained at the start. tf-idf is computed
  from the vertices of the start.

Methods have 128 dimensions and otherwise the default settings of `ripplevec.lab.baselines`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from _report import run_parts
from attributes import DATASETS, DIM, project_all, read_attributes
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfTransformer

from ripplevec import Embedder
from ripplevec.lab.baselines.attributed_dane import AttributedDANE
from ripplevec.lab.baselines.graphsage import GraphSAGE
from ripplevec.lab.baselines.streaming.attributed_dane import OnlineAttributedDANE
from ripplevec.lab.datasets import load
from ripplevec.lab.datasets.dataset import Dataset
from ripplevec.lab.evaluation.label_metrics import Classifier, classify
from ripplevec.lab.evaluation.protocols import Arrivals

Method = Callable[[Dataset, csr_array, int], NDArray[np.float32]]

ONLINE_DANE = {"online_dane_64": 64, "online_dane_1024": 1024, "online_dane_never": 1_000_000}  # arrivals per update


def join_columns(dataset: Dataset, attributes: csr_array, seed: int) -> NDArray[np.float32]:
    """Return the vectors of a stream without attributes, and projected attributes as extra columns."""
    arrivals, half = Arrivals.from_dataset(dataset, seed), dataset.vertices // 2
    model = Embedder(dim=DIM, seed=seed).fit(arrivals.batch(0, half))
    for position in range(half, dataset.vertices):
        model.add_vertex(int(arrivals.order[position]), arrivals.neighbors(position))
    projected = project_all(attributes, seed)
    lengths = np.linalg.norm(projected, axis=1, keepdims=True)
    return np.hstack([model.vectors(np.arange(dataset.vertices)), projected / np.where(lengths > 0, lengths, 1)])


def train_graphsage(dataset: Dataset, attributes: csr_array, seed: int) -> NDArray[np.float32]:
    """Return the vectors of GraphSAGE with attributes."""
    return GraphSAGE(dim=DIM, seed=seed).embed(dataset.adjacency(), weigh(attributes))


def solve_dane(dataset: Dataset, attributes: csr_array, seed: int) -> NDArray[np.float32]:
    """Return the vectors of DANE with attributes."""
    return AttributedDANE(dim=DIM, seed=seed).embed(dataset.adjacency(), weigh(attributes))


def weigh(attributes: csr_array) -> csr_array:
    """Return the tf-idf weights of attributes, in rows of length one."""
    return csr_array(TfidfTransformer().fit_transform(attributes))


METHODS: dict[str, Method] = {"extra_columns": join_columns, "dane": solve_dane, "graphsage": train_graphsage}


def measure_dataset(method: str, name: str, seed: int) -> dict[str, float]:
    """Return the scores of a method on one data set."""
    dataset, attributes = load(name), read_attributes(name)
    if method in ONLINE_DANE:
        return stream_dane(dataset, attributes, seed, ONLINE_DANE[method])
    order, half = Arrivals.from_dataset(dataset, seed).order, dataset.vertices // 2
    vectors = METHODS[method](dataset, attributes, seed)
    return {"": 100 * classify(vectors, dataset.labels, order[:half], order[half:]).micro}


def stream_dane(dataset: Dataset, attributes: csr_array, seed: int, chunk: int) -> dict[str, float]:
    """Return the scores of DANE with attributes, started with half of the vertices, at the end and on arrival."""
    arrivals, half, count = Arrivals.from_dataset(dataset, seed), dataset.vertices // 2, dataset.vertices
    order, labels, place = arrivals.order, dataset.labels[arrivals.order], np.argsort(arrivals.order)
    rows = csr_array(TfidfTransformer().fit(attributes[order[:half]]).transform(attributes[order]))
    method = OnlineAttributedDANE(dim=DIM, chunk=chunk, seed=seed)
    method.start(arrivals.graph(half), rows[:half])
    classifier = Classifier.train(method.vectors(), labels[:half])
    no_edges, on_arrival = [], []
    for v in range(half, count):
        no_edges.append(method.preview([], rows[[v]]))
        on_arrival.append(method.add_vertex(v, place[arrivals.neighbors(v)].tolist(), rows[[v]]))
    scores = {
        "": classify(method.vectors(), labels, np.arange(half), np.arange(half, count)),
        "_arrival": classifier.score(np.array(on_arrival), labels[half:]),
        "_no_edges": classifier.score(np.array(no_edges), labels[half:]),
    }
    return {metric: 100 * score.micro for metric, score in scores.items()}


def measure(method: str, seeds: int) -> dict[str, float]:
    """Return the metrics of a method, with its number of seeds."""
    metrics = {f"{method}_seeds": float(seeds)}
    for name in DATASETS:
        trials = [measure_dataset(method, name, seed) for seed in range(seeds)]
        for metric in trials[0]:
            scores = [trial[metric] for trial in trials]
            key = f"{name}_{method}{metric}"
            metrics |= {key: float(np.mean(scores)), f"{key}_std": float(np.std(scores))}
    return metrics


if __name__ == "__main__":
    run_parts(__doc__, measure, "methods", [*METHODS, *ONLINE_DANE], 5)
