"""Benchmark of approximate search during a stream: recall@10 compared with exact search, time, re-indexing, memory.

    python benchmarks/ann.py --vertices 250000 --json results/ann.json

The graph consists of communities that grow by preferential attachment; the embedding has 128 columns. After a start on
80 % of the vertices, the rest arrives in batches, and a tenth as many vertices are removed. After every batch a hundred
vertices are searched from, through the index and exactly, in the same state; ties count as hits. Then follows a churn
without growth, with as many arrivals as removals.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from _report import run_benchmark

from ripplevec import Embedder
from ripplevec.batch import Batch, Op
from ripplevec.lab.datasets.synthetic import growing_communities
from ripplevec.search.ann import AnnIndex
from ripplevec.search.searcher import Searcher, SearchTarget

QUERIES, NEAREST, ROUNDS, CHURN_ROUNDS = 100, 10, 8, 10
CHURN_PER_ROUND = 0.05  # share of the vertices that is replaced


def measure(vertices: int) -> dict[str, Any]:
    """Measure recall, times, re-indexing and memory along one stream."""
    edges = growing_communities(vertices, max(10, vertices // 500), 5, seed=0).edges
    newest = edges.max(axis=1)
    start_size = int(0.8 * vertices)
    model = Embedder(search="ann").fit(edges[newest < start_size])
    began = time.perf_counter()
    searches = update_index(model)
    metrics: dict[str, Any] = {
        "vertices": vertices,
        "searches_to_fill": searches,
        "seconds_to_fill": time.perf_counter() - began,
        "bytes_per_vertex": get_index(model).nbytes / len(model),
    }
    metrics |= measure_stream(model, edges, newest, start_size)
    return metrics | measure_churn(model)


def measure_stream(model: Embedder, edges: np.ndarray, newest: np.ndarray, start_size: int) -> dict[str, Any]:
    """Apply arrivals and a few removals, with anchors; search right after every batch and with an updated index."""
    random, reindexed, anchors = np.random.default_rng(0), 0, model._engine.anchors
    after_batch, after_update = [], []
    for chunk in np.array_split(np.arange(start_size, newest.max() + 1), ROUNDS):
        model.partial_fit(edges[(newest >= chunk[0]) & (newest <= chunk[-1])])
        remove_vertices(model, random, chunk.size // 10)
        added_before = get_index(model).total_added
        after_batch.append(measure_search(model, random))
        update_index(model)
        reindexed += max(0, get_index(model).total_added - added_before - chunk.size)
        after_update.append(measure_search(model, random))
    recalls = [recall for recall, _, _ in after_batch + after_update]
    index_seconds, exact_seconds = (float(np.median([search[part] for search in after_update])) for part in (1, 2))
    return {
        "anchors": model._engine.anchors - anchors,
        "recall_mean": float(np.mean(recalls)),
        "recall_least": min(recalls),
        "recall_right_after_batches": float(np.mean([recall for recall, _, _ in after_batch])),
        "milliseconds_through_index": 1e3 * index_seconds,
        "milliseconds_exactly": 1e3 * exact_seconds,
        "exact_over_index": exact_seconds / index_seconds,
        "indexed_again_per_vertex": reindexed / len(model),
    }


def measure_churn(model: Embedder) -> dict[str, Any]:
    """Replace vertices round after round by new ones with random edges; measure memory and recall of the index."""
    random, sizes = np.random.default_rng(1), []
    for number in range(CHURN_ROUNDS):
        count = int(CHURN_PER_ROUND * len(model))
        remove_vertices(model, random, count)
        ids = np.array(model.ids)
        new_ids = np.repeat(np.arange(count) + 10**9 * (number + 1), 3)
        model.partial_fit(np.column_stack([new_ids, random.choice(ids, new_ids.size)]))
        update_index(model)
        sizes.append(get_index(model).nbytes / len(model))
    return {
        "churn_share": CHURN_ROUNDS * CHURN_PER_ROUND,
        "churn_bytes_per_vertex_first_half": max(sizes[: CHURN_ROUNDS // 2]),
        "churn_bytes_per_vertex_second_half": max(sizes[CHURN_ROUNDS // 2 :]),
        "churn_recall": measure_search(model, random)[0],
    }


def measure_search(model: Embedder, random: np.random.Generator) -> tuple[float, float, float]:
    """Return recall, seconds per query through the index, and seconds per exact query."""
    index_searcher, hits = model._searcher, 0
    exact_searcher, seconds = Searcher("exact", None), np.zeros((QUERIES, 2))
    for number, vertex in enumerate(random.choice(np.array(model.ids), QUERIES, replace=False).tolist()):
        results = []
        for column, model._searcher in enumerate((index_searcher, exact_searcher)):
            began = time.perf_counter()
            results.append([cosine for _, cosine in model.nearest(vertex, NEAREST)])
            seconds[number, column] = time.perf_counter() - began
        model._searcher = index_searcher
        hits += sum(cosine >= results[1][-1] - 1e-6 for cosine in results[0])
    return hits / (QUERIES * NEAREST), *np.median(seconds, axis=0).tolist()


def update_index(model: Embedder) -> int:
    """Update the index step by step, as searches do, until it is current; return the number of steps."""
    model.nearest(np.ones(model.dim))  # creates the index if there is none yet
    engine, index, steps = model._engine, get_index(model), 1
    target = SearchTarget(engine.store, engine.rule, engine.sequence, engine.anchors)
    while not index.is_current(target):
        index.apply_update(index.plan_update(target))
        steps += 1
    return steps


def remove_vertices(model: Embedder, random: np.random.Generator, count: int) -> None:
    """Remove random vertices, each with all its edges, as one batch."""
    removed = random.choice(np.array(model.ids), count, replace=False)
    model.partial_fit(Batch.vertices(removed.tolist(), Op.REMOVE_VERTEX))


def get_index(model: Embedder) -> AnnIndex:
    """Return the index, which exists after the first search."""
    assert model._searcher.index is not None
    return model._searcher.index


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "vertices", 100_000)
