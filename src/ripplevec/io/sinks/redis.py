"""Redis sinks: changes and rejected messages as entries of a Redis Stream."""

from __future__ import annotations

from typing import Any

from ripplevec.changes import Changes
from ripplevec.io.brokers import (
    DEFAULT_PATIENCE,
    OutageTimer,
    access_denied_error,
    connection_errors,
    create_redis_client,
    is_access_denied,
    retry,
    server_address,
)
from ripplevec.io.change_messages import encode_change_messages
from ripplevec.io.protocols import BadMessage
from ripplevec.io.sinks.jsonl import dead_letter_fields

MAX_QUEUED_BYTES = 1 << 23
"""Largest number of bytes queued; once it is exceeded, the sink flushes by itself."""


class _EntryQueue:
    """Entries for a stream, kept until Redis has received them all."""

    def __init__(self, url: str, stream: str, maxlen: int | None, patience: float) -> None:
        self._client = create_redis_client(url)
        self._name = f"{server_address(self._client)}/{stream}"
        self._stream, self._maxlen, self._patience = stream, maxlen, patience
        self._outage = OutageTimer(self._name, patience)
        self._entries: list[dict[Any, Any]] = []

    def add(self, fields: dict[str, bytes | str | int]) -> None:
        self._entries.append(fields)

    def deliver(self) -> None:
        """Return once Redis has all entries; entries sent into a lost connection are sent again."""
        if self._entries:
            retry(self._send_entries, connection_errors(), self._patience, self._name)
            self._entries = []
            self._outage.record_success()

    def check_connection(self) -> None:
        """Raise if Redis has been unreachable for too long; skipped while entries are queued."""
        if self._entries:
            return
        try:
            self._client.ping()
        except connection_errors() as error:
            self._outage.record_failure(error)
        else:
            self._outage.record_success()

    def _send_entries(self) -> None:
        with self._client.pipeline(transaction=False) as pipe:
            for fields in self._entries:
                pipe.xadd(self._stream, fields, maxlen=self._maxlen)
            try:
                pipe.execute()
            except connection_errors() as error:
                if is_access_denied(error):
                    raise access_denied_error(self._client, error) from error
                raise

    def close(self) -> None:
        self._client.close()


class RedisSink:
    """A stream to which every batch adds an entry with the fields `sequence` and `data` (JSON).

    A batch with many changes adds several entries. With `maxlen`, Redis keeps about that many entries.
    """

    def __init__(self, url: str, *, stream: str, maxlen: int | None = None, patience: float = DEFAULT_PATIENCE) -> None:
        self._queue, self._queued_bytes = _EntryQueue(url, stream, maxlen, patience), 0

    def write(self, changes: Changes) -> None:
        """Queue the entries of one batch."""
        for message in encode_change_messages(changes):
            self._queue.add({"sequence": int(changes.sequence), "data": message})
            self._queued_bytes += len(message)
        if self._queued_bytes > MAX_QUEUED_BYTES:
            self.flush()

    def flush(self) -> None:
        """Return once Redis has all entries; if there are none, check the connection."""
        self._queue.check_connection()
        self._queue.deliver()
        self._queued_bytes = 0

    def close(self) -> None:
        """Deliver the queued entries and close the connection."""
        try:
            self._queue.deliver()
        finally:
            self._queue.close()


class RedisDeadLetters:
    """A stream of rejected messages with the fields `source`, `where`, `reason`, `message`."""

    def __init__(self, url: str, *, stream: str, maxlen: int | None = None, patience: float = DEFAULT_PATIENCE) -> None:
        self._queue = _EntryQueue(url, stream, maxlen, patience)

    def record(self, source: str, bad_message: BadMessage) -> None:
        """Add one message with its reason; return once Redis has received it."""
        fields = dead_letter_fields(source, bad_message)
        self._queue.add({name: text.encode(errors="backslashreplace") for name, text in fields.items()})
        self._queue.deliver()

    def close(self) -> None:
        """Close the connection."""
        self._queue.close()
