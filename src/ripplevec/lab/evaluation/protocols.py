"""Streaming evaluation protocols: let a data set arrive at a model, and score the vectors.

The first share of the vertices is the start; every other vertex arrives with its edges to the vertices already
present, or with some of them while the rest follows later (edges="spread").

- Protocol *arrival*: a classifier trained on the vectors of the start, at the start, scores each later vertex by the
  vector it got on arrival.
- Protocol *current*: a classifier trained on the vectors of the start, at the end of the stream, scores all other
  vertices at the end.
- Protocol *checkpoint*, for methods that cannot stream: the method is retrained periodically on the graph so far, and
  a classifier trained on the new vectors of the start scores the vertices that arrived since the last checkpoint.
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
from ripplevec.lab.evaluation.label_metrics import Classifier, Scores

EDGE_TIMINGS = ("together", "spread")
IMMEDIATE_EDGE_SHARE = 0.5
"""Share of its edges a vertex arrives with if edges are spread; at least one edge comes with it."""


class ChangedVectors(Protocol):
    """Changes that a model reports for a batch."""

    @property
    def ids(self) -> Any:
        """Vertices whose vectors changed."""

    @property
    def vectors(self) -> NDArray[Any]:
        """Their new vectors."""

    @property
    def anchored(self) -> bool:
        """Whether an anchor (a global correction) ran."""


class StreamingModel(Protocol):
    """The methods a model needs to be streamed to; `ripplevec.Embedder` has them."""

    def fit(self, edges: Batch, /) -> Any:
        """Start from these vertices and edges."""

    def add_vertex(self, vertex: int, neighbors: list[int], /) -> NDArray[Any]:
        """Add one vertex with its edges; return its vector."""

    def partial_fit(self, edges: Batch, /) -> ChangedVectors:
        """Apply a batch."""

    def vectors(self, ids: NDArray[np.int64], /) -> NDArray[Any]:
        """Return the current vectors of these vertices."""


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """A data set as a stream: at each position a vertex arrives with edges to earlier ones, then late edges follow.

    The edges of a position are the rows `first[position]` to `first[position + 1] - 1` of `edges`; the first
    `immediate[position]` of them arrive with the vertex, the others are late edges between earlier vertices.
    """

    order: NDArray[np.int64]
    edges: NDArray[np.int64]
    immediate: NDArray[np.int64]
    first: NDArray[np.int64]

    @classmethod
    def from_dataset(cls, dataset: Dataset, seed: int | None, edges: str = "together") -> Arrivals:
        """Order the vertices at random by a seed; by index if the seed is None.

        With `edges="together"` a vertex arrives with all its edges to earlier vertices; with "spread" some of them
        follow later.
        """
        check_choice("edges", edges, EDGE_TIMINGS)
        count = dataset.vertices
        order = np.arange(count) if seed is None else np.random.default_rng(seed).permutation(count)
        older, newer = np.sort(np.argsort(order)[dataset.edges], axis=1).T
        position = newer if edges == "together" else _spread_edges(newer, count, seed or 0)
        late = position > newer
        sequence = np.lexsort([older, newer, late, position])
        return cls(
            order=order,
            edges=order[np.column_stack([newer, older])[sequence]],
            immediate=np.bincount(newer[~late], minlength=count),
            first=np.searchsorted(position[sequence], np.arange(count + 1)),
        )

    def neighbors(self, position: int) -> list[int]:
        """Return the neighbors that the vertex at this position arrives with."""
        begin = self.first[position]
        neighbors: list[int] = self.edges[begin : begin + self.immediate[position], 1].tolist()
        return neighbors

    def late_edges(self, position: int) -> NDArray[np.int64]:
        """Return the edges between earlier vertices that follow the arrival at this position."""
        return self.edges[self.first[position] + self.immediate[position] : self.first[position + 1]]

    def batch(self, begin: int, end: int) -> Batch:
        """Return the arrivals at `begin` to `end - 1` as one batch: for each the vertex, its edges, then late edges."""
        counts = np.diff(self.first[begin : end + 1])
        op = np.full(int(counts.sum()) + end - begin, Op.ADD, np.int8)
        op[np.cumsum(counts + 1) - counts - 1] = Op.VERTEX
        pairs = np.empty((len(op), 2), np.int64)
        pairs[op == Op.VERTEX] = self.order[begin:end, None]
        pairs[op == Op.ADD] = self.edges[self.first[begin] : self.first[end]]
        return Batch(pairs[:, 0].copy(), pairs[:, 1].copy(), op=op)

    def graph(self, end: int) -> csr_array:
        """Return the graph just before the arrival at `end`; rows are in order of arrival."""
        rows, columns = np.argsort(self.order)[self.edges[: self.first[end]]].T
        half = csr_array((np.ones(len(rows)), (rows, columns)), shape=(end, end))
        return csr_array(half + half.T)


def _spread_edges(newer: NDArray[np.int64], count: int, seed: int) -> NDArray[np.int64]:
    """Draw the position of each edge: that of its newer endpoint or any later one; every vertex keeps one edge."""
    rng = np.random.default_rng([seed, count])
    draws, least = rng.random(len(newer)), np.ones(count)
    np.minimum.at(least, newer, draws)
    immediate = (draws < IMMEDIATE_EDGE_SHARE) | (draws == least[newer]) | (newer == count - 1)
    later = newer + 1 + (rng.random(len(newer)) * (count - 1 - newer)).astype(np.int64)
    return np.where(immediate, newer, later)


class StreamObserver(Protocol):
    """Observes a stream; `ripplevec.lab.evaluation.AnchorObserver` is one."""

    def begin(self, model: StreamingModel, present: NDArray[np.int64], /) -> object:
        """Called after the start."""

    def step(
        self, model: StreamingModel, present: NDArray[np.int64], arrived: int, changes: ChangedVectors, /
    ) -> object:
        """Called after each step; the last `arrived` of the vertices present have just arrived."""


@dataclass(frozen=True, slots=True, eq=False)
class StreamResult:
    """Vectors and times of a stream; rows are in order of arrival, the first `start` of them are the start.

    `arrival_seconds` has one entry per step; `stream_seconds` is their sum plus the time of late edges.
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
    observer: StreamObserver | None = None,
    edges: str = "together",
) -> StreamResult:
    """Fit a model on the first share of a data set, then let the rest arrive.

    Parameters
    ----------
    model : StreamingModel
        The model, such as `ripplevec.Embedder`.
    dataset : Dataset
        The data set.
    start : float
        Share of the vertices that the model is fitted on.
    seed : int or None
        Seed of the order of arrival; None keeps the order of the index.
    batch : int
        Number of vertices that arrive together.
    progress : callable, optional
        Called after each step with the number of vertices that have arrived.
    observer : StreamObserver, optional
        Receives the changes of each step.
    edges : {"together", "spread"}
        Whether a vertex arrives with all its edges to earlier vertices. Late edges follow the arrival at their
        position, or are part of its batch if several vertices arrive together.

    Returns
    -------
    StreamResult
        The vectors at the start, on arrival and at the end. Only the model's own work is timed.

    Examples
    --------
    >>> from ripplevec import Embedder
    >>> from ripplevec.lab.datasets.synthetic import planted_partition
    >>> from ripplevec.lab.evaluation import stream
    >>> result = stream(Embedder(dim=8), planted_partition(communities=2, size=50), start=0.6)
    >>> result.start_vectors.shape, result.arrival_vectors.shape
    ((60, 8), (40, 8))
    """
    arrivals, begin, count = Arrivals.from_dataset(dataset, seed, edges), start_size(dataset, start), dataset.vertices
    if batch < 1:
        raise InvalidValueError.of("batch", "a positive integer", batch)
    start_seconds, _ = time_call(partial(model.fit, arrivals.batch(0, begin)))
    start_vectors = np.array(model.vectors(arrivals.order[:begin]))
    if observer:
        observer.begin(model, arrivals.order[:begin])
    arrival_vectors, seconds, late_seconds = [], [], 0.0
    for position in range(begin, count, batch):
        end = min(position + batch, count)
        step_seconds, rows = _add_vertices(model, arrivals, position, end, observer)
        arrival_vectors.append(rows)
        seconds.append(step_seconds)
        late_seconds += _add_late_edges(model, arrivals, position, observer) if end - position == 1 else 0.0
        if progress:
            progress(end - begin)
    return StreamResult(
        order=arrivals.order,
        labels=dataset.labels[arrivals.order],
        start=begin,
        start_vectors=start_vectors,
        arrival_vectors=np.concatenate(arrival_vectors),
        final_vectors=np.array(model.vectors(arrivals.order)),
        start_seconds=start_seconds,
        stream_seconds=sum(seconds) + late_seconds,
        arrival_seconds=np.array(seconds),
    )


