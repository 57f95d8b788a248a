"""The feed as JSON: every message is encoded once for all followers, when the first of them is ready to send it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import NamedTuple

import numpy as np

from ripplevec.changes import Changes
from ripplevec.io.change_messages import encode_message_part, split_points
from ripplevec.service.change_feed import ChangeFeed
from ripplevec.service.responses import NotFiniteError
from ripplevec.service.thread_queue import ThreadQueue

PART_BYTES = 1 << 16
"""About how large a message is: what a follower that does not read holds beside the buffer of its connection."""

KEPT_BYTES = 16 << 20
"""Encoded messages that are kept for other followers."""

_KEPT_BOUNDS = 1024  # batches
_THREADS = 2


class EncodedPart(NamedTuple):
    """A message with changes of a batch, and whether it is the last one of that batch."""

    message: bytes
    last: bool


class EncodedChangeFeed:
    """Messages of a feed by number: followers hold the number of a batch and of its part, nothing else."""

    def __init__(self, feed: ChangeFeed, *, waiting: int, seconds: float) -> None:
        self._feed = feed
        self._queue = ThreadQueue("ripplevec-encoder", threads=_THREADS, waiting=waiting, seconds=seconds)
        self._bounds: OrderedDict[int, list[int]] = OrderedDict()
        self._parts: OrderedDict[tuple[int, int], EncodedPart] = OrderedDict()
        self._held = 0
        self._encoding: dict[tuple[int, int], asyncio.Task[EncodedPart]] = {}

    async def part(self, sequence: int, part: int) -> EncodedPart:
        """A part of a batch; refused with 410 where the batch is no longer kept."""
        number = (sequence, part)
        if (found := self._parts.get(number)) is not None:
            self._parts.move_to_end(number)
            return found
        if (encoding := self._encoding.get(number)) is None:
            encoding = self._encoding[number] = asyncio.create_task(self._encode(number))
            encoding.add_done_callback(lambda task: self._finish(number, task))
        return await asyncio.shield(encoding)  # others may wait for it too

    def close(self) -> None:
        """End the threads."""
        self._queue.close()

    async def _encode(self, number: tuple[int, int]) -> EncodedPart:
        sequence, part = number
        known = self._bounds.get(sequence)
        bounds, encoded = await self._queue.run(_encoded, self._feed, sequence, part, known)
        self._bounds[sequence] = bounds
        self._bounds.move_to_end(sequence)
        if len(self._bounds) > _KEPT_BOUNDS:
            self._bounds.popitem(last=False)
        self._keep(number, encoded)
        return encoded

    def _finish(self, number: tuple[int, int], encoding: asyncio.Task[EncodedPart]) -> None:
        del self._encoding[number]
        if not encoding.cancelled():
            encoding.exception()  # seen, also where nobody waits for it any more

    def _keep(self, number: tuple[int, int], encoded: EncodedPart) -> None:
        self._parts[number] = encoded
        self._held += len(encoded.message)
        while self._held > KEPT_BYTES:
            _, oldest = self._parts.popitem(last=False)
            self._held -= len(oldest.message)


def _encoded(feed: ChangeFeed, sequence: int, part: int, bounds: list[int] | None) -> tuple[list[int], EncodedPart]:
    """A part of a batch that is still kept, and where the batch is cut."""
    changes: Changes = feed.get(sequence)
    if bounds is None:
        bounds = split_points(changes, PART_BYTES)
    if not np.isfinite(changes.vectors[bounds[part] : bounds[part + 1]]).all():
        raise NotFiniteError
    return bounds, EncodedPart(encode_message_part(changes, bounds, part), part + 2 == len(bounds))
