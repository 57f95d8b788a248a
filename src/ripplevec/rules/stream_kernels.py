"""Kernels of a stream, loaded before it begins: otherwise, the arrival that calls one first would wait for it.

Compiled kernels are stored on disk. Loading one takes 5 to 30 ms, and the arrivals that pay for an anchor call a dozen
of them for the first time.
"""

from __future__ import annotations

from functools import cache
from math import inf

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ripplevec.batch import Batch, id_column
from ripplevec.graph.graph import Graph
from ripplevec.graph.id_table import encode_ids
from ripplevec.rules.base import Rule
from ripplevec.rules.ripple import RippleRule
from ripplevec.rules.vector_store import VectorStore
from ripplevec.util.compilation import report_compilation
from ripplevec.util.compile_ahead import is_compiling_ahead
from ripplevec.views.spectral import SpectralView

MIN_VERTICES = 10_000  # the start of a graph with so many takes much longer than loading the kernels


def load_stream_kernels(rule: Rule, vertices: int) -> None:
    """Load the kernels that arrivals at a graph with so many vertices will call, once per process.

    Does nothing for a small graph, nor while kernels are compiled: then they are not stored yet.
    """
    compiling = is_compiling_ahead() or report_compilation().kernels
    if isinstance(rule, RippleRule) and vertices >= MIN_VERTICES and not compiling:
        _run_once(np.dtype(rule.precision))


def run_small_stream(precision: DTypeLike = np.float32) -> None:
    """Run a gradual anchor on a small graph, with arrivals in the middle of it, and serve a vector; on the CPU."""
    graph, views = Graph(), {"small": [SpectralView(tau_per_degree=0.25, device="cpu")]}
    store = VectorStore(graph, 2, precision)
    rule = RippleRule(2, views, normalize=True, depth=None, seed=0, max_reads=100, threads=1)
    ends = np.arange(20)
    for delta in graph.apply(Batch.of(np.tile(ends, 2), np.concatenate([ends + 1, ends + 2]) % 20), one_by_one=False):
        store.apply_delta(delta)
    rule.start(store)
    correction = rule.begin_correction(store, 0)
    correction.advance(store, 1.0, 0.0, 1)
    correction.record_batch(store, _add_arrival(rule, store), len(ends))
    while not correction.finished:
        correction.advance(store, inf, 0.0, 1)
        correction.publish(store, 0.0, 1)
    rule.to_served(store.vectors[:1])


def _add_arrival(rule: RippleRule, store: VectorStore) -> NDArray[np.int64]:
    """Add a vertex with two edges, as a batch and then as a single arrival; return the rows that moved."""
    (delta,) = store.graph.apply(Batch.of([20, 20], [0, 1]), one_by_one=False)
    rule.apply(store, store.apply_delta(delta), 1)
    ids = id_column([21, 0, 1])
    store.make_room(encode_ids(ids))
    return rule.apply_arrival(store, ids, None, 2)[2]


_run_once = cache(run_small_stream)