def score_on_arrival(result: StreamResult) -> Scores:
    """Score a stream by protocol *arrival*: trained once at the start, applied to the vectors given on arrival."""
    classifier = Classifier.train(result.start_vectors, result.labels[: result.start])
    return classifier.score(result.arrival_vectors, result.labels[result.start :])


def score_at_end(result: StreamResult) -> Scores:
    """Score a stream by protocol *current*: trained on the start's final vectors, applied to the other final ones."""
    classifier = Classifier.train(result.final_vectors[: result.start], result.labels[: result.start])
    return classifier.score(result.final_vectors[result.start :], result.labels[result.start :])


@dataclass(frozen=True, slots=True)
class CheckpointScores:
    """Scores over all arrivals, each at the first checkpoint after it, and the seconds of every retraining."""

    scores: Scores
    retrain_seconds: tuple[float, ...]


def score_at_checkpoints(
    embed: Callable[[csr_array], NDArray[Any]],
    dataset: Dataset,
    start: float = 0.5,
    seed: int | None = 0,
    every: float = 0.05,
    edges: str = "together",
    progress: Callable[[int], object] | None = None,
) -> CheckpointScores:
    """Score a static method by protocol *checkpoint*: retrain after every share of the stream, score new arrivals.

    Parameters
    ----------
    embed : callable
        Returns a vector per row of a graph.
    dataset, start, seed, edges, progress
        As in `stream`.
    every : float
        Share of the stream between two retrainings.

    Returns
    -------
    CheckpointScores
        Scores of a classifier that is trained, at each checkpoint, on the vectors of the start's vertices.
    """
    arrivals, begin = Arrivals.from_dataset(dataset, seed, edges), start_size(dataset, start)
    labels = dataset.labels[arrivals.order]
    predicted, seconds, previous = [], [], begin
    for size in _checkpoint_sizes(begin, dataset.vertices, every):
        retrain_seconds, vectors = time_call(partial(embed, arrivals.graph(size)))
        seconds.append(retrain_seconds)
        predicted.append(Classifier.train(vectors[:begin], labels[:begin]).predict(vectors[previous:size]))
        previous = size
        if progress:
            progress(size - begin)
    return CheckpointScores(Scores.from_predictions(labels[begin:], np.concatenate(predicted)), tuple(seconds))


