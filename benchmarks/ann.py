"""Search through an index while the graph streams: recall@10 against exact, time, what is indexed again, memory.

    python benchmarks/ann.py --vertices 250000 --json results/ann.json

Communities that grow by preferential attachment, k = 128. A start on 80 % of the vertices, then the rest arrives in
batches; a tenth as many vertices leave again. Every so often a hundred vertices are asked for, once through the index
and once exactly, on the same state. Ties count as found. Then a churn without growth: as many arrive as leave.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from _report import run

from ripplevec import Embedder
from ripplevec.batch import Batch, Op
from ripplevec.lab.datasets.synthetic import growing_communities
from ripplevec.search.ann import AnnIndex
from ripplevec.search.query import SearchTarget
from ripplevec.search.searcher import Searcher

QUERIES, NEAREST, ROUNDS, CHURN_ROUNDS = 100, 10, 8, 10
CHURNED = 0.05  # of the vertices per round


def measure(vertices: int) -> dict[str, Any]:
    """Recall, times, work and memory along one stream."""
    edges = growing_communities(vertices, max(10, vertices // 500), 5, seed=0).edges
    newest = edges.max(axis=1)
    started = int(0.8 * vertices)
    model = Embedder(search="ann").fit(edges[newest < started])
    begin = time.perf_counter()
    searches = catch_up(model)
    figures: dict[str, Any] = {
        "vertices": vertices,
        "searches_to_fill": searches,
        "seconds_to_fill": time.perf_counter() - begin,
        "bytes_per_vertex": index_of(model).nbytes / len(model),
    }
    figures |= along_a_stream(model, edges, newest, started)
    return figures | in_a_churn(model)


def along_a_stream(model: Embedder, edges: np.ndarray, newest: np.ndarray, started: int) -> dict[str, Any]:
    """Arrivals, a few removals and the anchors they bring; asked right after every batch."""
    random, again, asked, anchors = np.random.default_rng(0), 0, [], model._engine.anchors
    for chunk in np.array_split(np.arange(started, newest.max() + 1), ROUNDS):
        model.partial_fit(edges[(newest >= chunk[0]) & (newest <= chunk[-1])])
        leave(model, random, chunk.size // 10)
        before = index_of(model).total_added
        asked.append(ask(model, random))
        catch_up(model)
        again += max(0, index_of(model).total_added - before - chunk.size)
        asked.append(ask(model, random))
    recalls = [recall for recall, _, _ in asked]
    settled = asked[1::2]
    through, exactly = (float(np.median([each[part] for each in settled])) for part in (1, 2))
    return {
        "anchors": model._engine.anchors - anchors,
        "recall_mean": float(np.mean(recalls)),
        "recall_least": min(recalls),
        "recall_right_after_batches": float(np.mean(recalls[::2])),
        "milliseconds_through_index": 1e3 * through,
        "milliseconds_exactly": 1e3 * exactly,
        "exact_over_index": exactly / through,
        "indexed_again_per_vertex": again / len(model),
    }


def in_a_churn(model: Embedder) -> dict[str, Any]:
    """As many arrivals, with edges to anybody, as removals, round after round: what the index then takes, and finds."""
    random, sizes = np.random.default_rng(1), []
    for number in range(CHURN_ROUNDS):
        count = int(CHURNED * len(model))
        leave(model, random, count)
        ids = np.array(model.ids)
        fresh = np.repeat(np.arange(count) + 10**9 * (number + 1), 3)
        model.partial_fit(np.column_stack([fresh, random.choice(ids, fresh.size)]))
        catch_up(model)
        sizes.append(index_of(model).nbytes / len(model))
    return {
        "churn_share": CHURN_ROUNDS * CHURNED,
        "churn_bytes_per_vertex_first_half": max(sizes[: CHURN_ROUNDS // 2]),
        "churn_bytes_per_vertex_second_half": max(sizes[CHURN_ROUNDS // 2 :]),
        "churn_recall": ask(model, random)[0],
    }


def ask(model: Embedder, random: np.random.Generator) -> tuple[float, float, float]:
    """Recall and seconds per query, through the index and exactly."""
    through, hits = model._searcher, 0
    exactly, seconds = Searcher("exact", None), np.zeros((QUERIES, 2))
    for number, vertex in enumerate(random.choice(np.array(model.ids), QUERIES, replace=False).tolist()):
        answers = []
        for way, model._searcher in enumerate((through, exactly)):
            begin = time.perf_counter()
            answers.append([cosine for _, cosine in model.nearest(vertex, NEAREST)])
            seconds[number, way] = time.perf_counter() - begin
        model._searcher = through
        hits += sum(cosine >= answers[1][-1] - 1e-6 for cosine in answers[0])
    return hits / (QUERIES * NEAREST), *np.median(seconds, axis=0).tolist()


def catch_up(model: Embedder) -> int:
    """Have the index do, piece by piece, what searches would have it do until nothing is left; how many that takes."""
    model.nearest(np.ones(model.dim))  # makes the index, if there is none yet
    engine, index, pieces = model._engine, index_of(model), 1
    target = SearchTarget(engine.store, engine.rule, engine.sequence, engine.anchors)
    while not index.is_current(target):
        index.apply_update(index.plan_update(target))
        pieces += 1
    return pieces


def leave(model: Embedder, random: np.random.Generator, count: int) -> None:
    """Remove some vertices, each with all its edges, as one batch."""
    gone = random.choice(np.array(model.ids), count, replace=False)
    model.partial_fit(Batch.vertices(gone.tolist(), Op.REMOVE_VERTEX))


def index_of(model: Embedder) -> AnnIndex:
    """The index, which there is after the first search."""
    assert model._searcher.index is not None
    return model._searcher.index


if __name__ == "__main__":
    run(__doc__, measure, "vertices", 100_000)
