"""Benchmark of other ways to use attributes, on the streams of `benchmarks/attributes.py`.

    python benchmarks/attribute_baselines.py [--seeds 5] [--methods NAME …] [--json FILE]

An existing record is kept: the metrics of the given methods are added to it.

BlogCatalog and Flickr, start with half of the vertices, micro-F1 in percent, mean over the seeds. A method returns
vectors of all vertices of the complete graph, unless it says otherwise:

- `extra_columns`: a model without attributes in 128 dimensions, at the end of its stream, and tf-idf and SVD of all
  attributes in 128 dimensions, side by side as 256 columns for a classifier. Rows of both have length one.
- `graphsage`: GraphSAGE with attributes (tf-idf) as features, trained on the complete graph without labels;
- `dane`: the offline model of DANE with attributes (tf-idf), computed from the complete graph.

The last two are retrained, with 128 dimensions and the default settings of `ripplevec.lab.baselines`.
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


def measure_dataset(method: str, name: str, seed: int) -> float:
    """Return the score of a method on one stream."""
    dataset, attributes = load(name), read_attributes(name)
    order, half = Arrivals.from_dataset(dataset, seed).order, dataset.vertices // 2
    vectors = METHODS[method](dataset, attributes, seed)
    return 100 * classify(vectors, dataset.labels, order[:half], order[half:]).micro


def measure(method: str, seeds: int) -> dict[str, float]:
    """Return the metrics of a method, with its number of seeds."""
    metrics = {f"{method}_seeds": float(seeds)}
    for name in DATASETS:
        scores = [measure_dataset(method, name, seed) for seed in range(seeds)]
        metrics |= {f"{name}_{method}": float(np.mean(scores)), f"{name}_{method}_std": float(np.std(scores))}
    return metrics


if __name__ == "__main__":
    run_parts(__doc__, measure, "methods", list(METHODS), 5)
