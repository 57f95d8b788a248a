"""Benchmark of the choice of the attribute weight: micro-F1 with the chosen weight and with others.

    python benchmarks/attribute_weight.py [--seeds 5] [--graphs NAME …] [--json FILE]

An existing record is kept: the metrics of the given graphs are added to it.

Synthetic graphs of communities (`_attributed_graphs.py`) whose attributes are informative, noisy, irrelevant or
misleading, sparse or dense; BlogCatalog and Flickr; and `…_shuffled`, whose vertices have the attributes of random
others. A model of the complete graph chooses its weight by hidden edges. Half of the labels train a classifier. In
percent, means over the seeds:

- `…_edges`: micro-F1 without attributes, with all dimensions for edges;
- `…_weight_W`: micro-F1 with this weight, from 0 (no attributes in the dimensions for them) to 2;
- `…_auto`: micro-F1 with the chosen weight; `…_chosen`: the mean of the chosen weights;
- `…_smallest`: micro-F1 with the smallest weight, of 0 and the others, that predicts hidden edges as well as the best
  one up to chance: the rule by which views are chosen;
- `…_rank_weight_W`: the score of a weight, the mean reciprocal rank of hidden edges;
- `…_regret`: micro-F1 of the best weight minus that of the chosen one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _attributed_graphs import DIM, KINDS, generate, scale_rows
from _report import run_parts
from attributes import read_attributes
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec import Batch, Embedder
from ripplevec.engine.attributed_engine import AttributedEngine
from ripplevec.engine.engine import Engine
from ripplevec.lab.datasets import load
from ripplevec.lab.datasets.dataset import Dataset
from ripplevec.lab.evaluation.label_metrics import classify
from ripplevec.views.graph_sample import SampledGraph
from ripplevec.views.view_choice import find_first_best, hide_edges, reciprocal_ranks

WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0)
REAL, REAL_DIM, SHUFFLED = ("blog", "flickr"), 128, "_shuffled"
GRAPHS = (*KINDS, *REAL, *(f"{name}{SHUFFLED}" for name in REAL))


def fit_model(pairs: NDArray[np.int64], weights: NDArray[Any], rows: Any, dim: int, seed: int) -> Embedder:
    """Return a model of a graph with attributes."""
    batch = Batch.of(pairs[:, 0], pairs[:, 1], weight=weights)
    return Embedder(dim=dim, seed=seed).fit(batch, attributes=(np.arange(rows.shape[0]), rows))


def read_parts(model: Embedder, count: int) -> list[NDArray[Any]]:
    """Return the edge parts and the attribute parts of all vertices, each of length one or zero."""
    engine = model.engine
    assert isinstance(engine, AttributedEngine)
    found = engine.find_rows(np.arange(count))
    return [Engine.unit_vectors(engine, found), scale_rows(engine.attributes.parts[found])]


def join(parts: list[NDArray[Any]], weight: float) -> NDArray[np.float32]:
    """Return whole vectors of length one."""
    return scale_rows(np.hstack([parts[0], weight * parts[1]]))


def list_edges(adjacency: csr_array) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return each edge of a symmetric matrix once, and the weights of the edges."""
    matrix = adjacency.tocoo()
    once = matrix.row < matrix.col
    return np.stack([matrix.row[once], matrix.col[once]], axis=1).astype(np.int64), matrix.data[once]


def rank_weights(dataset: Dataset, rows: Any, dim: int, seed: int) -> NDArray[np.float64]:
    """Return the reciprocal ranks of hidden edges with every weight."""
    pairs, weights = list_edges(dataset.adjacency())
    hidden = hide_edges(SampledGraph(dataset.vertices, pairs, weights.astype(np.float32)), seed)
    model = fit_model(*list_edges(hidden.adjacency.to_csr()), rows, dim, seed)
    parts = read_parts(model, dataset.vertices)
    return np.stack([reciprocal_ranks(join(parts, weight), hidden) for weight in WEIGHTS])


def measure_trial(dataset: Dataset, rows: Any, dim: int, seed: int) -> dict[str, float]:
    """Return the metrics of one graph."""
    pairs, weights = list_edges(dataset.adjacency())
    model = fit_model(pairs, weights, rows, dim, seed)
    order = np.random.default_rng(seed).permutation(dataset.vertices)
    half, parts = order.size // 2, read_parts(model, order.size)

    def score(vectors: NDArray[np.float32]) -> float:
        return 100 * classify(vectors, dataset.labels, order[:half], order[half:]).micro

    by_weight = {weight: score(join(parts, weight)) for weight in WEIGHTS}
    ranks, chosen = rank_weights(dataset, rows, dim, seed), model.diagnostics()["attribute_weight"]
    edges = Embedder(dim=dim, seed=seed).fit(Batch.of(pairs[:, 0], pairs[:, 1], weight=weights))
    return {
        "edges": score(read_vectors(edges, order.size)),
        "auto": by_weight[chosen],
        "chosen": chosen,
        "smallest": by_weight[WEIGHTS[find_first_best(ranks)]],
        "regret": max(by_weight.values()) - by_weight[chosen],
        **{f"weight_{weight:g}": value for weight, value in by_weight.items()},
        **{
            f"rank_weight_{weight:g}": 100 * rank
            for weight, rank in zip(WEIGHTS, ranks.mean(axis=1).tolist(), strict=True)
        },
    }


def read_vectors(model: Embedder, count: int) -> NDArray[np.float32]:
    """Return the vectors of vertices 0 … count − 1; zero for those without edges."""
    found = model.engine.find_rows(np.arange(count))
    vectors = np.zeros((count, model.dim), np.float32)
    vectors[found >= 0] = model.engine.unit_vectors(found[found >= 0])
    return vectors


def read_graph(name: str, seed: int) -> tuple[Dataset, Any, int]:
    """Return a graph, its attributes and the number of dimensions."""
    if name in KINDS:
        return *generate(KINDS[name], seed), DIM
    real = name.removesuffix(SHUFFLED)
    rows = read_attributes(real)
    if name != real:
        rows = rows[np.random.default_rng(seed).permutation(rows.shape[0])]
    return load(real), rows, REAL_DIM


def measure(name: str, seeds: int) -> dict[str, float]:
    """Return the metrics of one graph, means over the seeds."""
    trials = []
    for seed in range(seeds):
        dataset, rows, dim = read_graph(name, seed)
        trials.append(measure_trial(dataset, rows, dim, seed))
    means = {f"{name}_{metric}": float(np.mean([trial[metric] for trial in trials])) for metric in trials[0]}
    return {f"{name}_seeds": float(seeds), **means}


if __name__ == "__main__":
    run_parts(__doc__, measure, "graphs", GRAPHS, 5)
