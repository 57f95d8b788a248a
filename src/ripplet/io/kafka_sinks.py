"""Changes and refused messages as messages of Kafka topics."""

from __future__ import annotations

from typing import Any

from ripplet.changes import Changes
from ripplet.io.backoff import PATIENCE, UnreachableError
from ripplet.io.change_messages import change_messages
from ripplet.io.json_sinks import dead_letter
from ripplet.io.kafka_client import client
from ripplet.io.stream import Poison


class _Messages:
    """Messages on their way to a topic, in order; librdkafka sends them again until they have arrived."""

    def __init__(self, servers: str, topic: str, patience: float, config: dict[str, Any] | None) -> None:
        ours = {"enable.idempotence": True, "delivery.timeout.ms": max(1000, int(1000 * patience))}
        self._producer = client("Producer", servers, config, **ours)
        self._name, self._topic, self._patience = f"kafka://{servers}/{topic}", topic, patience
        self._failure: Any = None

    def add(self, message: bytes, key: bytes) -> None:
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
        failure, self._failure = self._failure, None
        if left or failure is not None:
            reason = failure or f"{left:,} messages are still on their way"
            raise UnreachableError(f"{self._name} has not taken what was sent within {self._patience:g} s: {reason}")

    def _delivered(self, error: Any, message: Any) -> None:
        self._failure = self._failure or error


class KafkaSink:
    """A topic to which every batch adds a message (several, where it changed much).

    All have the same key and so go to one partition, where they stay in order.
    """

    def __init__(
        self, servers: str, topic: str, *, patience: float = PATIENCE, config: dict[str, Any] | None = None
    ) -> None:
        self._messages = _Messages(servers, topic, patience, config)

    def write(self, changes: Changes) -> None:
        """Send the messages of one batch."""
        for message in change_messages(changes):
            self._messages.add(message, b"changes")

    def flush(self) -> None:
        """Return once Kafka has all messages."""
        self._messages.send()

    def close(self) -> None:
        """Flush."""
        self.flush()


class KafkaDeadLetters:
    """A topic of messages that held no events, as JSON: source, where, reason, message."""

    def __init__(
        self, servers: str, topic: str, *, patience: float = PATIENCE, config: dict[str, Any] | None = None
    ) -> None:
        self._messages = _Messages(servers, topic, patience, config)

    def refuse(self, source: str, poison: Poison) -> None:
        """Send one message with its reason, and return once it is there."""
        self._messages.add(dead_letter(source, poison), source.encode())
        self._messages.send()

    def close(self) -> None:
        """There is nothing left to send."""
