"""Graphs of communities whose vertices have attributes, for benchmarks of their constants and of their weight."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.lab.datasets.dataset import Dataset
from ripplevec.lab.datasets.synthetic import planted_partition

COMMUNITIES, SIZE, DIM = 10, 150, 32
WORDS_PER_VERTEX, WIDTH = 20, 64


class Kind(NamedTuple):
    """A kind of synthetic graph."""

    inside: float  # mean number of neighbors in the same community
    signal: float  # share of the words that are from the topic of a vertex, or distance of dense centers
    dense: bool = False
    misleading: bool = False  # attributes tell another, unrelated partition of the vertices
    elsewhere: float | None = None  # mean number of neighbors in other communities; None: 12 neighbors in all
    words: int = 2_000  # names of attributes, 3 % of them in each topic
    covered: float = 1.0  # share of the vertices that have attributes


KINDS = {
    "informative": Kind(6, 0.5),
    "noisy": Kind(6, 0.15),
    "irrelevant": Kind(6, 0.0),
    "misleading": Kind(6, 0.5, misleading=True),
    "weak_edges": Kind(3, 0.3),
    "dense": Kind(6, 0.5, dense=True),
    "dense_misleading": Kind(6, 0.5, dense=True, misleading=True),
    "dense_irrelevant": Kind(6, 0.0, dense=True),
    "few_names": Kind(6, 0.5, words=100),
    "many_names": Kind(6, 0.5, words=50_000),
    "few_neighbors": Kind(2, 0.3, elsewhere=2),
    "strong_edges_misleading": Kind(10, 0.8, misleading=True),
    "few_neighbors_misleading": Kind(3, 0.8, misleading=True, elsewhere=1),
    "fifth_covered": Kind(6, 0.5, covered=0.2),
}


def generate(kind: Kind, seed: int) -> tuple[Dataset, Any]:
    """Return communities and the attributes of their vertices, one row per vertex."""
    elsewhere = 12 - kind.inside if kind.elsewhere is None else kind.elsewhere
    dataset = planted_partition(COMMUNITIES, SIZE, kind.inside, elsewhere, seed)
    random = np.random.default_rng(seed)
    count = dataset.vertices
    topics = random.integers(0, COMMUNITIES, count) if kind.misleading else dataset.labels
    if kind.dense:
        centers = kind.signal * random.normal(size=(COMMUNITIES, WIDTH))
        return dataset, centers[topics] + random.normal(size=(count, WIDTH))
    topic_words = 3 * kind.words // 100
    vocabulary = random.integers(0, kind.words, (COMMUNITIES, topic_words))
    own = vocabulary[topics[:, None], random.integers(0, topic_words, (count, WORDS_PER_VERTEX))]
    from_topic = random.random(own.shape) < kind.signal
    words = np.where(from_topic, own, random.integers(0, kind.words, own.shape))
    covered = random.random(count) < kind.covered
    rows = np.repeat(np.flatnonzero(covered), WORDS_PER_VERTEX)
    return dataset, csr_array((np.ones(rows.size), (rows, words[covered].ravel())), shape=(count, kind.words))


def scale_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return rows of length one, or zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)
