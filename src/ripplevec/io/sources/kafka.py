"""Kafka as a source: every partition of a topic, from the offsets that are kept with our state."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from typing import Any

from ripplevec.errors import FormatError
from ripplevec.io.kafka_client import create_kafka_client, import_confluent_kafka
from ripplevec.io.messages import decode_messages
from ripplevec.io.protocols import Position, ReadResult
from ripplevec.io.readers.edge_rows import ReadOptions, check_positive_int
from ripplevec.io.retry_policy import DEFAULT_PATIENCE, UnreachableError
from ripplevec.io.sources.files import DEFAULT_BATCH_SIZE

log = logging.getLogger(__name__)

PARTITION_CHECK_INTERVAL = 60.0
"""Seconds between two looks for new partitions."""

CLOSE_TIMEOUT = 3.0
"""Seconds that Kafka has to take the last offsets when a source is closed."""

PAUSE_AFTER_READS = 2
"""Reads of a partition that wait here before Kafka is asked to pause it."""


class KafkaSource:
    """The messages of a topic, at most `batch_size` at a time, JSON or Arrow.

    One group feeds one state, which takes every partition; the offsets that it commits are for others to look at, as
    the position decides where it goes on. With `fixed`, a read is exactly `batch_size` messages of one partition, the
    partitions taking turns: the order does not depend on which of them answers first, but a silent one holds up all.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        *,
        group: str = "ripplevec",
        batch_size: int = DEFAULT_BATCH_SIZE,
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
        ours = {"group.id": group, "enable.auto.commit": False, "auto.offset.reset": "error"}
        self._consumer = create_kafka_client("Consumer", servers, config, **ours)
        self._begin({}, 0)

    def _begin(self, offsets: dict[int, int], turn: int) -> None:
        self._offsets, self._turn = offsets, turn  # behind the messages given out; the partition that is next
        self._waiting: dict[int, list[Any]] = {}
        self._paused: set[int] = set()
        self._next_look = 0.0

    def open(self, position: Position | None) -> None:
        """Begin at the offsets of this position; a partition that it does not know, at its beginning."""
        place = position or {"offsets": {}, "turn": 0}
        self._consumer.unassign()
        self._begin({int(partition): offset for partition, offset in place["offsets"].items()}, place["turn"])
        deadline = time.monotonic() + self._patience
        while not self._look():
            if time.monotonic() > deadline:
                raise UnreachableError(f"{self.name} has not answered for {self._patience:g} s, or has no such topic")
            time.sleep(0.1)

    def read(self, timeout: float) -> ReadResult | None:
        """The next messages; while Kafka is away there are none."""
        deadline = time.monotonic() + timeout
        while True:
            left = max(deadline - time.monotonic(), 0.0)
            if time.monotonic() > self._next_look:
                self._look()
            messages = self._next() or self._asked(left)
            if messages:
                return self._read(messages)
            if not left:
                return None

    def acknowledge(self, position: Position) -> None:
        """Tell the group how far we are."""
        known = [
            self._kafka.TopicPartition(self._topic, int(partition), offset)
            for partition, offset in position["offsets"].items()
        ]
        try:
            self._consumer.commit(offsets=known, asynchronous=True)
        except self._kafka.KafkaException as error:
            log.warning("%s: offsets were not committed: %s", self.name, error)

    def close(self) -> None:
        """Let go of the connections, soon: librdkafka would wait for a Kafka that is away to take offsets."""
        closing = threading.Thread(target=self._close, name="ripplevec-kafka-close", daemon=True)
        closing.start()
        closing.join(CLOSE_TIMEOUT)
        if closing.is_alive():
            log.warning("%s is away; the offsets of the last reads were not committed, and are not needed", self.name)

    def _close(self) -> None:
        with suppress(RuntimeError):  # closed already
            self._consumer.close()

    # Which partitions there are

    def _look(self) -> bool:
        """Take in the partitions that are new; whether there are any at all."""
        self._next_look = time.monotonic() + PARTITION_CHECK_INTERVAL
        try:
            topics = self._consumer.list_topics(self._topic, timeout=min(5.0, self._patience)).topics
        except self._kafka.KafkaException as error:
            log.warning("%s is away: %s", self.name, error)
            return False
        there = topics[self._topic].partitions
        new = sorted(there.keys() - self._waiting.keys())
        begin = self._kafka.OFFSET_BEGINNING
        self._waiting |= {partition: [] for partition in new}
        if new:
            self._consumer.incremental_assign(
                [self._kafka.TopicPartition(self._topic, one, self._offsets.get(one, begin)) for one in new]
            )
        return bool(self._waiting)

    # What is there

    def _asked(self, left: float) -> list[Any]:
        first = self._consumer.poll(left)
        if first is not None:
            for message in (first, *self._consumer.consume(self._batch_size, 0)):
                self._keep(message)
        return self._next()

    def _keep(self, message: Any) -> None:
        error = message.error()
        if error is None:
            partition = message.partition()
            self._waiting[partition].append(message)
            if len(self._waiting[partition]) >= PAUSE_AFTER_READS * self._batch_size and partition not in self._paused:
                self._paused.add(partition)
                self._consumer.pause([self._kafka.TopicPartition(self._topic, partition)])
        elif error.code() == self._kafka.KafkaError._AUTO_OFFSET_RESET:
            partition = message.partition()
            raise FormatError(
                f"{self.name}: expected messages of partition {partition} from {self._offsets.get(partition)} on, but "
                f"they are not there any more, or not the same topic ({error.str()})"
            )
        elif error.fatal():
            raise FormatError(f"{self.name}: {error.str()}")
        else:
            log.warning("%s: %s", self.name, error.str())

    def _next(self) -> list[Any]:
        """The messages of the next read, as far as they have come."""
        if self._fixed:
            order = sorted(self._waiting)
            partition = order[self._turn % len(order)]
            if len(self._waiting[partition]) < self._batch_size:
                return []
            self._turn = (self._turn + 1) % len(order)
            return self._taken(partition, self._batch_size)
        taken: list[Any] = []
        for partition in sorted(self._waiting):
            taken += self._taken(partition, self._batch_size - len(taken))
        return taken

    def _taken(self, partition: int, count: int) -> list[Any]:
        waiting = self._waiting[partition]
        taken, self._waiting[partition] = waiting[:count], waiting[count:]
        if taken:
            self._offsets[partition] = taken[-1].offset() + 1
        if partition in self._paused and len(self._waiting[partition]) < self._batch_size:
            self._paused.remove(partition)
            self._consumer.resume([self._kafka.TopicPartition(self._topic, partition)])
        return taken

    def _read(self, messages: list[Any]) -> ReadResult:
        items = [
            (f"{self.name}, partition {message.partition()}, offset {message.offset()}", message.value() or b"")
            for message in messages
        ]
        batch, bad_messages = decode_messages(items, self._options)
        offsets = {str(partition): offset for partition, offset in sorted(self._offsets.items())}
        return ReadResult(batch, {"offsets": offsets, "turn": self._turn}, bad_messages)
