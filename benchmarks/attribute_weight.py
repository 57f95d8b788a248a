"""Benchmark of a choice of the attribute weight by hidden edges, on the graphs of `attribute_constants.py`.

    python benchmarks/attribute_weight.py [--seeds 1] [--graphs NAME …] [--json FILE]

An existing record is kept: the metrics of the given graphs are added to it.

The choice is that of the views (`views/view_choice.py`): a tenth of the edges is hidden before anything is learned.
The edge parts, the projection of attributes and the attribute parts come from the other edges. For each hidden edge,
the end with more neighbors ranks the other one among 20 vertices that are not its neighbors, by the cosine of whole
vectors. The score of a weight is the mean reciprocal rank. Of the weights that the best one does not beat by two
standard errors, the smallest is chosen.

- `…_rank_weight_W`: the score of a weight in percent;
- `…_weight_W`: micro-F1 in percent of vectors with this weight, of the complete graph; half of the labels for training;
- `…_chosen`, `…_gain`: the chosen weight, and its micro-F1 minus that of the weight 0.5.

Besides the graphs of `attribute_constants.py`: `blog_shuffled` and `flickr_shuffled`, whose vertices have the
attributes of random others. Means over the seeds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _report import run_parts
from attribute_constants import DEFAULT_WEIGHT, DIM, KINDS, REAL, REAL_DIM, generate, scale_rows
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
SHUFFLED = "_shuffled"
GRAPHS = (*KINDS, *REAL, *(f"{name}{SHUFFLED}" for name in REAL))


def embed_parts(pairs: NDArray[np.int64], weights: NDArray[Any], rows: Any, dim: int, seed: int) -> list[NDArray[Any]]:
    """Return the edge parts and the attribute parts of all vertices, each of length one or zero."""
    batch, vertices = Batch.of(pairs[:, 0], pairs[:, 1], weight=weights), np.arange(rows.shape[0])
    engine = Embedder(dim=dim, seed=seed).fit(batch, attributes=(vertices, rows)).engine
    assert isinstance(engine, AttributedEngine)
    found = engine.find_rows(vertices)
    return [Engine.unit_vectors(engine, found), scale_rows(engine.attributes.parts[found])]


def join(parts: list[NDArray[Any]], weight: float) -> NDArray[np.float32]:
    """Return whole vectors of length one."""
    return scale_rows(np.hstack([parts[0], weight * parts[1]]))


def list_edges(adjacency: csr_array) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return each edge of a symmetric matrix once, and the weights of the edges."""
    matrix = adjacency.tocoo()
    once = matrix.row < matrix.col
    return np.stack([matrix.row[once], matrix.col[once]], axis=1).astype(np.int64), matrix.data[once]


def measure_trial(dataset: Dataset, rows: Any, dim: int, seed: int) -> dict[str, float]:
    """Return the metrics of one graph."""
    pairs, weights = list_edges(dataset.adjacency())
    hidden = hide_edges(SampledGraph(dataset.vertices, pairs, weights.astype(np.float32)), seed)
    parts = embed_parts(*list_edges(hidden.adjacency.to_csr()), rows, dim, seed)
    ranks = np.stack([reciprocal_ranks(join(parts, weight), hidden) for weight in WEIGHTS])
    chosen = WEIGHTS[find_first_best(ranks)]
    whole, order = embed_parts(pairs, weights, rows, dim, seed), np.random.default_rng(seed).permutation(len(parts[0]))
    half, scores = order.size // 2, {}
    for weight, rank in zip(WEIGHTS, ranks.mean(axis=1).tolist(), strict=True):
        scores[f"rank_weight_{weight:g}"] = 100 * rank
        score = classify(join(whole, weight), dataset.labels, order[:half], order[half:])
        scores[f"weight_{weight:g}"] = 100 * score.micro
    gain = scores[f"weight_{chosen:g}"] - scores[f"weight_{DEFAULT_WEIGHT:g}"]
    return scores | {"chosen": chosen, "gain": gain}


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
    run_parts(__doc__, measure, "graphs", GRAPHS, 1)
