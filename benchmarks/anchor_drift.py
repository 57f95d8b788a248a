"""Benchmark of drift signals: can what an anchor changes tell how soon the next one is needed? Without any labels.

    python benchmarks/anchor_drift.py [--graphs random …] [--seeds 3] [--json FILE]

Graphs of 10,000 vertices grow without anchors; after 30, 60 and 100 % of growth, a copy of the model is anchored. *MRR*
is the mean of 1 / rank of the right end of a hidden edge among 1,000 vertices, by cosine, of edges of *recent*
vertices: those that have arrived since the start. Its *gain* by the anchor is what an anchor is needed for. The signals
are numbers that a schedule of anchors could compute from the vectors before and after the anchor:

- `spectrum`: the eigenvalue sum that the columns captured before the anchor, relative to that after it;
- `movement`: the mean of 1 − cosine between a vector before and after the anchor, over earlier vertices;
- `relative movement`: that of recent vertices, relative to earlier vertices of the same degree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np
from _report import run_parts
from anchor_interval import appearing_communities
from anchor_spread import BATCH_SIZE, DIM, HIDDEN_SHARE, captured_sum, rank_pairs
from arrival import generate_edges
from numpy.typing import NDArray

from ripplevec import Embedder
from ripplevec.lab.datasets.synthetic import growing_communities, preferential_attachment

VERTICES, GROWTHS = 10_000, (0.3, 0.6, 1.0)
MAX_DEGREE = 12  # vertices with more neighbors are compared with each other, whatever their degree
MIN_VERTICES = 30  # earlier and recent vertices of a degree that are compared, at least

IntArray = NDArray[np.int64]


def measure_signals(name: str, seeds: int) -> dict[str, float]:
    """Measure gain and signals on one kind of graph, for all growths and several seeds."""
    size = round(VERTICES * (1 + max(GROWTHS)))
    return {
        f"{name}, {growth}, {seed}, {figure}": value
        for seed in range(seeds)
        for growth, figures in zip(GROWTHS, measure_stream(GRAPHS[name](size, seed), VERTICES), strict=True)
        for figure, value in figures.items()
    }


def measure_stream(edges: IntArray, vertices: int) -> Iterator[dict[str, float]]:
    """Stream the edges after those of the first vertices; after each growth, yield the figures of an anchor."""
    edges = edges[np.argsort(edges.max(axis=1), kind="stable")]
    hidden = np.random.default_rng(1).random(len(edges)) < HIDDEN_SHARE
    shown, hidden_edges = edges[~hidden], edges[hidden]
    newest, newest_hidden = shown.max(axis=1), hidden_edges.max(axis=1)
    first = int(np.searchsorted(newest, vertices))
    model = Embedder(dim=DIM, anchor_growth=0).fit(shown[:first])
    earlier = model.ids
    for growth in GROWTHS:
        size = round(vertices * (1 + growth))
        stop = int(np.searchsorted(newest, size))
        for begin in range(first, stop, 5 * BATCH_SIZE):
            model.partial_fit(shown[begin : min(begin + 5 * BATCH_SIZE, stop)])
        first = stop
        yield compare_anchor(model, hidden_edges[(newest_hidden >= vertices) & (newest_hidden < size)], earlier)


def compare_anchor(model: Embedder, hidden: IntArray, earlier: list[Any]) -> dict[str, float]:
    """Anchor a copy of a model; return the MRR of hidden edges before and after, and the signals."""
    anchored, ids = deepcopy(model), np.array(model.ids, np.int64)
    anchored.anchor()
    before, after = model.vectors(ids), anchored.vectors(ids)
    recent = np.isin(ids, np.array(earlier, np.int64), invert=True)
    moved = 1 - np.einsum("ij,ij->i", before, after)
    placed = (np.square(before).sum(axis=1) > 0) & (np.square(after).sum(axis=1) > 0)
    position = np.full(int(max(ids.max(), hidden.max())) + 1, -1)
    position[ids] = np.arange(len(ids))
    pairs = position[hidden]
    pairs = pairs[(pairs >= 0).all(axis=1)]
    return {
        "mrr before": rank_pairs(before, pairs),
        "mrr after": rank_pairs(after, pairs),
        "spectrum": captured_sum(model) / captured_sum(anchored),
        "movement": float(moved[placed & ~recent].mean()),
        "relative movement": compare_movement(moved[placed], model.degree(ids)[placed], recent[placed]),  # type: ignore[index]
    }


def compare_movement(moved: NDArray[np.floating], degree: IntArray, recent: NDArray[np.bool_]) -> float:
    """Return the mean movement of recent vertices, divided by that of earlier ones of the same degree."""
    of_recent = of_earlier = 0.0
    for value in range(1, MAX_DEGREE + 2):
        same = degree == value if value <= MAX_DEGREE else degree > MAX_DEGREE
        new, old = moved[same & recent], moved[same & ~recent]
        if min(new.size, old.size) >= MIN_VERTICES:
            of_recent += float(new.sum())
            of_earlier += float(old.mean()) * new.size
    return of_recent / of_earlier if of_earlier else 1.0


def arriving_purchases(vertices: int, groups: int, seed: int) -> IntArray:
    """Return edges of a bipartite graph; every fifth vertex is an item, and seven of ten edges stay in a group.

    A new user buys six items; a new item is bought by two users.
    """
    random = np.random.default_rng(seed)
    group, is_item = random.integers(groups, size=vertices), random.random(vertices) < 0.2
    kinds = [[list[int]() for _ in range(groups + 1)] for _ in range(2)]  # users, items; the last list has all groups
    edges = []
    for vertex in range(vertices):
        own, other = kinds[int(is_item[vertex])], kinds[1 - int(is_item[vertex])]
        for _ in range(2 if is_item[vertex] else 6):
            partners = (random.random() < 0.7 and other[group[vertex]]) or other[groups]
            if partners:
                edges.append((vertex, partners[random.integers(len(partners))]))
        own[group[vertex]].append(vertex)
        own[groups].append(vertex)
    return np.array(edges, np.int64)


def merging_communities(vertices: int, communities: int, seed: int) -> IntArray:
    """Return edges of a graph whose communities merge, two at a time, during the second half of its growth.

    Seven of ten edges lead into the own community. A fifth of the communities is left at the end.
    """
    random = np.random.default_rng(seed)
    members, community_of = [list[int]() for _ in range(communities)], np.arange(communities)
    merges = set(np.linspace(vertices // 2, vertices - 1, 4 * communities // 5, dtype=int).tolist())
    edges = []
    for vertex in range(1, vertices):
        if vertex in merges:
            kept, dropped = random.choice(np.unique(community_of), 2, replace=False)
            community_of[community_of == dropped] = kept
            members[kept] += members[dropped]
        community = members[community_of[random.integers(communities)]]
        for _ in range(5):
            inside = community and random.random() < 0.7
            edges.append((vertex, community[random.integers(len(community))] if inside else random.integers(vertex)))
        community.append(vertex)
    return np.array(edges, np.int64)


GRAPHS: dict[str, Callable[[int, int], IntArray]] = {
    "communities": lambda size, seed: growing_communities(size, communities=200, noise=0.3, seed=seed).edges,
    "appearing communities": lambda size, seed: appearing_communities(size, communities=400, seed=seed),
    "random": generate_edges,
    "preferential": lambda size, seed: preferential_attachment(size, seed=seed).edges,
    "purchases": lambda size, seed: arriving_purchases(size, groups=60, seed=seed),
    "merging communities": lambda size, seed: merging_communities(size, communities=200, seed=seed),
}
"""Generators of edges, given the number of vertices and a seed. New structure appears in the second graph; in the last
one, structure disappears."""


if __name__ == "__main__":
    run_parts(__doc__, measure_signals, "graphs", list(GRAPHS), seeds=3)
