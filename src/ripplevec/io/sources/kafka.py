"""Kafka as a live source: all partitions of a topic, from the offsets that are part of the saved state."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from typing import Any

from ripplevec.errors import FormatError
from ripplevec.io.brokers import (
    DEFAULT_PATIENCE,
    UnreachableError,
    create_kafka_client,
    import_confluent_kafka,
    log_unreachable,
)
from ripplevec.io.messages import decode_messages
from ripplevec.io.protocols import DEFAULT_READ_SIZE, Position, ReadResult
from ripplevec.io.readers.edge_rows import ReadOptions, check_positive_int

log = logging.getLogger(__name__)

PARTITION_CHECK_INTERVAL = 60.0
"""Seconds between two checks for new partitions."""

CLOSE_TIMEOUT = 3.0
"""Seconds that Kafka has to accept the last offsets when a source is closed."""

PAUSE_AFTER_READS = 2
"""Reads of a partition that are buffered before the partition is paused."""


class KafkaSource:
    """The messages of a topic, JSON or Arrow, at most `batch_size` per read.

    One group feeds one state, which reads all partitions. The position decides where reading resumes; offsets are
    committed to the group for monitoring only. With `fixed`, a read has exactly `batch_size` messages of one partition,
    and the partitions take turns. The order then does not depend on which partition answers first, but a partition
    without messages blocks the others.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        *,
        group: str = "ripplevec",
        batch_size: int = DEFAULT_READ_SIZE,
        fixed: bool = False,
        patience: float = DEFAULT_PATIENCE,
        config: dict[str, Any] | None = None,
        name: str | None = None,
        **options: Any,
    ) -> None:
        self._kafka = import_confluent_kafka()
        self._options = ReadOptions(**options)
        self._batch_size, self._fixed, self._patience = check_positive_int("batch_size", batch_size), fixed, patience
        self.name = name or f"kafka://{servers}/{topic}"
        self._topic = topic
        defaults = {"group.id": group, "enable.auto.commit": False, "auto.offset.reset": "error"}
        self._consumer = create_kafka_client("Consumer", servers, config, **defaults)
        self._reset({}, 0)

    def _reset(self, offsets: dict[int, int], turn: int) -> None:
        self._offsets = offsets  # per partition, the offset after the last message returned
        self._turn = turn  # index of the partition that is next with `fixed`
        self._buffered: dict[int, list[Any]] = {}  # per assigned partition, messages received but not returned
        self._paused: set[int] = set()
        self._next_partition_check = 0.0

    def open(self, position: Position | None) -> None:
        """Start at the offsets of this position; a partition without one starts at its beginning."""
        saved = position or {"offsets": {}, "turn": 0}
        self._consumer.unassign()
        self._reset({int(partition): offset for partition, offset in saved["offsets"].items()}, saved["turn"])
        deadline = time.monotonic() + self._patience
        while not self._assign_new_partitions():
            if time.monotonic() > deadline:
                raise UnreachableError(
                    f"{self.name} has not answered for {self._patience:g} s, or the topic does not exist. "
                    "Check the address and the topic."
                )
            time.sleep(0.1)

    def read(self, timeout: float) -> ReadResult | None:
        """Return the next messages; None while Kafka is unreachable."""
        deadline = time.monotonic() + timeout
        while True:
            left = max(deadline - time.monotonic(), 0.0)
            if time.monotonic() > self._next_partition_check:
                self._assign_new_partitions()
            messages = self._take_buffered() or self._poll(left)
            if messages:
                return self._decode(messages)
            if not left:
                return None

    def acknowledge(self, position: Position) -> None:
        """Commit the offsets of this position to the group."""
        offsets = [
            self._kafka.TopicPartition(self._topic, int(partition), offset)
            for partition, offset in position["offsets"].items()
        ]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=True)
        except self._kafka.KafkaException as error:
            log.warning("offsets not committed source=%s error=%s", self.name, error)

    def close(self) -> None:
        """Close the connections within `CLOSE_TIMEOUT`; librdkafka would wait for an unreachable Kafka."""
        thread = threading.Thread(target=self._close_consumer, name="ripplevec-kafka-close", daemon=True)
        thread.start()
        thread.join(CLOSE_TIMEOUT)
        if thread.is_alive():
            log.warning("last offsets not committed, which loses nothing source=%s error=unreachable", self.name)

    def _close_consumer(self) -> None:
        with suppress(RuntimeError):  # already closed
            self._consumer.close()

    # Partitions

    def _assign_new_partitions(self) -> bool:
        """Assign partitions that have been added; return whether there is any partition."""
        self._next_partition_check = time.monotonic() + PARTITION_CHECK_INTERVAL
        try:
            topics = self._consumer.list_topics(self._topic, timeout=min(5.0, self._patience)).topics
        except self._kafka.KafkaException as error:
            log_unreachable(self.name, error)
            return False
        new_partitions = sorted(topics[self._topic].partitions.keys() - self._buffered.keys())
        beginning = self._kafka.OFFSET_BEGINNING
        self._buffered |= {partition: [] for partition in new_partitions}
        if new_partitions:
            self._consumer.incremental_assign(
                [
                    self._kafka.TopicPartition(self._topic, partition, self._offsets.get(partition, beginning))
                    for partition in new_partitions
                ]
            )
        return bool(self._buffered)

    # Messages

    def _poll(self, left: float) -> list[Any]:
        first = self._consumer.poll(left)
        if first is not None:
            for message in (first, *self._consumer.consume(self._batch_size, 0)):
                self._buffer(message)
        return self._take_buffered()

    def _buffer(self, message: Any) -> None:
        """Buffer a message, and pause its partition if enough are buffered; raise or log if the message is an error."""
        error = message.error()
        if error is None:
            partition = message.partition()
            self._buffered[partition].append(message)
            if len(self._buffered[partition]) >= PAUSE_AFTER_READS * self._batch_size and partition not in self._paused:
                self._paused.add(partition)
                self._consumer.pause([self._kafka.TopicPartition(self._topic, partition)])
        elif error.code() == self._kafka.KafkaError._AUTO_OFFSET_RESET:
            partition = message.partition()
            raise FormatError(
                f"{self.name}: expected messages of partition {partition} from offset {self._offsets.get(partition)} "
                f"on, but they no longer exist, or the topic has been replaced ({error.str()}). "
                "Read the topic as a source with another name."
            )
        elif error.fatal():
            raise FormatError(f"{self.name}: {error.str()}")
        else:
            log.warning("Kafka consumer error source=%s error=%s", self.name, error.str())

    def _take_buffered(self) -> list[Any]:
        """Remove and return the buffered messages of the next read."""
        if self._fixed:
            partitions = sorted(self._buffered)
            partition = partitions[self._turn % len(partitions)]
            if len(self._buffered[partition]) < self._batch_size:
                return []
            self._turn = (self._turn + 1) % len(partitions)
            return self._take_from_partition(partition, self._batch_size)
        messages: list[Any] = []
        for partition in sorted(self._buffered):
            messages += self._take_from_partition(partition, self._batch_size - len(messages))
        return messages

    def _take_from_partition(self, partition: int, count: int) -> list[Any]:
        buffered = self._buffered[partition]
        messages, self._buffered[partition] = buffered[:count], buffered[count:]
        if messages:
            self._offsets[partition] = messages[-1].offset() + 1
        if partition in self._paused and len(self._buffered[partition]) < self._batch_size:
            self._paused.remove(partition)
            self._consumer.resume([self._kafka.TopicPartition(self._topic, partition)])
        return messages

    def _decode(self, messages: list[Any]) -> ReadResult:
        items = [
            (f"{self.name}, partition {message.partition()}, offset {message.offset()}", message.value() or b"")
            for message in messages
        ]
        decoded = decode_messages(items, self._options)
        offsets = {str(partition): offset for partition, offset in sorted(self._offsets.items())}
        position = {"offsets": offsets, "turn": self._turn}
        return ReadResult(decoded.batch, position, decoded.bad_messages, decoded.attributes)
