"""Changes and refused messages as messages of Kafka topics."""

from __future__ import annotations

from typing import Any

from ripplevec.changes import Changes
from ripplevec.io.change_messages import encode_change_messages
from ripplevec.io.kafka_client import create_kafka_client, import_confluent_kafka
from ripplevec.io.protocols import BadMessage
from ripplevec.io.retry_policy import DEFAULT_PATIENCE, OutageTimer, UnreachableError
from ripplevec.io.sinks.jsonl import dead_letter

CHECK_TIMEOUT = 1.0
"""Seconds that Kafka has to answer while there is nothing to send."""


class _Messages:
    """Messages on their way to a topic, in order; librdkafka sends them again until they have arrived."""

    def __init__(self, servers: str, topic: str, patience: float, config: dict[str, Any] | None) -> None:
        ours = {"enable.idempotence": True, "delivery.timeout.ms": max(1000, int(1000 * patience))}
        self._producer = create_kafka_client("Producer", servers, config, **ours)
        self._name, self._topic, self._patience = f"kafka://{servers}/{topic}", topic, patience
        self._failure: Any = None
        self._sending = False  # whether messages were added since the last `send`
        self._absence, self._unreachable = OutageTimer(self._name, patience), import_confluent_kafka().KafkaException

    def add(self, message: bytes, key: bytes) -> None:
        self._sending = True
        while True:
            try:
                self._producer.produce(self._topic, message, key, on_delivery=self._delivered)
                self._producer.poll(0)
                return
            except BufferError:  # as many are on their way as it holds
                self.send()

    def send(self) -> None:
        """Return once Kafka has them all."""
        left = self._producer.flush(self._patience)
        failure, self._failure, self._sending = self._failure, None, False
        if left or failure is not None:
            reason = failure or f"{left:,} messages are still on their way"
            raise UnreachableError(f"{self._name} has not taken what was sent within {self._patience:g} s: {reason}")

    def check(self) -> None:
        """Ask Kafka for a sign of life, unless messages are on their way; an error once it has been away too long."""
        if self._sending:
            return
        try:
            self._producer.list_topics(self._topic, timeout=min(CHECK_TIMEOUT, self._patience))
        except self._unreachable as error:
            self._absence.record_failure(error)
        else:
            self._absence.record_success()

    def _delivered(self, error: Any, message: Any) -> None:
        self._failure = self._failure or error


class KafkaSink:
    """A topic to which every batch adds a message (several, where it changed much).

    All have the same key and so go to one partition, where they stay in order.
    """

    def __init__(
        self, servers: str, topic: str, *, patience: float = DEFAULT_PATIENCE, config: dict[str, Any] | None = None
    ) -> None:
        self._messages = _Messages(servers, topic, patience, config)

    def write(self, changes: Changes) -> None:
        """Send the messages of one batch."""
        for message in encode_change_messages(changes):
            self._messages.add(message, b"changes")

    def flush(self) -> None:
        """Return once Kafka has all messages; without any, see whether it is there."""
        self._messages.check()
        self._messages.send()

    def close(self) -> None:
        """Send what is on its way."""
        self._messages.send()


class KafkaDeadLetters:
    """A topic of messages that held no events, as JSON: source, where, reason, message."""

    def __init__(
        self, servers: str, topic: str, *, patience: float = DEFAULT_PATIENCE, config: dict[str, Any] | None = None
    ) -> None:
        self._messages = _Messages(servers, topic, patience, config)

    def record(self, source: str, bad_message: BadMessage) -> None:
        """Send one message with its reason, and return once it is there."""
        self._messages.add(dead_letter(source, bad_message), source.encode())
        self._messages.send()

    def close(self) -> None:
        """There is nothing left to send."""
