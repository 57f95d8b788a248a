"""Kafka sinks: changes and rejected messages as messages of a topic."""

from __future__ import annotations

from typing import Any

from ripplevec.changes import Changes
from ripplevec.io.brokers import (
    DEFAULT_PATIENCE,
    OutageTimer,
    UnreachableError,
    create_kafka_client,
    import_confluent_kafka,
)
from ripplevec.io.change_messages import encode_change_messages
from ripplevec.io.protocols import BadMessage
from ripplevec.io.sinks.jsonl import encode_dead_letter

CHECK_TIMEOUT = 1.0
"""Seconds that Kafka has to answer a check while there is nothing to send."""


class _MessageQueue:
    """Messages for a topic, sent in order; librdkafka retries until they are delivered."""

    def __init__(self, servers: str, topic: str, patience: float, config: dict[str, Any] | None) -> None:
        defaults = {"enable.idempotence": True, "delivery.timeout.ms": max(1000, int(1000 * patience))}
        self._producer = create_kafka_client("Producer", servers, config, **defaults)
        self._name, self._topic, self._patience = f"kafka://{servers}/{topic}", topic, patience
        self._failure: Any = None  # first delivery error since the last `deliver`
        self._has_undelivered = False  # whether messages were added since the last `deliver`
        self._outage, self._kafka_error = OutageTimer(self._name, patience), import_confluent_kafka().KafkaException

    def add(self, message: bytes, key: bytes) -> None:
        self._has_undelivered = True
        while True:
            try:
                self._producer.produce(self._topic, message, key, on_delivery=self._on_delivery)
                self._producer.poll(0)
                return
            except BufferError:  # librdkafka's queue is full
                self.deliver()

    def deliver(self) -> None:
        """Return once Kafka has received all messages."""
        undelivered = self._producer.flush(self._patience)
        failure, self._failure, self._has_undelivered = self._failure, None, False
        if undelivered or failure is not None:
            reason = failure or f"{undelivered:,} messages are not delivered"
            raise UnreachableError(f"{self._name} has not accepted all messages within {self._patience:g} s: {reason}")

    def check_connection(self) -> None:
        """Raise if Kafka has been unreachable for too long; skipped while messages are being delivered."""
        if self._has_undelivered:
            return
        try:
            self._producer.list_topics(self._topic, timeout=min(CHECK_TIMEOUT, self._patience))
        except self._kafka_error as error:
            self._outage.record_failure(error)
        else:
            self._outage.record_success()

    def _on_delivery(self, error: Any, message: Any) -> None:
        self._failure = self._failure or error


class KafkaSink:
    """A topic to which every batch adds a message (several messages if it has many changes).

    All messages have the same key, so they go to one partition and stay in order.
    """

    def __init__(
        self, servers: str, topic: str, *, patience: float = DEFAULT_PATIENCE, config: dict[str, Any] | None = None
    ) -> None:
        self._queue = _MessageQueue(servers, topic, patience, config)

    def write(self, changes: Changes) -> None:
        """Queue the messages of one batch."""
        for message in encode_change_messages(changes):
            self._queue.add(message, b"changes")

    def flush(self) -> None:
        """Return once Kafka has all messages; if there are none, check the connection."""
        self._queue.check_connection()
        self._queue.deliver()

    def close(self) -> None:
        """Deliver the queued messages."""
        self._queue.deliver()


class KafkaDeadLetters:
    """A topic of rejected messages as JSON: source, where, reason, message."""

    def __init__(
        self, servers: str, topic: str, *, patience: float = DEFAULT_PATIENCE, config: dict[str, Any] | None = None
    ) -> None:
        self._queue = _MessageQueue(servers, topic, patience, config)

    def record(self, source: str, bad_message: BadMessage) -> None:
        """Send one message with its reason; return once Kafka has received it."""
        self._queue.add(encode_dead_letter(source, bad_message), source.encode())
        self._queue.deliver()

    def close(self) -> None:
        """Do nothing: every message has been delivered."""
