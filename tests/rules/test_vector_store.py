from __future__ import annotations

import numpy as np
import pytest

from ripplevec.batch import Batch, Op
from ripplevec.graph.graph import Graph
from ripplevec.rules import vector_store
from ripplevec.rules.vector_store import VectorStore


def test_apply_delta_adds_rows_and_clears_removed_ones() -> None:
    graph = Graph()
    store = VectorStore(graph, 3, np.float32)
    assert store.vectors.shape[1] == 3
    for step in graph.apply(Batch.from_any([(i, i + 1) for i in range(100)])):
        assert store.apply_delta(step) is step
    rows = graph.row_count
    assert min(len(store.vectors), len(store.placed), len(store.seen)) >= rows == 101
    assert not store.placed.any()
    store.vectors[:rows], store.placed[:rows] = 1, 1
    for step in graph.apply(Batch.of([5, 200], [5, 201], op=[Op.REMOVE_VERTEX, Op.ADD])):
        store.apply_delta(step)
    reused = graph.ids.find_row(200)  # the freed row is reused, and its old vector is cleared
    assert reused < rows
    assert not store.vectors[reused].any()
    assert not store.placed[reused]
    assert store.vectors[:rows].sum() == 3 * (rows - 1)


@pytest.mark.parametrize("precision", [np.float16, np.float32])
@pytest.mark.parametrize("threads", [1, 3])
def test_copy_rows_returns_independent_rows_in_order(
    threads: int, precision: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_store, "COPIED_ROWS_PER_TASK", 4)
    graph = Graph(threads=threads)
    store = VectorStore(graph, 2, precision)
    for step in graph.apply(Batch.from_any([(i, i + 1) for i in range(30)])):
        store.apply_delta(step)
    store.vectors[:] = np.arange(store.vectors.size).reshape(store.vectors.shape)
    rows = np.array([30, 2, 2, 17, 0, *range(5, 20)])
    copied, expected = store.copy_rows(rows), store.vectors[rows]
    store.vectors[:] = 0
    assert copied.dtype == precision
    np.testing.assert_array_equal(copied, expected)
    assert store.copy_rows(rows[:0]).shape == (0, 2)
