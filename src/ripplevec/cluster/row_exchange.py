"""Exchange of rows between all shards of a mesh: messages are plain bytes, which no shard has to describe or decode.

A message consists of a head, with the numbers of rows that follow, and of the rows of some arrays. As all shards call
`exchange_rows` with the same types of arrays, the receiver knows the rest, and stores the rows where they are needed.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class RowGroup(NamedTuple):
    """Contiguous arrays with equal numbers of rows, of which shard i receives the rows `begin[i]` to `end[i]` − 1.

    Their types and the shapes of their rows are the same on all shards.
    """

    columns: Sequence[NDArray[Any]]
    begin: Sequence[int]
    end: Sequence[int]
    into: Sequence[NDArray[Any]] | None = None  # contiguous arrays for the received rows; by default, new ones


class ReceivedRows(NamedTuple):
    """The rows of a group that all shards sent to this one, in the order of the shards."""

    columns: Sequence[NDArray[Any]]
    bounds: list[int]  # where the rows of each shard begin, and the end of the last ones

    def repeat_shards(self) -> NDArray[np.int64]:
        """Return the shard of each row."""
        return np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))


def group_rows(columns: Sequence[NDArray[Any]], bounds: list[int] | NDArray[np.int64]) -> RowGroup:
    """Return a group of which each shard receives the rows between two consecutive bounds."""
    ends: list[int] = bounds if isinstance(bounds, list) else bounds.tolist()
    return RowGroup(columns, ends[:-1], ends[1:])


def broadcast_rows(columns: Sequence[NDArray[Any]], size: int) -> RowGroup:
    """Return a group of which every shard receives all rows."""
    return RowGroup(columns, [0] * size, [len(columns[0])] * size)


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
        # The other shards, beginning with the next one, so that not all send to the same shard first.
        self.peers = [(index + step) % size for step in range(1, size)]

    def exchange_rows(
        self, *groups: RowGroup, numbers: Sequence[int] = ()
    ) -> tuple[list[ReceivedRows], NDArray[np.int64]]:
        """Send each shard its rows of some groups, and the same numbers to all.

        Returns the received rows of each group, and the numbers of all shards: a line for each shard. All shards
        receive in the same order, so no two of them wait for each other, however large their messages are.
        """
        head = struct.Struct(f"={len(groups) + len(numbers)}q")
        parts: list[list[memoryview]] = [[] for _ in range(self.size)]
        for group in groups:
            _append_rows(parts, group.columns, group.begin, group.end)
        counts = [[end - begin for begin, end in zip(group.begin, group.end, strict=True)] for group in groups]
        packed = [head.pack(*(count[shard] for count in counts), *numbers) for shard in range(self.size)]
        self.sent += self.send_parts(
            {peer: [memoryview(packed[peer])] for peer in self.peers}, {peer: parts[peer] for peer in self.peers}
        )
        heads = bytearray(packed[self.index] * self.size)
        for peer in range(self.size):
            if peer != self.index:
                self.receive_parts(peer, [memoryview(heads)[peer * head.size : (peer + 1) * head.size]])
        lines = np.frombuffer(heads, np.int64).reshape(self.size, -1)
        targets: list[list[memoryview]] = [[] for _ in range(self.size)]
        received = []
        for group, rows in zip(groups, lines.T.tolist(), strict=False):
            bounds = [0, *accumulate(rows)]
            columns = group.into or [np.empty((bounds[-1], *part.shape[1:]), part.dtype) for part in group.columns]
            _append_rows(targets, columns, bounds[:-1], bounds[1:])
            received.append(ReceivedRows(columns, bounds))
        for shard in range(self.size):
            if shard != self.index:
                self.receive_parts(shard, targets[shard])
        for source, target in zip(parts[self.index], targets[self.index], strict=True):
            target[:] = source
        self.flush()
        return received, lines[:, len(groups) :]

    def send_parts(self, heads: Mapping[int, list[memoryview]], bodies: Mapping[int, list[memoryview]]) -> int:
        """Send each of some shards a head and a body, without waiting until they read it; bodies may be large.

        Returns the bytes of all bodies.
        """
        raise NotImplementedError

    def receive_parts(self, peer: int, parts: list[memoryview]) -> None:
        """Fill some memory with the next bytes of a shard; raise `ShardLostError` if its connection is closed."""
        raise NotImplementedError

    def flush(self) -> None:
        """Wait until all messages are sent, so that arrays in them may be modified."""


def _append_rows(
    parts: list[list[memoryview]], columns: Sequence[NDArray[Any]], begin: Sequence[int], end: Sequence[int]
) -> None:
    """Append the bytes of the rows of each shard, in all columns, to its parts; empty ones are left out."""
    for column in columns:
        if not len(column):
            continue
        contents, size = column.data.cast("B"), column.nbytes // len(column)
        for part, first, last in zip(parts, begin, end, strict=True):
            if last > first:
                part.append(contents[first * size : last * size])
