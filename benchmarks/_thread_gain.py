"""Gain of a second thread for large batches: the same batches on one and on two threads, with the parts of the time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from _report import Stopwatch
from numpy.typing import NDArray

from ripplevec import Batch, Embedder
from ripplevec.batch import IdColumn

DIM, STREAM_BATCH = 128, 100_000
START_VERTICES, GROWN_VERTICES = 10_000, 200_000  # of the start, and before the first measured batch
BATCH_SIZES, REPEATS = (100_000, 1_000_000), 5
ID_KINDS = ("int", "text")
EdgeGenerator: TypeAlias = Callable[[int], NDArray[np.int64]]


class TimedModel(NamedTuple):
    """A model, and stopwatches of the parts of `partial_fit`."""

    model: Embedder
    parts: dict[str, Stopwatch]

    def apply(self, batch: Batch) -> dict[str, float]:
        """Apply a batch; return the seconds in all and in every part."""
        for stopwatch in self.parts.values():
            stopwatch.seconds = 0.0
        began = time.perf_counter()
        self.model.partial_fit(batch)
        total = time.perf_counter() - began
        return {"total": total, **{name: stopwatch.seconds for name, stopwatch in self.parts.items()}}


def create_batch(edges: NDArray[np.int64], kind: str) -> Batch:
    """Return edges as a batch with integer ids or with text ids such as user-1234."""
    src, dst = (_create_ids(column, kind) for column in edges.T)
    return Batch.of(src, dst)


def _create_ids(numbers: NDArray[np.int64], kind: str) -> IdColumn:
    if kind == "int":
        return np.ascontiguousarray(numbers)
    prefix, separator = (pa.scalar(text, pa.large_string()) for text in ("user", "-"))
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.large_string()), separator)


def grow_model(edges: NDArray[np.int64], first: int, kind: str, threads: int) -> TimedModel:
    """Start a model with the first edges, and stream the others."""
    model = Embedder(dim=DIM, anchor_growth=0, threads=threads).fit(create_batch(edges[:first], kind))
    for position in range(first, len(edges), STREAM_BATCH):
        model.partial_fit(create_batch(edges[position : position + STREAM_BATCH], kind))
    engine, parts = model.engine, {}
    for name, owner, method in (
        ("ids", engine.graph.ids, "intern"),
        ("edges", engine.graph.adjacency, "apply"),
        ("vectors", engine.rule, "apply"),
        ("changes", engine, "build_changes"),
    ):
        parts[name] = Stopwatch(getattr(owner, method))
        setattr(owner, method, parts[name])
    return TimedModel(model, parts)


def measure_thread_gain(generate_edges: EdgeGenerator, edges_per_arrival: int) -> dict[str, float]:
    """Apply batches of every size and kind of ids to a model on one thread and to one on two threads.

    `generate_edges` returns the edges of a number of vertices, in order of arrival. The models take turns, and the
    fastest of several batches counts: a second thread is slowed down by every other process. The load average before
    the measurement tells how far the result can be trusted.
    """
    metrics = {"load_average": os.getloadavg()[0]}
    edges = generate_edges(1 + GROWN_VERTICES + (REPEATS + 1) * max(BATCH_SIZES) // edges_per_arrival)
    first, grown = START_VERTICES * edges_per_arrival, GROWN_VERTICES * edges_per_arrival
    for kind in ID_KINDS:
        for size in BATCH_SIZES:
            models = {threads: grow_model(edges[:grown], first, kind, threads) for threads in (1, 2)}
            seconds: dict[int, list[dict[str, float]]] = {1: [], 2: []}
            for number in range(REPEATS + 1):
                batch = create_batch(edges[grown + number * size : grown + (number + 1) * size], kind)
                for threads in (1, 2) if number % 2 else (2, 1):
                    seconds[threads].append(models[threads].apply(batch))
            if models[1].model.digest() != models[2].model.digest():
                raise RuntimeError("the result depends on the number of threads: expected equal digests")
            metrics |= _compare(f"{kind}_{size}", seconds)
    return metrics


def _compare(prefix: str, seconds: dict[int, list[dict[str, float]]]) -> dict[str, float]:
    """Return milliseconds on one and two threads, and the gain, in all and per part; the first batch is a warm-up."""
    one, two = (min(seconds[threads][1:], key=lambda times: times["total"]) for threads in (1, 2))
    metrics = {}
    for part in one:
        metrics[f"{prefix}_{part}_one_ms"], metrics[f"{prefix}_{part}_two_ms"] = 1e3 * one[part], 1e3 * two[part]
        metrics[f"{prefix}_{part}_two_over_one"] = one[part] / two[part]
    return metrics
