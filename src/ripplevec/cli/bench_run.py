"""Measurements of `ripplevec bench`: batches, single arrivals, reads and an anchor on a growing graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.embedder import Embedder
from ripplevec.graph._block_kernels import ARENA_TOP
from ripplevec.lab.datasets.synthetic import preferential_attachment

if TYPE_CHECKING:
    from rich.progress import Progress

DIM, EDGES_PER_VERTEX, BATCH, NEAREST = 128, 10, 10_000, 10
START = 0.1  # of the vertices that are there before the single arrivals; the others come in batches
SHOWN_EVERY = 100


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured: vertices before the single arrivals, then how many arrive, are read and searched from."""

    name: str
    vertices: int
    arrivals: int
    reads: int
    searches: int


FULL = Size("full", 500_000, 200_000, 500_000, 200)
QUICK = Size("quick", 50_000, 50_000, 200_000, 200)
WARM_UP = Size("warm up", 20_000, 200, 200, 5)


def run(size: Size, bars: Progress) -> dict[str, float]:
    """All figures; the same in small comes first, so that everything is compiled when it is timed."""
    measure(WARM_UP, bars)
    return measure(size, bars)


def measure(size: Size, bars: Progress) -> dict[str, float]:
    """All figures, from one graph with hubs. Anchors wait until they are timed."""
    edges = preferential_attachment(size.vertices + size.arrivals, EDGES_PER_VERTEX).edges
    newer = edges[:, 1]
    first, last = np.searchsorted(newer, [round(START * size.vertices), size.vertices])
    model = Embedder(dim=DIM, anchor_growth=0, search="exact")
    _timed(model.fit, _watched(bars, "start", [(edges[:first],)]))
    batches = [edges[at : min(at + BATCH, last)] for at in range(first, last, BATCH)]
    streamed = sum(_timed(model.partial_fit, _watched(bars, "batches", [(batch,) for batch in batches])))
    memory = _memory(model)
    arrived = np.array(_timed(model.add_vertex, _watched(bars, "arrivals", _arrivals(edges[last:]))))
    asked = np.random.default_rng(0).integers(len(model), size=size.reads + size.searches).tolist()
    reads = _timed(model.__getitem__, _watched(bars, "reads", [(vertex,) for vertex in asked[: size.reads]]))
    searches = [(vertex, NEAREST) for vertex in asked[size.reads :]]
    nearest = _timed(model.nearest, _watched(bars, "nearest", searches))
    (anchor,) = _timed(model.anchor, _watched(bars, "anchor", [()]))
    p50, p99, p999 = 1e6 * np.percentile(arrived, [50, 99, 99.9])
    return {
        "arrivals_per_second": len(arrived) / float(arrived.sum()),
        "arrival_p50_us": float(p50),
        "arrival_p99_us": float(p99),
        "arrival_p999_us": float(p999),
        "edges_per_second": float(last - first) / streamed,
        "reads_per_second": len(reads) / sum(reads),
        "nearest_ms": 1e3 * median(nearest),
        "anchor_seconds": anchor,
        **memory,
    }


def _arrivals(edges: NDArray[np.int64]) -> list[tuple[int, list[int]]]:
    """Every newcomer with its neighbors, as plain numbers, so that only the arrival itself is timed."""
    older, newer = edges.T
    vertices, first = np.unique(newer, return_index=True)
    return [(vertex, near.tolist()) for vertex, near in zip(vertices.tolist(), np.split(older, first[1:]), strict=True)]


def _timed(work: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> list[float]:
    """Seconds that each call takes."""
    seconds = []
    for arguments in calls:
        began = perf_counter()
        work(*arguments)
        seconds.append(perf_counter() - began)
    return seconds


def _watched(bars: Progress, name: str, calls: list[Any]) -> Iterator[Any]:
    """The calls one after another, and a bar that follows them."""
    task = bars.add_task(name, total=len(calls), note="")
    for done, call in enumerate(calls):
        if done % SHOWN_EVERY == 0:
            bars.update(task, completed=done)
        yield call
    bars.remove_task(task)


def _memory(model: Embedder) -> dict[str, float]:
    """Bytes of the arrays of a model: what its edges take, and all the rest."""
    links, sizes = model.engine.graph.adjacency.links, model.diagnostics()
    slots = int(links.allocator[ARENA_TOP]) * links.neighbor.strides[0]
    return {
        "bytes_per_vertex": (sizes["bytes"] - slots) / sizes["vertices"],
        "bytes_per_edge": slots / sizes["edges"],
    }
