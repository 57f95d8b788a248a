"""Redis Streams as a live source: a consumer group whose position is part of the saved state.

The position is the last entry that was applied. Every connection sets the position of the group in Redis, so entries
that were delivered into a lost connection, or to a consumer that died, are delivered again in order. Entries that
another consumer of the group received before that and never acknowledged are claimed and applied late; they are listed
in the position until they are acknowledged.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import Any, TypeAlias

from ripplevec.errors import FormatError
from ripplevec.io.brokers import (
    DEFAULT_PATIENCE,
    Backoff,
    access_denied_error,
    connection_errors,
    create_redis_client,
    is_access_denied,
    log_unreachable,
    retry,
    server_address,
)
from ripplevec.io.messages import decode_messages
from ripplevec.io.protocols import DEFAULT_READ_SIZE, Position, ReadResult
from ripplevec.io.readers.edge_rows import ReadOptions, check_positive_int

log = logging.getLogger(__name__)

StreamEntry: TypeAlias = tuple[str, dict[str, bytes]]
"""Entry id and fields."""

MAX_BLOCK_SECONDS = 2.0
"""Longest time for which one command asks Redis to wait for entries."""

PAGE_SIZE = 1000
"""Entries listed or acknowledged in one command."""


class RedisSource:
    """The entries of a stream, at most `batch_size` per read (exactly as many with `fixed`), read by one group.

    One group feeds one state. An entry has the fields src, dst[, weight, op, time], or one field `data` with JSON or
    Arrow. Entries that other consumers of the group have not acknowledged for `claim_idle` seconds are claimed.
    """

    def __init__(
        self,
        url: str,
        *,
        stream: str,
        group: str = "ripplevec",
        consumer: str = "ripplevec",
        batch_size: int = DEFAULT_READ_SIZE,
        fixed: bool = False,
        claim_idle: float = 60.0,
        patience: float = DEFAULT_PATIENCE,
        name: str | None = None,
        **options: Any,
    ) -> None:
        self._client = create_redis_client(url)
        self._connection_errors = connection_errors()
        self.name = name or f"{server_address(self._client)}/{stream}"
        self._stream, self._group, self._consumer = stream, group, consumer
        # Claimed entries get a separate consumer: every entry of `consumer` up to the position counts as applied.
        self._claim_consumer = f"{consumer}.claimed"
        self._batch_size, self._fixed = check_positive_int("batch_size", batch_size), fixed
        self._claim_idle, self._patience = claim_idle, patience
        self._options = ReadOptions(**options)
        self._backoff = Backoff()
        self._reset("0-0", [])

    def _reset(self, last: str, late: list[str]) -> None:
        self._last = last  # last entry returned in order
        self._late = dict.fromkeys(late)  # claimed entries returned out of order and not known to be acknowledged
        self._pending: list[StreamEntry] = []  # received, not yet returned
        self._unacknowledged: deque[str] = deque()  # returned in order, not yet acknowledged
        self._synced = False  # whether Redis has the position of the group
        self._next_claim = 0.0

    def open(self, position: Position | None) -> None:
        """Set the position of the group in Redis, and acknowledge entries that were applied before."""
        saved = position or {"last": "0-0", "late": []}
        self._reset(saved["last"], saved["late"])
        retry(self._sync_group, self._connection_errors, self._patience, self.name)
        retry(self._acknowledge_applied, self._connection_errors, self._patience, self.name)

    def read(self, timeout: float) -> ReadResult | None:
        """Return the next entries; None while Redis is unreachable."""
        deadline = time.monotonic() + timeout
        while True:
            left = max(deadline - time.monotonic(), 0.0)
            entries = self._poll(left)
            if entries:
                return self._decode(entries)
            if not left:
                return None

    def acknowledge(self, position: Position) -> None:
        """Acknowledge the entries up to this position; if Redis is unreachable, later."""
        entry_ids = [entry_id for entry_id in position["late"] if entry_id in self._late]
        last = entry_sort_key(position["last"])
        while self._unacknowledged and entry_sort_key(self._unacknowledged[0]) <= last:
            entry_ids.append(self._unacknowledged.popleft())
        try:
            self._send_acknowledgement(entry_ids)
        except self._connection_errors as error:
            self._note_lost_connection(error)
            in_order = [entry_id for entry_id in entry_ids if entry_id not in self._late]
            self._unacknowledged.extendleft(reversed(in_order))
            return
        for entry_id in position["late"]:
            if entry_sort_key(entry_id) <= last:  # a later one would be delivered again after a restart
                self._late.pop(entry_id, None)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    # Reading entries

    def _poll(self, left: float) -> list[StreamEntry]:
        """Return entries that arrive within the remaining time; none if Redis is unreachable."""
        try:
            self._sync_group()
            return self._claim_abandoned() or self._next_entries(left)
        except self._connection_errors as error:
            self._note_lost_connection(error)
            time.sleep(min(self._backoff.next_delay(), left))
            return []

    def _decode(self, entries: list[StreamEntry]) -> ReadResult:
        items = [(f"{self.name}, entry {entry_id}", fields) for entry_id, fields in entries]
        decoded = decode_messages(items, self._options)
        position = {"last": self._last, "late": list(self._late)}
        return ReadResult(decoded.batch, position, decoded.bad_messages, decoded.attributes)

    def _next_entries(self, left: float) -> list[StreamEntry]:
        missing = self._batch_size - len(self._pending)
        if missing:
            block_ms = max(1, int(1000 * min(left, MAX_BLOCK_SECONDS))) if left else None
            self._pending += self._fetch(missing, block_ms)
        if not self._pending or (self._fixed and len(self._pending) < self._batch_size):
            return []
        entries, self._pending = self._pending, []
        self._last = entries[-1][0]
        self._unacknowledged += [entry_id for entry_id, _ in entries]
        return entries

    def _fetch(self, count: int, block_ms: int | None) -> list[StreamEntry]:
        """Read new entries of the group; late entries that are delivered again are acknowledged and left out."""
        from redis.exceptions import ResponseError

        try:
            reply: Any = self._client.xreadgroup(
                self._group, self._consumer, {self._stream: ">"}, count=count, block=block_ms
            )
        except self._connection_errors:
            raise
        except ResponseError as error:
            if not str(error).startswith(("NOGROUP", "UNBLOCKED")):
                raise FormatError(f"{self.name}: {error}") from error
            self._synced = False  # the stream was deleted; the next attempt creates it again
            time.sleep((block_ms or 0) / 1000)
            return []
        self._backoff.reset()
        entries = _parse_entries(reply[0][1]) if reply else []
        self._send_acknowledgement([entry_id for entry_id, _ in entries if entry_id in self._late])
        return [entry for entry in entries if entry[0] not in self._late]

    # Position of the group

    def _sync_group(self) -> None:
        """Set the group's position to the last entry received here; later entries are delivered again."""
        if self._synced:
            return
        from redis.exceptions import ResponseError

        last_received = self._pending[-1][0] if self._pending else self._last
        try:
            self._client.xgroup_create(self._stream, self._group, last_received, mkstream=True)
        except self._connection_errors as error:
            if is_access_denied(error):
                raise access_denied_error(self._client, error) from error
            raise
        except ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise FormatError(f"{self.name}: {error}") from error
            self._client.xgroup_setid(self._stream, self._group, last_received)
        self._synced = True

    def _note_lost_connection(self, error: Exception) -> None:
        if self._synced:
            log_unreachable(self.name, error)
        self._synced = False

    def _acknowledge_applied(self) -> None:
        """Acknowledge the entries up to the position that this source received or claimed: they are applied."""
        start = "-"
        while pending := self._list_pending(start, self._last, None):
            self._send_acknowledgement(
                [entry_id for entry_id, consumer in pending if consumer == self._consumer or entry_id in self._late]
            )
            start = f"({pending[-1][0]}"

    def _list_pending(self, start: str, end: str, idle_ms: int | None) -> list[tuple[str, str]]:
        """Return id and consumer of entries that were delivered and not acknowledged."""
        rows: Any = self._client.xpending_range(self._stream, self._group, start, end, PAGE_SIZE, idle=idle_ms)
        return [(row["message_id"].decode(), row["consumer"].decode()) for row in rows]

    def _send_acknowledgement(self, entry_ids: list[str]) -> None:
        for first in range(0, len(entry_ids), PAGE_SIZE):
            self._client.xack(self._stream, self._group, *entry_ids[first : first + PAGE_SIZE])

    # Entries abandoned by other consumers

    def _claim_abandoned(self) -> list[StreamEntry]:
        """Claim, every `claim_idle` seconds, entries that another consumer has not acknowledged for that long."""
        if time.monotonic() < self._next_claim:
            return []
        self._next_claim = time.monotonic() + self._claim_idle
        idle_ms = int(1000 * self._claim_idle)
        pending = self._list_pending("-", "+", idle_ms)
        abandoned = [entry_id for entry_id, consumer in pending if consumer != self._consumer]
        wanted: list[Any] = [entry_id for entry_id in abandoned if entry_id not in self._late][: self._batch_size]
        if not wanted:
            return []
        log.warning("entries claimed source=%s group=%s count=%d", self.name, self._group, len(wanted))
        reply = self._client.xclaim(self._stream, self._group, self._claim_consumer, idle_ms, wanted)
        entries = _parse_entries(reply)
        self._late |= dict.fromkeys(entry_id for entry_id, _ in entries)
        return entries


def _parse_entries(reply: Any) -> list[StreamEntry]:
    """Return entries with text ids and names; entries deleted in the meantime have no fields and are dropped."""
    return [
        (entry_id.decode(), {name.decode(errors="replace"): value for name, value in fields.items()})
        for entry_id, fields in reply
        if fields is not None
    ]


def entry_sort_key(entry_id: str) -> tuple[int, int]:
    """Return the numbers by which Redis orders entry ids."""
    milliseconds, _, sequence = entry_id.partition("-")
    return int(milliseconds), int(sequence)
