"""A stream of arrivals against a model, and what the vectors are worth: on arrival, at the end, between retrainings.

The first share of the vertices is the start; every other vertex arrives with its edges to those already there, or
with some of them, the rest coming later (edges="spread").
Protocol *arrival*: a classifier trained on the start's vectors at the start judges each vertex by the vector it was
given on arrival. Protocol *current*: a classifier trained on the start's vectors at the end judges all others then.
Protocol *checkpoint*, for what cannot be streamed to: retrained now and then on the graph so far, each time with a
classifier trained on the start's vectors, which judges what has arrived since the last time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.batch import Batch, Op
from ripplevec.errors import InvalidValueError, check_choice
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.evaluation.classification import Classifier, Scores

EDGES = ("together", "spread")
AT_ONCE = 0.5
"""The share of its edges a vertex comes with where they are spread; one at least."""


class Changes(Protocol):
    """What a model says about a batch it has applied."""

    @property
    def ids(self) -> Any:
        """The vertices whose vectors moved."""

    @property
    def vectors(self) -> NDArray[Any]:
        """Their vectors now."""

    @property
    def anchored(self) -> bool:
        """Whether a global correction ran."""


class StreamingModel(Protocol):
    """What a model must be able to do to be streamed to; `ripplevec.Embedder` is one."""

    def fit(self, edges: Batch, /) -> Any:
        """Begin with these vertices and edges."""

    def add_vertex(self, vertex: int, neighbors: list[int], /) -> NDArray[Any]:
        """Take in one vertex with its edges; its vector."""

    def partial_fit(self, edges: Batch, /) -> Changes:
        """Take in a batch."""

    def vectors(self, ids: NDArray[np.int64], /) -> NDArray[Any]:
        """The vectors served for these vertices now."""


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """A data set as a stream: at every place a vertex comes with edges to earlier ones, then edges between known ones.

    The edges of a place stand from `first[place]` to before `first[place + 1]`, the newcomer's `own[place]` in front.
    """

    order: NDArray[np.int64]
    edges: NDArray[np.int64]
    own: NDArray[np.int64]
    first: NDArray[np.int64]

    @classmethod
    def of(cls, dataset: Dataset, seed: int | None, edges: str = "together") -> Arrivals:
        """The stream in a seeded random order; by index where the seed is None.

        `edges`: a vertex's edges to earlier ones all come `together` with it, or are `spread` over the time after.
        """
        check_choice("edges", edges, EDGES)
        count = dataset.vertices
        order = np.arange(count) if seed is None else np.random.default_rng(seed).permutation(count)
        older, newer = np.sort(np.argsort(order)[dataset.edges], axis=1).T
        place = newer if edges == "together" else _spread(newer, count, seed or 0)
        late = place > newer
        sequence = np.lexsort([older, newer, late, place])
        return cls(
            order=order,
            edges=order[np.column_stack([newer, older])[sequence]],
            own=np.bincount(newer[~late], minlength=count),
            first=np.searchsorted(place[sequence], np.arange(count + 1)),
        )

    def neighbors(self, place: int) -> list[int]:
        """The vertices that the one arriving at this place comes with edges to."""
        found: list[int] = self.edges[self.first[place] : self.first[place] + self.own[place], 1].tolist()
        return found

    def late(self, place: int) -> NDArray[np.int64]:
        """The pairs of known vertices that are linked once the vertex of this place is there."""
        return self.edges[self.first[place] + self.own[place] : self.first[place + 1]]

    def batch(self, begin: int, end: int) -> Batch:
        """The arrivals from `begin` to before `end`, together: each is named first, then its edges, then late ones."""
        counts = np.diff(self.first[begin : end + 1])
        op = np.full(int(counts.sum()) + end - begin, Op.ADD, np.int8)
        op[np.cumsum(counts + 1) - counts - 1] = Op.VERTEX
        pairs = np.empty((len(op), 2), np.int64)
        pairs[op == Op.VERTEX] = self.order[begin:end, None]
        pairs[op == Op.ADD] = self.edges[self.first[begin] : self.first[end]]
        return Batch(pairs[:, 0].copy(), pairs[:, 1].copy(), op=op)

    def graph(self, end: int) -> csr_array:
        """The graph just before the arrival at `end`; rows are in order of arrival."""
        rows, columns = np.argsort(self.order)[self.edges[: self.first[end]]].T
        half = csr_array((np.ones(len(rows)), (rows, columns)), shape=(end, end))
        return csr_array(half + half.T)


def _spread(newer: NDArray[np.int64], count: int, seed: int) -> NDArray[np.int64]:
    """The place at which each edge comes: with its newer end, or anywhere after; every vertex has one at once."""
    rng = np.random.default_rng([seed, count])
    draws, least = rng.random(len(newer)), np.ones(count)
    np.minimum.at(least, newer, draws)
    stays = (draws < AT_ONCE) | (draws == least[newer]) | (newer == count - 1)
    later = newer + 1 + (rng.random(len(newer)) * (count - 1 - newer)).astype(np.int64)
    return np.where(stays, newer, later)


class Watch(Protocol):
    """Someone who looks on while vertices arrive; `ripplevec.lab.evaluation.AnchorWatch` is one."""

    def begin(self, model: StreamingModel, present: NDArray[np.int64], /) -> object:
        """The start is done."""

    def step(self, model: StreamingModel, present: NDArray[np.int64], arrived: int, changes: Changes, /) -> object:
        """The last `arrived` of those present have just come."""


@dataclass(frozen=True, slots=True, eq=False)
class StreamResult:
    """What a stream left: rows are in order of arrival, the first `start` of them are the start.

    `arrival_seconds` has an entry per step; `stream_seconds` is their sum and the time of late edges.
    """

    order: NDArray[np.int64]
    labels: NDArray[np.int64]
    start: int
    start_vectors: NDArray[Any]
    arrival_vectors: NDArray[Any]
    final_vectors: NDArray[Any]
    start_seconds: float
    stream_seconds: float
    arrival_seconds: NDArray[np.float64]


def stream(
    model: StreamingModel,
    dataset: Dataset,
    start: float = 0.5,
    seed: int | None = 0,
    batch: int = 1,
    progress: Callable[[int], object] | None = None,
    watch: Watch | None = None,
    edges: str = "together",
) -> StreamResult:
    """Fit the first share, then let the rest arrive, `batch` at a time; seed None: in the order of the index.

    Where `edges` are `spread`, late ones follow the arrival of their place, or stand in its batch of several.
    `progress` is told, after each step, how many have arrived; `watch` is shown what changed. Only the model's own
    work is timed.
    """
    arrivals, begin, count = Arrivals.of(dataset, seed, edges), start_size(dataset, start), dataset.vertices
    if batch < 1:
        raise InvalidValueError.of("batch", "a positive integer", batch)
    start_seconds, _ = timed(partial(model.fit, arrivals.batch(0, begin)))
    start_vectors = np.array(model.vectors(arrivals.order[:begin]))
    if watch:
        watch.begin(model, arrivals.order[:begin])
    arrived, seconds, late_seconds = [], [], 0.0
    for place in range(begin, count, batch):
        end = min(place + batch, count)
        spent, rows = _step(model, arrivals, place, end, watch)
        arrived.append(rows)
        seconds.append(spent)
        late_seconds += _link(model, arrivals, place, watch) if end - place == 1 else 0.0
        if progress:
            progress(end - begin)
    return StreamResult(
        order=arrivals.order,
        labels=dataset.labels[arrivals.order],
        start=begin,
        start_vectors=start_vectors,
        arrival_vectors=np.concatenate(arrived),
        final_vectors=np.array(model.vectors(arrivals.order)),
        start_seconds=start_seconds,
        stream_seconds=sum(seconds) + late_seconds,
        arrival_seconds=np.array(seconds),
    )


def arrival(result: StreamResult) -> Scores:
    """Protocol *arrival*: trained once at the start, applied to what each vertex was given on arrival."""
    trained = Classifier.train(result.start_vectors, result.labels[: result.start])
    return trained.score(result.arrival_vectors, result.labels[result.start :])


def current(result: StreamResult) -> Scores:
    """Protocol *current*: trained on the start's vertices and applied to the others, all as they are at the end."""
    trained = Classifier.train(result.final_vectors[: result.start], result.labels[: result.start])
    return trained.score(result.final_vectors[result.start :], result.labels[result.start :])


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Scores over all arrivals, each judged at the first checkpoint after it; the seconds of every retraining."""

    scores: Scores
    retrain_seconds: tuple[float, ...]


def checkpoint(
    embed: Callable[[csr_array], NDArray[Any]],
    dataset: Dataset,
    start: float = 0.5,
    seed: int | None = 0,
    every: float = 0.05,
    edges: str = "together",
    progress: Callable[[int], object] | None = None,
) -> Checkpoints:
    """Protocol *checkpoint*: retrained after every share of the stream, judged on what has arrived since.

    `embed` gives a vector per row of a graph. What arrived since is judged by a classifier trained on the vectors that
    the start's vertices have by then.
    """
    arrivals, begin = Arrivals.of(dataset, seed, edges), start_size(dataset, start)
    labels = dataset.labels[arrivals.order]
    told, seconds, since = [], [], begin
    for mark in _marks(begin, dataset.vertices, every):
        spent, vectors = timed(partial(embed, arrivals.graph(mark)))
        seconds.append(spent)
        told.append(Classifier.train(vectors[:begin], labels[:begin]).tell(vectors[since:mark]))
        since = mark
        if progress:
            progress(mark - begin)
    return Checkpoints(Scores.of(labels[begin:], np.concatenate(told)), tuple(seconds))


def _marks(begin: int, end: int, every: float) -> list[int]:
    """How many vertices are there at each checkpoint; the last is at the end."""
    if not 0 < every <= 1:
        raise InvalidValueError.of("every", "a share of the stream above 0, at most 1", every)
    shares = np.append(np.arange(every, 1 - every / 2, every), 1.0)
    marks: list[int] = np.unique(begin + np.ceil(shares * (end - begin))).astype(int).tolist()
    return marks


def start_size(dataset: Dataset, share: float) -> int:
    """How many vertices a share of a data set is; neither none nor all."""
    size = int(dataset.vertices * share)
    if not 0 < size < dataset.vertices:
        raise InvalidValueError.of("start", "a share that leaves vertices both to begin with and to arrive", share)
    return size


def _step(
    model: StreamingModel, arrivals: Arrivals, begin: int, end: int, watch: Watch | None
) -> tuple[float, NDArray[Any]]:
    """Let a few vertices arrive: the seconds it took, the vectors they were given."""
    single = end - begin == 1
    vertex, neighbors = int(arrivals.order[begin]), arrivals.neighbors(begin)
    if single and not watch:
        seconds, vector = timed(partial(model.add_vertex, vertex, neighbors))
        return seconds, np.array(vector)[None]
    batch = Batch.arrival(vertex, neighbors) if single else arrivals.batch(begin, end)
    seconds, changes = timed(partial(model.partial_fit, batch))
    if watch:
        watch.step(model, arrivals.order[:end], end - begin, changes)
    return seconds, np.array(model.vectors(arrivals.order[begin:end]))


def _link(model: StreamingModel, arrivals: Arrivals, place: int, watch: Watch | None) -> float:
    """Let the late edges of a place come, as one batch; the seconds it took."""
    late = arrivals.late(place)
    if not len(late):
        return 0.0
    seconds, changes = timed(partial(model.partial_fit, Batch.of(late[:, 0], late[:, 1])))
    if watch:
        watch.step(model, arrivals.order[: place + 1], 0, changes)
    return seconds


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """The seconds some work took, and what came of it."""
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result
