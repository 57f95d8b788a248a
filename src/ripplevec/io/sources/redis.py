"""Redis Streams as a source: a consumer group whose place is ours to say, and entries forgotten only when durable.

The position is the last entry that was applied, so Redis is told where the group stands each time we connect, and
entries that it delivered into a lost connection or to a consumer that died are simply delivered again, in order. What
another consumer of the group took before that and left lying is claimed and applied late; such entries are listed in
the position until they are acknowledged.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import Any, TypeAlias

from ripplevec.errors import FormatError
from ripplevec.io.messages import decode_messages
from ripplevec.io.protocols import Position, ReadResult
from ripplevec.io.readers.edge_rows import ReadOptions, check_positive_int
from ripplevec.io.redis_client import (
    access_denied_error,
    connection_errors,
    create_redis_client,
    is_access_denied,
    server_address,
)
from ripplevec.io.retry_policy import DEFAULT_PATIENCE, Backoff, retry
from ripplevec.io.sources.files import DEFAULT_BATCH_SIZE

log = logging.getLogger(__name__)

Entry: TypeAlias = tuple[str, dict[str, bytes]]

LONGEST_BLOCK = 2.0
"""Seconds for which Redis is asked to wait for entries in one command."""

PAGE = 1000
"""Pending entries looked at in one command."""


class RedisSource:
    """The entries of a stream, at most `batch_size` at a time (exactly so many with `fixed`), read by one group.

    One group feeds one state. An entry has the fields src, dst[, weight, op, time], or one field `data` with JSON or
    Arrow. Entries that others of the group have left for `claim_idle` seconds are claimed.
    """

    def __init__(
        self,
        url: str,
        *,
        stream: str,
        group: str = "ripplevec",
        consumer: str = "ripplevec",
        batch_size: int = DEFAULT_BATCH_SIZE,
        fixed: bool = False,
        claim_idle: float = 60.0,
        patience: float = DEFAULT_PATIENCE,
        name: str | None = None,
        **options: Any,
    ) -> None:
        self._client = create_redis_client(url)
        self._away = connection_errors()
        self.name = name or f"{server_address(self._client)}/{stream}"
        self._stream, self._group, self._consumer = stream, group, consumer
        self._claims = f"{consumer}.claimed"  # a name of its own: what is under ours has been applied up to `last`
        self._batch_size, self._fixed = check_positive_int("batch_size", batch_size), fixed
        self._claim_idle, self._patience = claim_idle, patience
        self._options = ReadOptions(**options)
        self._backoff = Backoff()
        self._begin("0-0", [])

    def _begin(self, last: str, late: list[str]) -> None:
        self._last = last  # of the entries given out
        self._late = dict.fromkeys(late)  # given out of order, and not known to be forgotten
        self._waiting: list[Entry] = []
        self._given: deque[str] = deque()
        self._synced = False
        self._next_claim = 0.0

    def open(self, position: Position | None) -> None:
        """Tell Redis where the group stands, and forget what had been applied before."""
        place = position or {"last": "0-0", "late": []}
        self._begin(place["last"], place["late"])
        retry(self._sync, self._away, self._patience, self.name)
        retry(self._settle, self._away, self._patience, self.name)

    def read(self, timeout: float) -> ReadResult | None:
        """The next entries; while Redis is away there are none."""
        deadline = time.monotonic() + timeout
        while True:
            left = max(deadline - time.monotonic(), 0.0)
            entries = self._tried(left)
            if entries:
                return self._read(entries)
            if not left:
                return None

    def acknowledge(self, position: Position) -> None:
        """Let Redis forget what was given up to this position; where it is away, when it is back."""
        done = [entry for entry in position["late"] if entry in self._late]
        last = order(position["last"])
        while self._given and order(self._given[0]) <= last:
            done.append(self._given.popleft())
        try:
            self._forget(done)
        except self._away as error:
            self._lost(error)
            self._given.extendleft(reversed([entry for entry in done if entry not in self._late]))
            return
        for entry in position["late"]:
            if order(entry) <= last:  # beyond it, Redis would deliver it again after a restart
                self._late.pop(entry, None)

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()

    # What is there

    def _tried(self, left: float) -> list[Entry]:
        """Entries that there are now or within the time that is left; none where Redis is away."""
        try:
            self._sync()
            return self._claimed() or self._fetched(left)
        except self._away as error:
            self._lost(error)
            time.sleep(min(self._backoff.next(), left))
            return []

    def _read(self, entries: list[Entry]) -> ReadResult:
        items = [(f"{self.name}, entry {number}", fields) for number, fields in entries]
        batch, bad_messages = decode_messages(items, self._options)
        return ReadResult(batch, {"last": self._last, "late": list(self._late)}, bad_messages)

    def _fetched(self, left: float) -> list[Entry]:
        missing = self._batch_size - len(self._waiting)
        if missing:
            wait = max(1, int(1000 * min(left, LONGEST_BLOCK))) if left else None
            self._waiting += self._new_entries(missing, wait)
        if not self._waiting or (self._fixed and len(self._waiting) < self._batch_size):
            return []
        entries, self._waiting = self._waiting, []
        self._last = entries[-1][0]
        self._given += [number for number, _ in entries]
        return entries

    def _new_entries(self, count: int, wait: int | None) -> list[Entry]:
        from redis.exceptions import ResponseError

        try:
            reply: Any = self._client.xreadgroup(
                self._group, self._consumer, {self._stream: ">"}, count=count, block=wait
            )
        except self._away:
            raise
        except ResponseError as error:
            if not str(error).startswith(("NOGROUP", "UNBLOCKED")):
                raise FormatError(f"{self.name}: {error}") from error
            self._synced = False  # the stream was taken away; the next try makes it anew
            time.sleep((wait or 0) / 1000)
            return []
        self._backoff.reset()
        entries = _entries(reply[0][1]) if reply else []
        again = [number for number, _ in entries if number in self._late]
        self._forget(again)
        return [entry for entry in entries if entry[0] not in self._late]

    # Where the group stands

    def _sync(self) -> None:
        """Have the group stand behind the last entry that is here, whatever it was told or delivered before."""
        if self._synced:
            return
        from redis.exceptions import ResponseError

        here = self._waiting[-1][0] if self._waiting else self._last
        try:
            self._client.xgroup_create(self._stream, self._group, here, mkstream=True)
        except self._away as error:
            if is_access_denied(error):
                raise access_denied_error(self._client, error) from error
            raise
        except ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise FormatError(f"{self.name}: {error}") from error
            self._client.xgroup_setid(self._stream, self._group, here)
        self._synced = True

    def _lost(self, error: Exception) -> None:
        if self._synced:
            log.warning("%s is away, trying again: %s", self.name, error)
        self._synced = False

    def _settle(self) -> None:
        """Acknowledge what was applied before the last crash: up to our position, what is pending under our name."""
        start = "-"
        while pending := self._pending(start, self._last, None):
            self._forget([number for number, consumer in pending if consumer == self._consumer or number in self._late])
            start = f"({pending[-1][0]}"

    def _pending(self, start: str, end: str, idle: int | None) -> list[tuple[str, str]]:
        rows: Any = self._client.xpending_range(self._stream, self._group, start, end, PAGE, idle=idle)
        return [(row["message_id"].decode(), row["consumer"].decode()) for row in rows]

    def _forget(self, numbers: list[str]) -> None:
        for first in range(0, len(numbers), PAGE):
            self._client.xack(self._stream, self._group, *numbers[first : first + PAGE])

    # What others left

    def _claimed(self) -> list[Entry]:
        """Now and then: entries that another consumer of the group took and did not acknowledge for long."""
        if time.monotonic() < self._next_claim:
            return []
        self._next_claim = time.monotonic() + self._claim_idle
        idle = int(1000 * self._claim_idle)
        left = [number for number, consumer in self._pending("-", "+", idle) if consumer != self._consumer]
        wanted: list[Any] = [number for number in left if number not in self._late][: self._batch_size]
        if not wanted:
            return []
        log.warning("%s: %d entries were left by others of group %s", self.name, len(wanted), self._group)
        entries = _entries(self._client.xclaim(self._stream, self._group, self._claims, idle, wanted))
        self._late |= dict.fromkeys(number for number, _ in entries)
        return entries


def _entries(reply: Any) -> list[Entry]:
    """Entries as text and bytes; those deleted meanwhile have no fields and are left out."""
    return [
        (number.decode(), {name.decode(errors="replace"): value for name, value in fields.items()})
        for number, fields in reply
        if fields is not None
    ]


def order(number: str) -> tuple[int, int]:
    """What an entry's number is sorted by."""
    first, _, second = number.partition("-")
    return int(first), int(second)
