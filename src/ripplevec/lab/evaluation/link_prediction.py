"""Link prediction on a stream: each edge is scored before the model sees it.

An edge of a new vertex is scored by the vector that the vertex's other edges would give it; a vertex that arrives with
a single edge has no such vector and is skipped. An edge between known vertices is scored by their vectors. Each edge is
compared with non-edges: the same first endpoint, and vertices that are present by then and never become its neighbors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from ripplevec.batch import Batch
from ripplevec.errors import InvalidValueError, check_choice
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.evaluation.label_metrics import normalize_rows
from ripplevec.lab.evaluation.protocols import Arrivals, StreamingModel, start_size

SCORES = ("cosine", "dot")


class PreviewingModel(StreamingModel, Protocol):
    """A streaming model that can preview the vector of a new vertex; `ripplevec.Embedder` is one."""

    def preview(self, neighbors: list[int], /) -> NDArray[Any]:
        """Return the vector that a new vertex with these neighbors would get, without adding it."""


@dataclass(frozen=True, slots=True)
class LinkScores:
    """AUC (how often an edge scores above a non-edge, ties count half), mean reciprocal rank, number of edges."""

    auc: float
    mrr: float
    edges: int


def score_link_prediction(
    model: PreviewingModel,
    dataset: Dataset,
    start: float = 0.5,
    seed: int | None = 0,
    negatives: int = 20,
    score: str = "cosine",
    edges: str = "together",
    progress: Callable[[int], object] | None = None,
) -> LinkScores:
    """Stream a data set one arrival at a time, and score its edges against sampled non-edges.

    Parameters
    ----------
    model : PreviewingModel
        The model, such as `ripplevec.Embedder`.
    dataset, start, seed, edges, progress
        As in `stream`.
    negatives : int
        Number of non-edges that each edge is compared with.
    score : {"cosine", "dot"}
        Similarity of two vectors.

    Returns
    -------
    LinkScores
        AUC and mean reciprocal rank.

    Examples
    --------
    >>> from ripplevec import Embedder
    >>> from ripplevec.lab.datasets.synthetic import planted_partition
    >>> from ripplevec.lab.evaluation import score_link_prediction
    >>> score_link_prediction(Embedder(dim=8), planted_partition(communities=4, size=50)).auc > 0.6
    True
    """
    check_choice("score", score, SCORES)
    if negatives < 1:
        raise InvalidValueError.of("negatives", "a positive integer", negatives)
    arrivals, begin = Arrivals.from_dataset(dataset, seed, edges), start_size(dataset, start)
    sampler = _NonEdgeSampler.from_dataset(dataset, arrivals.order, negatives, seed or 0)
    model.fit(arrivals.batch(0, begin))
    scores: list[NDArray[np.float64]] = []
    for position in range(begin, dataset.vertices):
        vertex, neighbors = int(arrivals.order[position]), arrivals.neighbors(position)
        late = arrivals.late_edges(position)
        for target, vector in _preview_edges(model, neighbors):
            scores += _score_candidates(model, vector, sampler.candidates(vertex, target, position), score)
        model.add_vertex(vertex, neighbors)
        for source, target in late.tolist():
            vector = model.vectors(np.array([source]))[0]
            scores += _score_candidates(model, vector, sampler.candidates(source, target, position + 1), score)
        if len(late):
            model.partial_fit(Batch.of(late[:, 0], late[:, 1]))
        if progress:
            progress(position + 1 - begin)
    return summarize_scores(np.array(scores).reshape(-1, 1 + negatives))


def summarize_scores(scores: NDArray[np.float64]) -> LinkScores:
    """Compute the AUC over all edges and non-edges, and the mean of 1 / rank of each edge among its non-edges.

    Each row holds the score of an edge, then the scores of its non-edges. Equal scores share their mean rank.
    """
    count, candidates = scores.shape
    if not count:
        raise InvalidValueError.of("stream", "edges that can be predicted", "none")
    ranks = rankdata(scores).reshape(scores.shape)[:, 0]
    wins = ranks.sum() - count * (count + 1) / 2
    positions = candidates + 1 - rankdata(scores, axis=1)[:, 0]
    return LinkScores(float(wins / (count * count * (candidates - 1))), float(np.mean(1 / positions)), count)


@dataclass(frozen=True, slots=True, eq=False)
class _NonEdgeSampler:
    """Samples, for an edge, vertices that its first endpoint is not linked to."""

    order: NDArray[np.int64]
    first: NDArray[np.int64]
    neighbor: NDArray[np.int64]
    count: int
    rng: np.random.Generator

    @classmethod
    def from_dataset(cls, dataset: Dataset, order: NDArray[np.int64], count: int, seed: int) -> _NonEdgeSampler:
        graph = dataset.adjacency()
        return cls(order, graph.indptr, graph.indices, count, np.random.default_rng([seed, count]))

    def candidates(self, source: int, target: int, present: int) -> NDArray[np.int64]:
        """Return the target, then non-neighbors among the first `present` vertices; empty if there are none."""
        vertices = self.order[:present]
        linked = np.append(self.neighbor[self.first[source] : self.first[source + 1]], source)
        non_neighbors = vertices[~np.isin(vertices, linked)]
        if not len(non_neighbors):
            return non_neighbors
        return np.append(target, self.rng.choice(non_neighbors, self.count))


def _preview_edges(model: PreviewingModel, neighbors: list[int]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield each neighbor of a new vertex with the vector that the other neighbors alone would give it."""
    for index, target in enumerate(neighbors if len(neighbors) > 1 else []):
        yield target, model.preview(neighbors[:index] + neighbors[index + 1 :])


def _score_candidates(
    model: StreamingModel, vector: NDArray[Any], candidates: NDArray[np.int64], score: str
) -> list[NDArray[np.float64]]:
    """Return the scores of the candidates as one row; no row if there are none."""
    if not len(candidates):
        return []
    rows = np.asarray(model.vectors(candidates), np.float64)
    source = np.asarray(vector, np.float64)
    return [normalize_rows(rows) @ normalize_rows(source[None])[0] if score == "cosine" else rows @ source]
