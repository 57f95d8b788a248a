"""`python -m ripplevec.cli.arrival_kernels`: compile the kernels that add arrivals to a model with default parameters.

The kernels of gradual anchors follow: the stream would wait for each of them during its first anchor.

This is the second process of `util/compile_ahead.py`. It ends when its standard input is closed, that is with the
process that started it.
"""

from __future__ import annotations

import os
from threading import Thread

import numpy as np

from ripplevec.embedder import Embedder
from ripplevec.graph.id_table import encode_ids
from ripplevec.rules import _arrival_kernel, _kernels
from ripplevec.rules.ripple import RippleRule
from ripplevec.rules.stream_kernels import run_small_stream


def compile_arrival_kernels() -> None:
    """Call the kernels of batches and of single arrivals on an empty model; write a byte after the first.

    The kernel of batches comes first: meanwhile `fit` compiles the kernels of ids and edges, which arrivals need too.
    """
    engine = Embedder(dim=2)._engine
    rule, store = engine.rule, engine.store
    assert isinstance(rule, RippleRule)
    ids = encode_ids(["a", "b"])
    store.make_room(ids)  # the arrays of a store without room have another memory layout
    no_rows, no_pairs = np.empty(0, np.int64), np.empty((0, 2), np.int64)
    context = rule._batch_context(1, 0)
    _kernels.apply_batch(rule.kernel_state(store), no_rows, no_pairs, no_pairs, np.empty((0, 2)), store.seen, context)
    os.write(1, b".")
    _arrival_kernel.apply_arrival(rule._arrival_context(store), ids, np.ones(1, np.float32), 1, 0)


def _end_with_parent() -> None:
    os.read(0, 1)  # not through sys.stdin: a thread that holds its lock at the end of the process would abort it
    os._exit(1)


if __name__ == "__main__":
    Thread(target=_end_with_parent, daemon=True).start()
    compile_arrival_kernels()
    run_small_stream()
