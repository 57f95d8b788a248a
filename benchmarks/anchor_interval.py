"""Benchmark of the growth between two anchors: what fewer anchors cost in accuracy, without any labels.

    python benchmarks/anchor_interval.py [--vertices 30000] [--json FILE]

Three graphs grow to four times their size, with anchors after 15 % of growth or later. *MRR* is the mean of 1 / rank of
the right end of a hidden edge among 1,000 vertices, by cosine: of all vertices, and of those of the last 7 % of growth.
It is the mean over nine moments of the stream. In the third graph communities appear all the time, and most arrivals
belong to recent ones: there, anchors have the most to do.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from _report import run_benchmark
from anchor_spread import BATCH_SIZE, DIM, HIDDEN_SHARE, rank_hidden
from numpy.typing import NDArray

from ripplevec import Embedder
from ripplevec.lab.datasets.synthetic import growing_communities, preferential_attachment

INTERVALS = (0.15, 0.3, 0.45, 0.6, 0.8, 1.0)
GROWTH, MOMENTS, RECENT = 4, 9, 0.07


def measure_intervals(vertices: int) -> dict[str, Any]:
    """Compare the intervals on three graphs."""
    size = GROWTH * vertices
    graphs = {
        "communities": growing_communities(size, communities=200, noise=0.3).edges,
        "preferential": preferential_attachment(size).edges,
        "appearing communities": appearing_communities(size, communities=400),
    }
    return {"vertices": vertices} | {
        f"{name}, {interval}, {figure}": value
        for name, edges in graphs.items()
        for interval in INTERVALS
        for figure, value in measure_stream(edges, vertices, interval).items()
    }


def measure_stream(edges: NDArray[np.int64], vertices: int, interval: float) -> dict[str, float]:
    """Stream the edges after those of the first vertices; return the mean MRR, anchors and processor seconds."""
    edges = edges[np.argsort(edges.max(axis=1), kind="stable")]
    hidden = np.random.default_rng(1).random(len(edges)) < HIDDEN_SHARE
    shown, hidden_edges = edges[~hidden], edges[hidden]
    newest, newest_hidden = shown.max(axis=1), hidden_edges.max(axis=1)
    first = int(np.searchsorted(newest, vertices))
    model = Embedder(dim=DIM, anchor_growth=interval).fit(shown[:first])
    seconds, of_all, of_recent = 0.0, [], []
    for size in np.linspace(1.2 * vertices, GROWTH * vertices, MOMENTS).astype(int):
        stop, began = int(np.searchsorted(newest, size)), time.process_time()
        for begin in range(first, stop, 5 * BATCH_SIZE):
            model.partial_fit(shown[begin : min(begin + 5 * BATCH_SIZE, stop)])
        first, seconds = stop, seconds + time.process_time() - began
        known = newest_hidden < size
        of_all.append(rank_hidden(model, hidden_edges[known]))
        of_recent.append(rank_hidden(model, hidden_edges[known & (newest_hidden >= (1 - RECENT) * size)]))
    return {
        "mrr": float(np.mean(of_all)),
        "mrr of recent": float(np.mean(of_recent)),
        "anchors": model.engine.anchors,
        "processor seconds": seconds,
    }


def appearing_communities(vertices: int, communities: int, seed: int = 5) -> NDArray[np.int64]:
    """Return edges of a graph whose communities appear one after another; most arrivals join one of the newest 150.

    Seven of ten edges lead into the own community.
    """
    random, members, edges = np.random.default_rng(seed), [list[int]() for _ in range(communities)], []
    for vertex in range(1, vertices):
        born = max(2, communities * vertex // vertices)
        community = members[random.integers(max(0, born - 150) if random.random() < 0.7 else 0, born)]
        for _ in range(5):
            inside = community and random.random() < 0.7
            edges.append((vertex, community[random.integers(len(community))] if inside else random.integers(vertex)))
        community.append(vertex)
    return np.array(edges, np.int64)


if __name__ == "__main__":
    run_benchmark(__doc__, measure_intervals, "vertices", 30_000)
