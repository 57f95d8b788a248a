"""Batches joined and cut, so that their size is what was asked for and not what a file happened to give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ripplevec.batch import Batch, Id, IdColumn, Op, ids_to_list, select_rows


def rebatch(batches: Iterable[Batch], size: int) -> Iterator[Batch]:
    """The same rows in batches of exactly `size`; only the last may be smaller."""
    waiting: list[Batch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= size:
            whole = concatenate(waiting)
            full = len(whole) - len(whole) % size
            yield from split_batch(slice_batch(whole, 0, full), size)
            waiting = [slice_batch(whole, full, len(whole))]
    yield from split_batch(concatenate(waiting), size)


def split_batch(batch: Batch, size: int) -> Iterator[Batch]:
    """One batch as several of `size` rows."""
    for first in range(0, len(batch), size):
        yield slice_batch(batch, first, min(first + size, len(batch)))


def slice_batch(batch: Batch, first: int, last: int) -> Batch:
    """The rows of a batch from `first` up to `last`."""
    return select_rows(batch, slice(first, last))


def concatenate(batches: Sequence[Batch]) -> Batch:
    """All rows in one batch; a column that only some have is filled up (weight 1, ADD, no time)."""
    full = [batch for batch in batches if len(batch)]
    if not full:
        return Batch.of([], [])
    lengths = [len(batch) for batch in full]
    return Batch(
        _ids([batch.src for batch in full]),
        _ids([batch.dst for batch in full]),
        _column([batch.weight for batch in full], lengths, 1.0),
        _column([batch.op for batch in full], lengths, np.int8(Op.ADD)),
        _column([batch.time for batch in full], lengths, np.nan),
    )


def _ids(columns: list[IdColumn]) -> IdColumn:
    if all(isinstance(column, np.ndarray) for column in columns):
        return np.concatenate(columns)
    if all(isinstance(column, pa.Array) for column in columns):
        return pa.concat_arrays(columns)
    mixed: list[Id] = []
    for column in columns:
        mixed.extend(ids_to_list(column))
    return mixed


def _column(columns: list[Any], lengths: list[int], fill: Any) -> Any:
    if all(column is None for column in columns):
        return None
    pairs = zip(columns, lengths, strict=True)
    return np.concatenate([np.full(length, fill) if column is None else column for column, length in pairs])
