"""Kafka sinks with the mock cluster of librdkafka: delivery, full queues, outages, rejected messages."""

from __future__ import annotations

import json
import time

import pytest

from ripplevec.io.brokers import UnreachableError
from ripplevec.io.change_messages import changes_to_dict
from ripplevec.io.protocols import BadMessage
from ripplevec.io.sinks.kafka import KafkaDeadLetters, KafkaSink

kafka = pytest.importorskip("confluent_kafka", reason="not installed: pip install '.[kafka]'")

PARTITIONS = 4  # of every topic of the mock cluster
QUIET = {"log_level": 0}


@pytest.fixture
def receive(kafka_servers, topic):
    """Return a function that reads a number of messages from the topic; it fails after a minute."""

    def receive_messages(count):
        consumer = kafka.Consumer({"bootstrap.servers": kafka_servers, "group.id": "test"})
        consumer.assign([kafka.TopicPartition(topic, number, kafka.OFFSET_BEGINNING) for number in range(PARTITIONS)])
        messages, deadline = [], time.monotonic() + 60
        while len(messages) < count:
            assert time.monotonic() < deadline
            messages += [message for message in consumer.consume(count, 0.5) if message.error() is None]
        consumer.close()
        return messages

    return receive_messages


def test_kafka_sink_flush_delivers_changes_in_order_to_one_partition(kafka_servers, topic, receive, changes_of):
    sink = KafkaSink(kafka_servers, topic)
    batches = [changes_of(["a", "b"], removed=["c"], sequence=sequence) for sequence in range(1, 21)]
    for changes in batches:
        sink.write(changes)
    sink.flush()
    messages = receive(20)
    assert [json.loads(message.value()) for message in messages] == [changes_to_dict(changes) for changes in batches]
    assert len({message.partition() for message in messages}) == 1
    assert {message.key() for message in messages} == {b"changes"}
    sink.close()


def test_kafka_sink_close_delivers_queued_changes(kafka_servers, topic, receive, changes_of):
    sink = KafkaSink(kafka_servers, topic)
    sink.write(changes_of(["a"]))
    sink.close()
    assert len(receive(1)) == 1


def test_kafka_sink_with_full_queue_delivers_all_changes(kafka_servers, topic, receive, changes_of):
    sink = KafkaSink(kafka_servers, topic, config={"queue.buffering.max.messages": 2})
    for sequence in range(1, 10):
        sink.write(changes_of(["a"], sequence=sequence))
    sink.close()
    assert [json.loads(message.value())["sequence"] for message in receive(9)] == list(range(1, 10))


def test_kafka_sink_of_unreachable_cluster_raises_after_patience(changes_of):
    sink = KafkaSink("127.0.0.1:1", "changes", patience=0.1, config=QUIET)
    sink.write(changes_of(["a"]))
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1/changes has not accepted all messages within 0\.1 s"):
        sink.flush()


def test_kafka_sink_idle_flush_of_unreachable_cluster_raises_after_patience():
    tolerant = KafkaSink("127.0.0.1:1", "changes", patience=60, config=QUIET)
    tolerant.flush()
    impatient = KafkaSink("127.0.0.1:1", "changes", patience=0, config=QUIET)
    with pytest.raises(UnreachableError, match="changes has not answered for 0 s"):
        impatient.flush()


def test_kafka_dead_letters_record_delivers_at_once(kafka_servers, topic, receive):
    dead_letters = KafkaDeadLetters(kafka_servers, topic)
    dead_letters.record("edges", BadMessage("{", "offset 1", "expected JSON"))
    (message,) = receive(1)
    assert json.loads(message.value()) == {
        "source": "edges",
        "where": "offset 1",
        "reason": "expected JSON",
        "message": "{",
    }
    assert message.key() == b"edges"
    dead_letters.close()
