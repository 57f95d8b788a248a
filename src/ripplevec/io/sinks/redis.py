"""Changes and refused messages as entries of Redis Streams."""

from __future__ import annotations

from typing import Any

from ripplevec.changes import Changes
from ripplevec.io.change_messages import encode_change_messages
from ripplevec.io.protocols import BadMessage
from ripplevec.io.redis_client import (
    access_denied_error,
    connection_errors,
    create_redis_client,
    is_access_denied,
    server_address,
)
from ripplevec.io.retry_policy import DEFAULT_PATIENCE, OutageTimer, retry

MAX_QUEUED_BYTES = 1 << 23
"""What waits for a flush at most; then it is sent without one."""


class _Entries:
    """Entries on their way to a stream, kept until Redis has them all."""

    def __init__(self, url: str, stream: str, maxlen: int | None, patience: float) -> None:
        self._client = create_redis_client(url)
        self._name = f"{server_address(self._client)}/{stream}"
        self._stream, self._maxlen, self._patience = stream, maxlen, patience
        self._absence = OutageTimer(self._name, patience)
        self._waiting: list[dict[Any, Any]] = []

    def add(self, fields: dict[str, bytes | str | int]) -> None:
        self._waiting.append(fields)

    def send(self) -> None:
        """Return once Redis has them; those sent into a lost connection are sent again."""
        if self._waiting:
            retry(self._try, connection_errors(), self._patience, self._name)
            self._waiting = []
            self._absence.record_success()

    def check(self) -> None:
        """Ask Redis for a sign of life, unless entries wait for it; an error once it has been away for too long."""
        if self._waiting:
            return
        try:
            self._client.ping()
        except connection_errors() as error:
            self._absence.record_failure(error)
        else:
            self._absence.record_success()

    def _try(self) -> None:
        with self._client.pipeline(transaction=False) as pipe:
            for fields in self._waiting:
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
    """A stream to which every batch adds an entry (several, where it changed much): `sequence`, and `data` as JSON.

    With `maxlen`, Redis keeps about so many entries.
    """

    def __init__(self, url: str, *, stream: str, maxlen: int | None = None, patience: float = DEFAULT_PATIENCE) -> None:
        self._entries, self._size = _Entries(url, stream, maxlen, patience), 0

    def write(self, changes: Changes) -> None:
        """Have the entries of one batch ready to be sent."""
        for message in encode_change_messages(changes):
            self._entries.add({"sequence": int(changes.sequence), "data": message})
            self._size += len(message)
        if self._size > MAX_QUEUED_BYTES:
            self.flush()

    def flush(self) -> None:
        """Return once Redis has all entries; without any, see whether it is there."""
        self._entries.check()
        self._entries.send()
        self._size = 0

    def close(self) -> None:
        """Send what waits, and let go of the connection."""
        try:
            self._entries.send()
        finally:
            self._entries.close()


class RedisDeadLetters:
    """A stream of messages that held no events: `source`, `where`, `reason`, `message`."""

    def __init__(self, url: str, *, stream: str, maxlen: int | None = None, patience: float = DEFAULT_PATIENCE) -> None:
        self._entries = _Entries(url, stream, maxlen, patience)

    def record(self, source: str, bad_message: BadMessage) -> None:
        """Add one message with its reason."""
        fields = {
            "source": source,
            "where": bad_message.where,
            "reason": bad_message.reason,
            "message": bad_message.message,
        }
        self._entries.add({name: text.encode(errors="backslashreplace") for name, text in fields.items()})
        self._entries.send()

    def close(self) -> None:
        """Let go of the connection."""
        self._entries.close()
