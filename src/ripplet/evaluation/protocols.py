"""A stream of arrivals against a model, and what the vectors are worth: on arrival, and at the end.

The first share of the vertices is the start; every other vertex arrives with its edges to those already there.
Protocol *arrival*: a classifier trained on the start's vectors at the start judges each vertex by the vector it was
given on arrival. Protocol *current*: a classifier trained on the start's vectors at the end judges all others then.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ripplet.datasets import Dataset
from ripplet.errors import InvalidValueError
from ripplet.evaluation.classification import Classifier, Scores
from ripplet.events import Batch, Op


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
    """What a model must be able to do to be streamed to; `ripplet.Embedder` is one."""

    def fit(self, edges: Batch, /) -> Any:
        """Begin with these vertices and edges."""

    def add_vertex(self, vertex: int, neighbours: list[int], /) -> NDArray[Any]:
        """Take in one vertex with its edges; its vector."""

    def partial_fit(self, edges: Batch, /) -> Changes:
        """Take in a batch."""

    def vectors(self, ids: NDArray[np.int64], /) -> NDArray[Any]:
        """The vectors served for these vertices now."""


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """A data set as a stream: the vertices in order of arrival, each with its neighbours that came before it."""

    order: NDArray[np.int64]
    earlier: NDArray[np.int64]
    first: NDArray[np.int64]

    @classmethod
    def of(cls, dataset: Dataset, seed: int | None) -> Arrivals:
        """The stream in a seeded random order; by index where the seed is None."""
        count = dataset.vertices
        order = np.arange(count) if seed is None else np.random.default_rng(seed).permutation(count)
        place = np.empty(count, np.int64)
        place[order] = np.arange(count)
        ends = np.sort(place[dataset.edges], axis=1)
        ends = ends[np.lexsort(ends.T)]
        return cls(order, order[ends[:, 0]], np.searchsorted(ends[:, 1], np.arange(count + 1)))

    def neighbours(self, place: int) -> list[int]:
        """The earlier neighbours of the vertex that arrives at this place."""
        found: list[int] = self.earlier[self.first[place] : self.first[place + 1]].tolist()
        return found

    def batch(self, begin: int, end: int) -> Batch:
        """The arrivals from `begin` to before `end`, together: each is named first, then its edges."""
        degrees = np.diff(self.first[begin : end + 1])
        src = np.repeat(self.order[begin:end], degrees + 1)
        named = np.cumsum(degrees + 1) - degrees - 1
        dst, op = src.copy(), np.full(len(src), Op.ADD, np.int8)
        op[named] = Op.VERTEX
        dst[op == Op.ADD] = self.earlier[self.first[begin] : self.first[end]]
        return Batch(src, dst, op=op)


class Watch(Protocol):
    """Someone who looks on while vertices arrive; `ripplet.evaluation.AnchorWatch` is one."""

    def begin(self, model: StreamingModel, present: NDArray[np.int64], /) -> object:
        """The start is done."""

    def step(self, model: StreamingModel, present: NDArray[np.int64], arrived: int, changes: Changes, /) -> object:
        """The last `arrived` of those present have just come."""


@dataclass(frozen=True, slots=True, eq=False)
class StreamResult:
    """What a stream left: rows are in order of arrival, the first `start` of them are the start."""

    order: NDArray[np.int64]
    labels: NDArray[np.int64]
    start: int
    start_vectors: NDArray[Any]
    arrival_vectors: NDArray[Any]
    final_vectors: NDArray[Any]
    start_seconds: float
    stream_seconds: float


def stream(
    model: StreamingModel,
    dataset: Dataset,
    start: float = 0.5,
    seed: int | None = 0,
    batch: int = 1,
    progress: Callable[[int], object] | None = None,
    watch: Watch | None = None,
) -> StreamResult:
    """Fit the first share, then let the rest arrive, `batch` at a time; seed None: in the order of the index.

    `progress` is told, after each step, how many have arrived; `watch` is shown what changed. Only the model's own
    work is timed.
    """
    arrivals, begin = Arrivals.of(dataset, seed), start_size(dataset, start)
    if batch < 1:
        raise InvalidValueError.of("batch", "a positive integer", batch)
    start_seconds, _ = timed(partial(model.fit, arrivals.batch(0, begin)))
    start_vectors = np.array(model.vectors(arrivals.order[:begin]))
    if watch:
        watch.begin(model, arrivals.order[:begin])
    arrived, seconds = [], 0.0
    for place in range(begin, dataset.vertices, batch):
        spent, rows = _step(model, arrivals, place, min(place + batch, dataset.vertices), watch)
        arrived.append(rows)
        seconds += spent
        if progress:
            progress(min(place + batch, dataset.vertices) - begin)
    return StreamResult(
        order=arrivals.order,
        labels=dataset.labels[arrivals.order],
        start=begin,
        start_vectors=start_vectors,
        arrival_vectors=np.concatenate(arrived),
        final_vectors=np.array(model.vectors(arrivals.order)),
        start_seconds=start_seconds,
        stream_seconds=seconds,
    )


def arrival(result: StreamResult) -> Scores:
    """Protocol *arrival*: trained once at the start, applied to what each vertex was given on arrival."""
    trained = Classifier.train(result.start_vectors, result.labels[: result.start])
    return trained.score(result.arrival_vectors, result.labels[result.start :])


def current(result: StreamResult) -> Scores:
    """Protocol *current*: trained on the start's vertices and applied to the others, all as they are at the end."""
    trained = Classifier.train(result.final_vectors[: result.start], result.labels[: result.start])
    return trained.score(result.final_vectors[result.start :], result.labels[result.start :])


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
    vertex, neighbours = int(arrivals.order[begin]), arrivals.neighbours(begin)
    if single and not watch:
        seconds, vector = timed(partial(model.add_vertex, vertex, neighbours))
        return seconds, np.array(vector)[None]
    batch = Batch.arrival(vertex, neighbours) if single else arrivals.batch(begin, end)
    seconds, changes = timed(partial(model.partial_fit, batch))
    if watch:
        watch.step(model, arrivals.order[:end], end - begin, changes)
    return seconds, np.array(model.vectors(arrivals.order[begin:end]))


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """The seconds some work took, and what came of it."""
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result
