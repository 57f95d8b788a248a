"""Who gets what: rows of anything, shared out among shards, and the share of a shard in a batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


class Entry(NamedTuple):
    """What a shard has to know of a step: one thing to send, not many."""

    arrived: Rows  # rows of newcomers
    arrived_as: Rows  # and their numbers
    ends: Rows  # (m, 4): of the ends that are there the row, the neighbor, and the numbers of both
    op: NDArray[np.int8]
    weight: NDArray[np.float32]
    way: NDArray[np.int8]  # which end of the operation it is


def shares(owner: Rows, shards: int) -> list[Rows]:
    """Where each shard is the owner, in order; one pass for however many shards there are."""
    small = owner.astype(np.uint16 if shards <= 1 << 16 else np.int64)  # few bits are sorted by counting
    order = np.argsort(small, kind="stable")
    return np.split(order, np.searchsorted(small[order], np.arange(1, shards)))


def rows_by_shard(codes: Rows, shards: int) -> list[Rows]:
    """What codes stand for: the rows of each shard, in order."""
    rows = codes // shards
    return [rows[places] for places in shares(codes % shards, shards)]
