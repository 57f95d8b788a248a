"""Benchmark of the growth over which a gradual anchor is spread: what it costs in accuracy, without any labels.

    python benchmarks/anchor_spread.py [--vertices 60000] [--json FILE]

A graph grows by 70 %, the growth between two anchors of a large graph, and a little more. The anchor at its end is
computed at once, or spread over more and more of this growth. Then the vectors are compared with a new start on the
same graph: the share of its eigenvalue sum that their columns capture, and the largest cosine between two columns,
which an exact solution has at zero. *MRR* is the mean of 1 / rank of the right end of a hidden edge among 1,000
vertices, by cosine.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from _report import run_benchmark
from numpy.typing import NDArray

from ripplevec import Embedder
from ripplevec.engine import correction_schedule
from ripplevec.lab.datasets.synthetic import growing_communities, preferential_attachment
from ripplevec.util.parallel import resolve_threads

DIM, INTERVAL, AFTER, BATCH_SIZE = 64, 0.7, 0.02, 100
SPREADS = (0.02, 0.1, 0.2, 0.3)
HIDDEN_SHARE, QUERIES, CANDIDATES = 0.05, 4_000, 1_000


def measure_spreads(vertices: int) -> dict[str, Any]:
    """Compare the spreads on a graph with communities and on one of preferential attachment."""
    size = round(vertices * (1 + INTERVAL + AFTER))
    graphs = {
        "communities": growing_communities(size, communities=200, noise=0.3).edges,
        "preferential": preferential_attachment(size).edges,
    }
    return {"vertices": vertices} | {
        f"{name}, {figure}": value
        for name, edges in graphs.items()
        for figure, value in _compare_on(edges, vertices).items()
    }


def _compare_on(edges: NDArray[np.int64], vertices: int) -> dict[str, float]:
    edges = edges[np.argsort(edges.max(axis=1), kind="stable")]
    hidden = np.random.default_rng(1).random(len(edges)) < HIDDEN_SHARE
    shown, hidden_edges = edges[~hidden], edges[hidden]
    begin = int(np.searchsorted(shown.max(axis=1), vertices))
    exact = Embedder(dim=DIM, anchor_growth=0).fit(shown)
    results = {"exact, mrr": rank_hidden(exact, hidden_edges)}
    for spread in (0.0, *SPREADS):
        model = _grow(shown, begin, spread)
        name = f"spread {spread}" if spread else "immediate"
        results |= {f"{name}, {figure}": value for figure, value in _measure(model, exact, hidden_edges).items()}
    return results


def _grow(edges: NDArray[np.int64], begin: int, spread: float) -> Embedder:
    """Return a model that streamed all edges from `begin` on, with one anchor spread over this growth; 0: immediate."""
    pace: Literal["gradual", "immediate"] = "gradual" if spread else "immediate"
    before = correction_schedule.MAX_SPREAD, correction_schedule.SPREAD_VERTICES
    correction_schedule.MAX_SPREAD, correction_schedule.SPREAD_VERTICES = spread, 1
    try:
        model = Embedder(dim=DIM, anchor_growth=INTERVAL, anchor_pace=pace).fit(edges[:begin])
        source = edges[begin:].max(axis=1)
        for group in np.split(edges[begin:], np.flatnonzero(np.diff(source // BATCH_SIZE)) + 1):
            model.partial_fit(group)
    finally:
        correction_schedule.MAX_SPREAD, correction_schedule.SPREAD_VERTICES = before
    if model.engine.anchors != 1:
        raise RuntimeError(f"expected one anchor, got {model.engine.anchors}")
    return model


def _measure(model: Embedder, exact: Embedder, hidden: NDArray[np.int64]) -> dict[str, float]:
    return {
        "captured": captured_sum(model) / captured_sum(exact),
        "largest_cosine": float(model.engine.rule.orthogonality_error(model.engine.store)),
        "mrr": rank_hidden(model, hidden),
    }


def captured_sum(model: Embedder) -> float:
    """Return the sum of the eigenvalues that the current columns capture."""
    store, coordinates = model.engine.store, model.engine.rule.coordinates  # type: ignore[attr-defined]
    rows, threads = store.vectors[: store.graph.row_count], resolve_threads(None)
    views = zip(coordinates.views, coordinates.parts, strict=True)
    return sum(view.captured_spectrum(store.graph.adjacency, rows[:, part], threads=threads) for view, part in views)


def rank_hidden(model: Embedder, hidden: NDArray[np.int64]) -> float:
    """Return the MRR of one end of hidden edges, among it and random vertices."""
    known = np.array([first in model and second in model for first, second in hidden.tolist()])
    return rank_pairs(model.vectors(np.arange(len(model))), hidden[known])


def rank_pairs(vectors: NDArray[np.float32], pairs: NDArray[np.int64]) -> float:
    """Return the MRR of the second row of pairs, among it and random rows."""
    random = np.random.default_rng(2)
    pairs = random.permutation(pairs)[:QUERIES]
    candidates = random.integers(0, len(vectors), (len(pairs), CANDIDATES - 1))
    own, right = vectors[pairs[:, 0]], vectors[pairs[:, 1]]
    score = np.einsum("ij,ij->i", own, right)
    others = np.stack([vectors[row] @ one for row, one in zip(candidates, own, strict=True)])
    ranks = 1 + (others > score[:, None]).sum(axis=1) + 0.5 * (others == score[:, None]).sum(axis=1)
    return float((1 / ranks).mean())


if __name__ == "__main__":
    run_benchmark(__doc__, measure_spreads, "vertices", 60_000)
