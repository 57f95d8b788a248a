"""Kafka source with the mock cluster of librdkafka: positions, acknowledgement, partitions, errors."""

from __future__ import annotations

import json
import threading
import time
from contextlib import ExitStack, closing

import pytest

from ripplevec.batch import ids_to_list
from ripplevec.errors import FormatError, InvalidValueError
from ripplevec.io.brokers import UnreachableError
from ripplevec.io.sources import kafka as kafka_source
from ripplevec.io.sources.kafka import KafkaSource

kafka = pytest.importorskip("confluent_kafka", reason="not installed: pip install '.[kafka]'")

PARTITIONS = 4  # of every topic of the mock cluster


@pytest.fixture
def open_source(kafka_servers, topic):
    """Return a function that opens a source at a position that went through JSON, as a saved one does."""
    with ExitStack() as sources:

        def open_at(position=None, **options):
            options = {"batch_size": 3, **options}
            source = sources.enter_context(closing(KafkaSource(kafka_servers, topic, **options)))
            source.open(json.loads(json.dumps(position)))
            return source

        yield open_at


def edges(first, last):
    return [json.dumps([number, "hub"]).encode() for number in range(first, last)]


def read_messages(source, count):
    """Read until a number of events or bad messages has arrived; fail after a minute."""
    reads, received, deadline = [], 0, time.monotonic() + 60
    while received < count:
        assert time.monotonic() < deadline
        if read := source.read(1):
            reads.append(read)
            received += len(read.batch) + len(read.bad_messages)
    return reads


def source_numbers(*reads):
    return [name for read in reads for name in ids_to_list(read.batch.src)]


def committed_offset(servers, topic, group):
    consumer = kafka.Consumer({"bootstrap.servers": servers, "group.id": group})
    (partition,) = consumer.committed([kafka.TopicPartition(topic, 0)], timeout=60)
    consumer.close()
    return partition.offset


def test_kafka_source_position_holds_next_offset_per_partition(send, open_source):
    send(edges(0, 2), partition=1)
    send(edges(2, 3), partition=3)
    reads = read_messages(open_source(), 3)
    assert reads[-1].position == {"offsets": {"1": 2, "3": 1}, "turn": 0}
    assert sorted(source_numbers(*reads)) == [0, 1, 2]


def test_kafka_source_opened_at_position_returns_later_messages_only(send, open_source):
    send(edges(0, 5))
    send(edges(10, 12), partition=2)
    reads = read_messages(open_source({"offsets": {"0": 3}, "turn": 0}), 4)
    assert sorted(source_numbers(*reads)) == [3, 4, 10, 11]


def test_kafka_source_with_fixed_position_holds_turn_of_partitions(send, open_source):
    for partition in range(PARTITIONS):
        send(edges(10 * partition, 10 * partition + 6), partition)
    reads = read_messages(open_source(fixed=True), 24)
    assert [source_numbers(read)[0] for read in reads] == [0, 10, 20, 30, 3, 13, 23, 33]
    assert [read.position["turn"] for read in reads] == [1, 2, 3, 0, 1, 2, 3, 0]
    resumed = read_messages(open_source(reads[1].position, fixed=True), 18)
    assert [source_numbers(read) for read in resumed] == [source_numbers(read) for read in reads[2:]]


def test_kafka_source_with_fixed_waits_for_partition_in_turn(send, open_source):
    send(edges(0, 3))
    send(edges(20, 23), partition=2)
    source = open_source(fixed=True)
    assert source_numbers(*read_messages(source, 3)) == [0, 1, 2]
    assert source.read(0.3) is None  # partition 1 is next and has no messages
    send(edges(10, 13), partition=1)
    assert source_numbers(*read_messages(source, 6)) == [10, 11, 12, 20, 21, 22]


def test_kafka_source_returns_batch_size_messages_at_most(send, open_source):
    send(edges(0, 7))
    reads = read_messages(open_source(), 7)
    assert max(len(read.batch) for read in reads) <= 3
    assert source_numbers(*reads) == list(range(7))


