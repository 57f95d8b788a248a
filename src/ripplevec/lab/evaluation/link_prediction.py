"""Whether the vectors foretell the next edge: each edge of the stream is scored before it is learned.

A newcomer's edge is scored by where its other edges alone would place it; one that comes with a single edge says
nothing beforehand, and is left out. An edge between known vertices is scored by their vectors. Each is compared with
non-edges: the same first end, and vertices that are there by then and never become its neighbors.
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
from ripplevec.lab.evaluation.protocols import Arrivals, StreamingModel, start_size
from ripplevec.lab.evaluation.rows import unit_rows

SCORES = ("cosine", "dot")


class ForetellingModel(StreamingModel, Protocol):
    """A model that can say where a newcomer would be; `ripplevec.Embedder` is one."""

    def preview(self, neighbors: list[int], /) -> NDArray[Any]:
        """The vector of a newcomer with these neighbors; nothing changes."""


@dataclass(frozen=True, slots=True)
class LinkScores:
    """How often an edge scores above a non-edge (ties count half), its mean reciprocal rank, how many were scored."""

    auc: float
    mrr: float
    edges: int


def link_prediction(
    model: ForetellingModel,
    dataset: Dataset,
    start: float = 0.5,
    seed: int | None = 0,
    negatives: int = 20,
    score: str = "cosine",
    edges: str = "together",
    progress: Callable[[int], object] | None = None,
) -> LinkScores:
    """Stream a data set, one arrival at a time, and score its edges against `negatives` sampled non-edges each."""
    check_choice("score", score, SCORES)
    if negatives < 1:
        raise InvalidValueError.of("negatives", "a positive integer", negatives)
    arrivals, begin = Arrivals.of(dataset, seed, edges), start_size(dataset, start)
    sampler = _NonEdges.of(dataset, arrivals.order, negatives, seed or 0)
    model.fit(arrivals.batch(0, begin))
    scored: list[NDArray[np.float64]] = []
    for place in range(begin, dataset.vertices):
        vertex, neighbors, late = int(arrivals.order[place]), arrivals.neighbors(place), arrivals.late(place)
        for target, vector in _newcomer(model, neighbors):
            scored += _scores(model, vector, sampler.candidates(vertex, target, place), score)
        model.add_vertex(vertex, neighbors)
        for source, target in late.tolist():
            vector = model.vectors(np.array([source]))[0]
            scored += _scores(model, vector, sampler.candidates(source, target, place + 1), score)
        if len(late):
            model.partial_fit(Batch.of(late[:, 0], late[:, 1]))
        if progress:
            progress(place + 1 - begin)
    return summary(np.array(scored).reshape(-1, 1 + negatives))


def summary(scores: NDArray[np.float64]) -> LinkScores:
    """AUC over all edges and non-edges, and the mean over the edges of 1 / rank among their own non-edges.

    A row per edge, its score in front of those of its non-edges; in the middle of equal scores is its rank.
    """
    count, candidates = scores.shape
    if not count:
        raise InvalidValueError.of("stream", "edges that can be foretold", "none")
    ranks = rankdata(scores).reshape(scores.shape)[:, 0]
    wins = ranks.sum() - count * (count + 1) / 2
    places = candidates + 1 - rankdata(scores, axis=1)[:, 0]
    return LinkScores(float(wins / (count * count * (candidates - 1))), float(np.mean(1 / places)), count)


@dataclass(frozen=True, slots=True, eq=False)
class _NonEdges:
    """Draws, for an edge, the vertices its first end is not linked to that it is compared with."""

    order: NDArray[np.int64]
    first: NDArray[np.int64]
    neighbor: NDArray[np.int64]
    count: int
    rng: np.random.Generator

    @classmethod
    def of(cls, dataset: Dataset, order: NDArray[np.int64], count: int, seed: int) -> _NonEdges:
        graph = dataset.adjacency()
        return cls(order, graph.indptr, graph.indices, count, np.random.default_rng([seed, count]))

    def candidates(self, source: int, target: int, present: int) -> NDArray[np.int64]:
        """The target and, behind it, strangers among the first so many vertices; empty where there are none."""
        there = self.order[:present]
        known = np.append(self.neighbor[self.first[source] : self.first[source + 1]], source)
        strangers = there[~np.isin(there, known)]
        if not len(strangers):
            return strangers
        return np.append(target, self.rng.choice(strangers, self.count))


def _newcomer(model: ForetellingModel, neighbors: list[int]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Each neighbor of a newcomer, and the vector that the others alone would give it."""
    for at, target in enumerate(neighbors if len(neighbors) > 1 else []):
        yield target, model.preview(neighbors[:at] + neighbors[at + 1 :])


def _scores(
    model: StreamingModel, vector: NDArray[Any], candidates: NDArray[np.int64], score: str
) -> list[NDArray[np.float64]]:
    """The scores of candidates, in one row; no row where there are none."""
    if not len(candidates):
        return []
    rows = np.asarray(model.vectors(candidates), np.float64)
    source = np.asarray(vector, np.float64)
    return [unit_rows(rows) @ unit_rows(source[None])[0] if score == "cosine" else rows @ source]
