"""Benchmark of the constants of attributes: weight, smoothing and refit, on graphs that they were not tuned on.

    python benchmarks/attribute_constants.py [--seeds 1] [--graphs NAME …] [--json FILE]

An existing record is kept: the metrics of the given graphs are added to it.

The weight 0.5, the smoothing over neighbors and the refit after a tenth of growth were chosen by scores on Blog and
Flickr. Here they are compared with others on synthetic graphs of communities whose vertices have attributes that are
informative, noisy, irrelevant or misleading (they tell another, unrelated partition of the vertices), sparse or dense,
and with few edges inside communities. Half of the vertices are the start, the others arrive one by one. Micro-F1 of the
communities in percent, mean over the seeds: `current` from the final vectors, `no_edges` from the vectors that arrivals
would have from attributes alone.

- `…_edges_current`: without attributes, with all dimensions for edges;
- `…_current_weight_W`: for weights W of the attribute part;
- `…_rank_weight_W`: mean reciprocal rank in percent of hidden edges, a criterion without labels. Every hidden edge is
  left out of the local step that computes the edge part of one of its ends; the other end is ranked among 100 vertices;
- `…_chosen`, `…_gain`: the weight of highest rank, and the gain in `current` over the weight 0.5;
- `…_no_smoothing`, `…_no_refit`: `current` and `no_edges` with the weight 0.5 and without this step.

Blog and Flickr are included, to see what the criterion would choose there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from _report import run_parts
from attributes import read_attributes
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec import Embedder
from ripplevec.attributes import projection, store
from ripplevec.engine.attributed_engine import AttributedEngine
from ripplevec.engine.engine import Engine
from ripplevec.lab.datasets import load
from ripplevec.lab.datasets.dataset import Dataset
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation.label_metrics import Classifier, classify
from ripplevec.lab.evaluation.protocols import Arrivals

WEIGHTS = (0.25, 0.5, 1.0, 2.0)
DEFAULT_WEIGHT = 0.5
COMMUNITIES, SIZE, DIM, REAL_DIM = 10, 150, 32, 128
WORDS, TOPIC_WORDS, WORDS_PER_VERTEX, WIDTH = 2_000, 60, 20, 64
HIDDEN_EDGES, CANDIDATES = 500, 100


class Kind(NamedTuple):
    """A kind of synthetic graph."""

    inside: float  # mean number of neighbors in the same community; 12 in all
    signal: float  # share of the words that are from the topic of a vertex, or distance of dense centers
    dense: bool = False
    misleading: bool = False


KINDS = {
    "informative": Kind(6, 0.5),
    "noisy": Kind(6, 0.15),
    "irrelevant": Kind(6, 0.0),
    "misleading": Kind(6, 0.5, misleading=True),
    "weak_edges": Kind(3, 0.3),
    "dense": Kind(6, 0.5, dense=True),
    "dense_misleading": Kind(6, 0.5, dense=True, misleading=True),
}
REAL = ("blog", "flickr")


def generate(kind: Kind, seed: int) -> tuple[Dataset, Any]:
    """Return communities and the attributes of their vertices, one row per vertex."""
    dataset = planted_partition(COMMUNITIES, SIZE, kind.inside, 12 - kind.inside, seed)
    random = np.random.default_rng(seed)
    count = dataset.vertices
    topics = random.integers(0, COMMUNITIES, count) if kind.misleading else dataset.labels
    if kind.dense:
        centers = kind.signal * random.normal(size=(COMMUNITIES, WIDTH))
        return dataset, centers[topics] + random.normal(size=(count, WIDTH))
    vocabulary = random.integers(0, WORDS, (COMMUNITIES, TOPIC_WORDS))
    own = vocabulary[topics[:, None], random.integers(0, TOPIC_WORDS, (count, WORDS_PER_VERTEX))]
    from_topic = random.random(own.shape) < kind.signal
    words = np.where(from_topic, own, random.integers(0, WORDS, own.shape))
    rows = np.repeat(np.arange(count), WORDS_PER_VERTEX)
    return dataset, csr_array((np.ones(words.size), (rows, words.ravel())), shape=(count, WORDS))


class Stream(NamedTuple):
    """A model at the end of a stream, and the vectors that are scored."""

    model: Embedder
    order: NDArray[np.int64]
    labels: NDArray[Any]  # by position in the stream
    start: NDArray[np.float32]  # vectors of the start, before any arrival
    no_edges: NDArray[np.float32]  # vectors of arrivals from their attributes alone

    def score_current(self) -> float:
        """Return the score of the final vectors."""
        half, count = len(self.start), len(self.order)
        vectors = self.model.vectors(self.order)
        return 100 * classify(vectors, self.labels, np.arange(half), np.arange(half, count)).micro

    def score_no_edges(self) -> float:
        """Return the score of the vectors from attributes alone, by a classifier of the start."""
        half = len(self.start)
        return 100 * Classifier.train(self.start, self.labels[:half]).score(self.no_edges, self.labels[half:]).micro


def run_stream(dataset: Dataset, rows: Any, dim: int, seed: int) -> Stream:
    """Embed half of the vertices, and add the others."""
    arrivals, half = Arrivals.from_dataset(dataset, seed), dataset.vertices // 2
    order = arrivals.order
    model = Embedder(dim=dim, seed=seed, attribute_weight=DEFAULT_WEIGHT)
    model.fit(arrivals.batch(0, half), attributes=(order[:half], rows[order[:half]]))
    start, no_edges = model.vectors(order[:half]), []
    for position in range(half, dataset.vertices):
        vertex = int(order[position])
        row = rows[[vertex]] if isinstance(rows, csr_array) else rows[vertex]
        no_edges.append(model.preview(attributes=row))
        model.add_vertex(vertex, arrivals.neighbors(position), attributes=row)
    return Stream(model, order, dataset.labels[order], start, np.array(no_edges))


def score_edges(dataset: Dataset, dim: int, seed: int) -> float:
    """Return the score of the final vectors of a model without attributes."""
    arrivals, half = Arrivals.from_dataset(dataset, seed), dataset.vertices // 2
    model = Embedder(dim=dim, seed=seed).fit(arrivals.batch(0, half))
    for position in range(half, dataset.vertices):
        model.add_vertex(int(arrivals.order[position]), arrivals.neighbors(position))
    vectors, labels = model.vectors(arrivals.order), dataset.labels[arrivals.order]
    return 100 * classify(vectors, labels, np.arange(half), np.arange(half, dataset.vertices)).micro


def rank_hidden_edges(engine: AttributedEngine, seed: int) -> NDArray[np.float64]:
    """Return the mean reciprocal rank of hidden edges for every weight."""
    random, links, rows = np.random.default_rng(seed), engine.graph.adjacency.links, engine.rows_by_arrival()
    sources, squares, reciprocal = rows[links.degree[rows] >= 2], np.square(WEIGHTS)[:, None], []
    for source in random.choice(sources, min(HIDDEN_EDGES, sources.size), replace=False).tolist():
        slots = engine.graph.adjacency.slots(np.array([source]))
        neighbors, hidden = links.neighbor[slots].astype(np.int64), int(random.integers(slots.size))
        others = np.setdiff1d(random.choice(rows, CANDIDATES), [*neighbors.tolist(), source])
        compared = np.append(others, neighbors[hidden])
        strengths = np.delete(links.weight[slots], hidden).astype(np.float32)
        part = Engine.preview(engine, np.delete(neighbors, hidden), strengths)
        edge = Engine.get_vectors(engine, compared) @ part
        attribute = scale_rows(engine.attributes.parts[compared]) @ scale_rows(engine.attributes.parts[[source]])[0]
        scores = edge + squares * attribute
        better, equal = scores[:, :-1] > scores[:, -1:], scores[:, :-1] == scores[:, -1:]
        reciprocal.append(1 / (1 + better.sum(axis=1) + equal.sum(axis=1) / 2))
    return np.mean(reciprocal, axis=0)


def scale_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return rows of length one, or zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)


@contextmanager
def changed(module: Any, **values: Any) -> Iterator[None]:
    """Change constants of a module for a while."""
    before = {name: getattr(module, name) for name in values}
    vars(module).update(values)
    try:
        yield
    finally:
        vars(module).update(before)


@contextmanager
def no_smoothing() -> Iterator[None]:
    """Learn the projection without the graph."""

    def no_adjacency(self: store.AttributeStore, rows: NDArray[np.int64]) -> csr_array:
        return csr_array((rows.size, rows.size), dtype=np.float32)

    before = store.AttributeStore._adjacency
    store.AttributeStore._adjacency = no_adjacency  # type: ignore[method-assign]
    try:
        with changed(projection, NEIGHBOR_SHARE=0.0):
            yield
    finally:
        store.AttributeStore._adjacency = before  # type: ignore[method-assign]


def measure_trial(dataset: Dataset, rows: Any, dim: int, seed: int) -> dict[str, float]:
    """Return the metrics of one graph."""
    stream = run_stream(dataset, rows, dim, seed)
    engine, scores = stream.model.engine, {"edges_current": score_edges(dataset, dim, seed)}
    assert isinstance(engine, AttributedEngine)
    ranks = rank_hidden_edges(engine, seed)
    for weight, rank in zip(WEIGHTS, ranks.tolist(), strict=True):
        engine.attribute_weight = weight
        scores[f"current_weight_{weight:g}"] = stream.score_current()
        scores[f"rank_weight_{weight:g}"] = 100 * rank
    scores["chosen"] = WEIGHTS[int(ranks.argmax())]
    scores["gain"] = scores[f"current_weight_{scores['chosen']:g}"] - scores[f"current_weight_{DEFAULT_WEIGHT:g}"]
    scores["no_edges"] = stream.score_no_edges()
    for name, variant in (("no_smoothing", no_smoothing()), ("no_refit", changed(store, REFIT_GROWTH=1e9))):
        with variant:
            other = run_stream(dataset, rows, dim, seed)
        scores |= {f"current_{name}": other.score_current(), f"no_edges_{name}": other.score_no_edges()}
    return scores


def measure(name: str, seeds: int) -> dict[str, float]:
    """Return the metrics of one kind of graph, means over the seeds."""
    trials = []
    for seed in range(seeds):
        dataset, rows = generate(KINDS[name], seed) if name in KINDS else (load(name), read_attributes(name))
        trials.append(measure_trial(dataset, rows, DIM if name in KINDS else REAL_DIM, seed))
    means = {f"{name}_{metric}": float(np.mean([trial[metric] for trial in trials])) for metric in trials[0]}
    return {f"{name}_seeds": float(seeds), **means}


if __name__ == "__main__":
    run_parts(__doc__, measure, "graphs", [*KINDS, *REAL], 1)