def _checkpoint_sizes(begin: int, end: int, every: float) -> list[int]:
    """Return the number of vertices present at each checkpoint; the last one is at the end."""
    if not 0 < every <= 1:
        raise InvalidValueError.of("every", "a share of the stream above 0, at most 1", every)
    shares = np.append(np.arange(every, 1 - every / 2, every), 1.0)
    sizes: list[int] = np.unique(begin + np.ceil(shares * (end - begin))).astype(int).tolist()
    return sizes


@dataclass(frozen=True, slots=True)
class Latency:
    """Microseconds per step of a stream: the median, the 99th percentile and the maximum."""

    p50: float
    p99: float
    maximum: float


def measure_latency(result: StreamResult) -> Latency:
    """Return the latency percentiles of a stream; a step is one arrival, or one batch of several."""
    p50, p99, maximum = 1e6 * np.percentile(result.arrival_seconds, [50, 99, 100])
    return Latency(float(p50), float(p99), float(maximum))


def start_size(dataset: Dataset, share: float) -> int:
    """Return the number of vertices in a share of a data set; raise if it is none or all of them."""
    size = int(dataset.vertices * share)
    if not 0 < size < dataset.vertices:
        raise InvalidValueError.of("start", "a share that leaves vertices both for the start and for the stream", share)
    return size


def _add_vertices(
    model: StreamingModel, arrivals: Arrivals, begin: int, end: int, observer: StreamObserver | None
) -> tuple[float, NDArray[Any]]:
    """Let the vertices at `begin` to `end - 1` arrive; return the seconds and their vectors."""
    single = end - begin == 1
    vertex, neighbors = int(arrivals.order[begin]), arrivals.neighbors(begin)
    if single and not observer:
        seconds, vector = time_call(partial(model.add_vertex, vertex, neighbors))
        return seconds, np.array(vector)[None]
    batch = Batch.arrival(vertex, neighbors) if single else arrivals.batch(begin, end)
    seconds, changes = time_call(partial(model.partial_fit, batch))
    if observer:
        observer.step(model, arrivals.order[:end], end - begin, changes)
    return seconds, np.array(model.vectors(arrivals.order[begin:end]))


def _add_late_edges(model: StreamingModel, arrivals: Arrivals, position: int, observer: StreamObserver | None) -> float:
    """Apply the late edges of a position as one batch; return the seconds."""
    late = arrivals.late_edges(position)
    if not len(late):
        return 0.0
    seconds, changes = time_call(partial(model.partial_fit, Batch.of(late[:, 0], late[:, 1])))
    if observer:
        observer.step(model, arrivals.order[: position + 1], 0, changes)
    return seconds


def time_call(function: Callable[[], Any]) -> tuple[float, Any]:
    """Call a function; return the seconds it took and its result."""
    began = time.perf_counter()
    result = function()
    return time.perf_counter() - began, result
