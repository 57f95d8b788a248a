"""Answers on Ray that nobody has read. Ray prints an error for each that failed and is dropped unread."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from threading import Lock
from typing import Any

import ray

MOST = 64
"""Calls whose answers are kept at most; earlier ones have come to their end."""

_SECONDS = 10.0  # for the answers to come, and for each of them to be read, where a shard is lost


class UnreadAnswers:
    """The answers of the last calls, held until a later call succeeds on every shard.

    Each shard does what it is asked in order, and none that has failed does anything more. So the calls before one that
    succeeded on every shard have succeeded too.
    """

    def __init__(self, shards: int) -> None:
        self._shards, self._numbers, self._lock = shards, count(), Lock()
        self._calls: deque[tuple[int, list[Any]]] = deque(maxlen=MOST)

    def add(self, answers: Sequence[Any]) -> None:
        """Hold the answers of a call."""
        with self._lock:
            self._calls.append((next(self._numbers), list(answers)))

    def release(self, read: Sequence[Any]) -> None:
        """Let go of a call whose answers were read without an error, one of every shard, and of those before it."""
        if len(read) < self._shards:
            return
        with self._lock:
            last = next((number for number, held in reversed(self._calls) if _holds(held, read)), -1)
            while self._calls and self._calls[0][0] <= last:
                self._calls.popleft()

    def read_all(self) -> None:
        """Read everything that is held, so that errors in it are not printed; they are known by now."""
        with self._lock:
            held = [answer for _, answers in self._calls for answer in answers]
            self._calls.clear()
        if held:
            ready, _ = ray.wait(held, num_returns=len(held), timeout=_SECONDS, fetch_local=False)
            for answer in ready:
                with suppress(Exception):
                    ray.get(answer, timeout=_SECONDS)


def _holds(held: Sequence[Any], read: Sequence[Any]) -> bool:
    known = set(held)
    return all(answer in known for answer in read)
