"""Exchange of rows between all shards of a mesh: messages are plain bytes, which no shard has to describe or decode.

A message consists of a head, with the numbers of rows that follow, and of the rows of some arrays. As all shards call
`exchange_rows` with the same types of arrays, the receiver knows the rest, and stores the rows where they are needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class RowGroup(NamedTuple):
    """Arrays with equal numbers of rows, of which shard i receives the rows `begin[i]` to `end[i]` − 1.

    Their types and the shapes of their rows are the same on all shards.
    """

    columns: Sequence[NDArray[Any]]
    begin: list[int]
    end: list[int]
    into: Sequence[NDArray[Any]] | None = None  # contiguous arrays for the received rows; by default, new ones

    @property
    def row_bytes(self) -> list[int]:
        """Bytes of a row of each array."""
        return [column.itemsize * prod(column.shape[1:]) for column in self.columns]


class ReceivedRows(NamedTuple):
    """The rows of a group that all shards sent to this one, in the order of the shards."""

    columns: list[NDArray[Any]]
    bounds: NDArray[np.int64]  # where the rows of each shard begin, and the end of the last ones

    def repeat_shards(self) -> NDArray[np.int64]:
        """Return the shard of each row."""
        return np.repeat(np.arange(self.bounds.size - 1), np.diff(self.bounds))


def group_rows(columns: Sequence[NDArray[Any]], bounds: NDArray[np.int64]) -> RowGroup:
    """Return a group of which each shard receives the rows between two consecutive bounds."""
    ends: list[int] = bounds.tolist()
    return RowGroup(columns, ends[:-1], ends[1:])


def broadcast_rows(columns: Sequence[NDArray[Any]], size: int) -> RowGroup:
    """Return a group of which every shard receives all rows."""
    return RowGroup(columns, [0] * size, [len(columns[0])] * size)


def view_bytes(array: NDArray[Any]) -> memoryview:
    """Return the bytes of a contiguous array."""
    return array.reshape(-1).view(np.uint8).data


class RowExchange:
    """A shard that exchanges rows with others, over streams of bytes.

    Attributes
    ----------
    index
        Number of this shard.
    size
        Number of shards.
    sent
        Bytes of the rows and messages that this shard has sent to others, without their heads.
    """

    def __init__(self, index: int, size: int) -> None:
        self.index, self.size = index, size
        self.sent = 0

    def exchange_rows(
        self, *groups: RowGroup, numbers: Sequence[int] = ()
    ) -> tuple[list[ReceivedRows], NDArray[np.int64]]:
        """Send each shard its rows of some groups, and the same numbers to all.

        Returns the received rows of each group, and the numbers of all shards: a line for each shard. All shards
        receive in the same order, so no two of them wait for each other, however large their messages are.
        """
        heads = np.empty((self.size, len(groups) + len(numbers)), np.int64)
        for position, group in enumerate(groups):
            heads[:, position] = np.subtract(group.end, group.begin)
        heads[:, len(groups) :] = numbers
        parts, sent = _split_rows(groups, self.size), heads.copy()
        bodies = {peer: parts[peer] for peer in self.peers}
        self.send_parts({peer: [view_bytes(sent[peer])] for peer in self.peers}, bodies)
        self.sent += sum(len(part) for body in bodies.values() for part in body)
        for peer in range(self.size):
            if peer != self.index:
                self.receive_parts(peer, [view_bytes(heads[peer])])
        received = [_allocate(group, heads[:, position]) for position, group in enumerate(groups)]
        for shard, targets in enumerate(_split_received(received, self.size)):
            if shard != self.index:
                self.receive_parts(shard, targets)
                continue
            for source, target in zip(parts[shard], targets, strict=True):
                target[:] = source
        self.flush()
        return received, heads[:, len(groups) :]

    @property
    def peers(self) -> list[int]:
        """The other shards, beginning with the next one, so that not all send to the same shard first."""
        return [(self.index + step) % self.size for step in range(1, self.size)]

    def send_parts(self, heads: Mapping[int, list[memoryview]], bodies: Mapping[int, list[memoryview]]) -> None:
        """Send each of some shards a head and a body, without waiting until they read it; bodies may be large."""
        raise NotImplementedError

    def receive_parts(self, peer: int, parts: list[memoryview]) -> None:
        """Fill some memory with the next bytes of a shard; raise `ShardLostError` if its connection is closed."""
        raise NotImplementedError

    def flush(self) -> None:
        """Wait until all messages are sent, so that arrays in them may be modified."""


def _split_rows(groups: Sequence[RowGroup], size: int) -> list[list[memoryview]]:
    """Return, for each shard, the bytes of its rows of all groups."""
    parts: list[list[memoryview]] = [[] for _ in range(size)]
    for group in groups:
        for column, row_bytes in zip(group.columns, group.row_bytes, strict=True):
            contents = view_bytes(column)
            for part, begin, end in zip(parts, group.begin, group.end, strict=True):
                if end > begin:
                    part.append(contents[begin * row_bytes : end * row_bytes])
    return parts


def _allocate(group: RowGroup, counts: NDArray[np.int64]) -> ReceivedRows:
    """Return arrays for this many rows of each shard."""
    bounds = np.concatenate([[0], counts.cumsum()])
    if group.into is not None:
        return ReceivedRows(list(group.into), bounds)
    return ReceivedRows([np.empty((bounds[-1], *column.shape[1:]), column.dtype) for column in group.columns], bounds)


def _split_received(received: Sequence[ReceivedRows], size: int) -> list[list[memoryview]]:
    """Return the memory for the rows of each shard."""
    bounds = [rows.bounds.tolist() for rows in received]
    groups = [RowGroup(rows.columns, ends[:-1], ends[1:]) for rows, ends in zip(received, bounds, strict=True)]
    return _split_rows(groups, size)
