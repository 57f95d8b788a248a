"""Benchmark of the constants of attributes, smoothing and refit, on graphs that they were not tuned on.

    python benchmarks/attribute_constants.py [--seeds 3] [--graphs NAME …] [--json FILE]

An existing record is kept: the metrics of the given graphs are added to it.

The smoothing over neighbors and the refit after a tenth of growth were chosen by scores on Blog and Flickr. Here they
are left out on other graphs, those of `_attributed_graphs.py`. Half of the vertices are the start, the others arrive
one by one. Micro-F1 of the communities in percent, means over the seeds:

- `…_current`: from the final vectors; `…_no_edges`: from the vectors that arrivals would have from attributes alone;
- `…_edges_current`: without attributes, with all dimensions for edges;
- `…_current_no_smoothing`, `…_no_edges_no_refit`, and so on: without this step.

Blog and Flickr are included for comparison. `benchmarks/attribute_weight.py` compares weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from _attributed_graphs import DIM, KINDS, generate
from _report import run_parts
from attributes import read_attributes
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec import Embedder
from ripplevec.attributes import projection, store
from ripplevec.lab.datasets import load
from ripplevec.lab.datasets.dataset import Dataset
from ripplevec.lab.evaluation.label_metrics import Classifier, classify
from ripplevec.lab.evaluation.protocols import Arrivals

REAL, REAL_DIM = ("blog", "flickr"), 128


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
    model = Embedder(dim=dim, seed=seed)
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
    scores = {
        "edges_current": score_edges(dataset, dim, seed),
        "current": stream.score_current(),
        "no_edges": stream.score_no_edges(),
    }
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
    run_parts(__doc__, measure, "graphs", [*KINDS, *REAL], 3)
