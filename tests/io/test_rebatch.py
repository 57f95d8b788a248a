from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.batch import Batch, ids_to_list, select_rows
from ripplevec.io.rebatch import concatenate, rebatch, slice_batch, split_batch

names = st.integers(-5, 5) | st.text(max_size=2)
batches = st.lists(st.lists(st.tuples(names, names, st.floats(0.1, 10)), max_size=6), max_size=6)


def rows_of(batch):
    weights = [1.0] * len(batch) if batch.weight is None else batch.weight.tolist()
    return list(zip(ids_to_list(batch.src), ids_to_list(batch.dst), weights, strict=True))


def batch_of(rows, weighted=True):
    return Batch.of([u for u, _, _ in rows], [v for _, v, _ in rows], [w for _, _, w in rows] if weighted else None)


@given(batches, st.integers(1, 7))
def test_rebatch_keeps_rows_in_order_and_returns_requested_size(parts, size):
    grouped = list(rebatch([batch_of(rows) for rows in parts], size))
    assert [row for batch in grouped for row in rows_of(batch)] == [row for rows in parts for row in rows]
    assert all(len(batch) == size for batch in grouped[:-1])
    assert all(0 < len(batch) <= size for batch in grouped[-1:])


def test_concatenate_keeps_id_column_type():
    assert isinstance(concatenate([Batch.of([1], [2]), Batch.of([3], [4])]).src, np.ndarray)
    assert isinstance(concatenate([Batch.of(["a"], ["b"]), Batch.of([], [])]).src, pa.Array)
    assert concatenate([Batch.of([1], [2]), Batch.of(["1"], ["2"])]).src == [1, "1"]


def test_concatenate_with_partial_columns_fills_defaults():
    whole = concatenate([Batch.of([1], [2]), Batch.of([3], [4], [0.5], [1], [7.0])])
    assert whole.weight.tolist() == [1.0, 0.5]
    assert whole.op.tolist() == [0, 1]
    assert np.isnan(whole.time[0])
    assert whole.time[1] == 7.0


def test_concatenate_of_nothing_is_empty_batch():
    assert len(concatenate([])) == 0


def test_slice_batch_and_split_batch_return_rows():
    batch = Batch.of([1, 2, 3], ["a", "b", "c"], [1.0, 2.0, 3.0])
    assert rows_of(slice_batch(batch, 1, 3)) == [(2, "b", 2.0), (3, "c", 3.0)]
    assert rows_of(select_rows(batch, np.array([2, 0]))) == [(3, "c", 3.0), (1, "a", 1.0)]
    assert [len(piece) for piece in split_batch(batch, 2)] == [2, 1]