def test_kafka_source_acknowledge_commits_offsets_to_group(kafka_servers, topic, send, open_source):
    send(edges(0, 3))
    source = open_source(group="watched", batch_size=9)
    reads = read_messages(source, 3)
    source.acknowledge(reads[-1].position)
    source.close()
    assert committed_offset(kafka_servers, topic, "watched") == 3


def test_kafka_source_without_position_ignores_committed_offsets(send, open_source):
    send(edges(0, 3))
    source = open_source(group="again", batch_size=9)
    source.acknowledge(read_messages(source, 3)[-1].position)
    source.close()
    assert source_numbers(*read_messages(open_source(None, group="again"), 3)) == [0, 1, 2]


def test_kafka_source_with_bad_message_reports_partition_and_offset(send, open_source):
    send([b"[1, 2]", b'{"arrivals": [{"id": "v", "neigbors": [1]}]}', None], partition=2)
    reads = read_messages(open_source(batch_size=9), 3)
    bad_messages = [bad for read in reads for bad in read.bad_messages]
    assert [bad.where.split(", ", 1)[1] for bad in bad_messages] == [
        "partition 2, offset 1",
        "partition 2, offset 2",
    ]
    assert "got 'neigbors'. Remove the key or correct its spelling" in bad_messages[0].reason
    assert source_numbers(*reads) == [1]


def test_kafka_source_with_missing_offset_raises_format_error(send, open_source):
    send(edges(0, 2))
    source = open_source({"offsets": {"0": 99}, "turn": 0})
    with pytest.raises(FormatError, match=r"partition 0 from offset 99 on, but they no longer exist.*another name"):
        read_messages(source, 1)


def test_kafka_source_of_unreachable_cluster_raises_after_patience(caplog):
    source = KafkaSource("127.0.0.1:1", "edges", patience=0.1, config={"log_level": 0})
    with (
        closing(source),
        pytest.raises(UnreachableError, match=r"kafka://127\.0\.0\.1:1/edges has not answered for 0\.1 s"),
    ):
        source.open(None)
    assert "broker unreachable, retrying broker=kafka://127.0.0.1:1/edges" in caplog.text


def test_kafka_source_of_missing_topic_raises_after_patience(open_source):
    with pytest.raises(UnreachableError, match=r"or the topic does not exist\. Check the address and the topic"):
        open_source(patience=0.1)


@pytest.mark.usefixtures("send")  # creates the topic
def test_kafka_source_close_twice_does_nothing(open_source):
    source = open_source()
    source.close()
    source.close()


@pytest.mark.usefixtures("send")
def test_kafka_source_close_does_not_wait_for_unreachable_cluster(open_source, monkeypatch, caplog):
    create_client, released, closed = kafka_source.create_kafka_client, threading.Event(), threading.Event()

    class SlowConsumer:
        def __init__(self, *arguments, **options):
            self.consumer = create_client(*arguments, **options)

        def __getattr__(self, name):
            return getattr(self.consumer, name)

        def close(self):
            released.wait()
            self.consumer.close()
            closed.set()

    monkeypatch.setattr(kafka_source, "create_kafka_client", SlowConsumer)
    monkeypatch.setattr(kafka_source, "CLOSE_TIMEOUT", 0.05)
    source = open_source()
    source.close()  # would never return if it waited
    assert "last offsets not committed" in caplog.text
    released.set()
    assert closed.wait(60)


@pytest.mark.parametrize("batch_size", [0, "many"])
def test_kafka_source_with_invalid_batch_size_raises(batch_size):
    with pytest.raises(InvalidValueError, match="batch_size: expected an integer of at least 1"):
        KafkaSource("127.0.0.1:1", "edges", batch_size=batch_size)


def test_kafka_source_with_unknown_setting_raises():
    with pytest.raises(InvalidValueError, match=r"settings that librdkafka knows: .*no\.such\.setting"):
        KafkaSource("127.0.0.1:1", "edges", config={"no.such.setting": "1"})
