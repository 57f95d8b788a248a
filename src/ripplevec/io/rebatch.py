"""Joining, slicing and splitting batches, so that batch sizes do not depend on the blocks of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ripplevec.batch import Batch, Id, IdColumn, Op, ids_to_list, refuse_attributes, select_rows


def rebatch(batches: Iterable[Batch], size: int) -> Iterator[Batch]:
    """Yield the same rows in batches of exactly `size` rows; only the last may be smaller."""
    pending: list[Batch] = []
    for batch in batches:
        pending.append(batch)
        if sum(map(len, pending)) >= size:
            joined = concatenate(pending)
            complete = len(joined) - len(joined) % size
            yield from split_batch(slice_batch(joined, 0, complete), size)
            pending = [slice_batch(joined, complete, len(joined))]
    yield from split_batch(concatenate(pending), size)


def split_batch(batch: Batch, size: int) -> Iterator[Batch]:
    """Yield a batch in pieces of `size` rows; only the last may be smaller."""
    for first in range(0, len(batch), size):
        yield slice_batch(batch, first, min(first + size, len(batch)))


def slice_batch(batch: Batch, first: int, last: int) -> Batch:
    """Return the rows of a batch from `first` up to, but not including, `last`."""
    return select_rows(batch, slice(first, last))


def concatenate(batches: Sequence[Batch]) -> Batch:
    """Return all rows in one batch; a column that only some batches have is filled (weight 1, ADD, no time)."""
    nonempty = [batch for batch in batches if len(batch)]
    for batch in nonempty:
        refuse_attributes(batch, "joined with others")
    if not nonempty:
        return Batch.of([], [])
    lengths = [len(batch) for batch in nonempty]
    return Batch.from_checked_columns(
        _concatenate_ids([batch.src for batch in nonempty]),
        _concatenate_ids([batch.dst for batch in nonempty]),
        _concatenate_values([batch.weight for batch in nonempty], lengths, 1.0),
        _concatenate_values([batch.op for batch in nonempty], lengths, np.int8(Op.ADD)),
        _concatenate_values([batch.time for batch in nonempty], lengths, np.nan),
    )


def _concatenate_ids(columns: list[IdColumn]) -> IdColumn:
    if all(isinstance(column, np.ndarray) for column in columns):
        return np.concatenate(columns)
    if all(isinstance(column, pa.Array) for column in columns):
        return pa.concat_arrays(columns)
    mixed: list[Id] = []
    for column in columns:
        mixed.extend(ids_to_list(column))
    return mixed


def _concatenate_values(columns: list[Any], lengths: list[int], default: Any) -> Any:
    if all(column is None for column in columns):
        return None
    pairs = zip(columns, lengths, strict=True)
    return np.concatenate([np.full(length, default) if column is None else column for column, length in pairs])
