"""Kafka on the cluster that librdkafka plays: offsets that are ours, restarts, payloads, what holds no events."""

from __future__ import annotations

import itertools
import json
import threading
import time
from contextlib import ExitStack, closing

import numpy as np
import pyarrow as pa
import pytest

from ripplevec.batch import ids_to_list, id_column
from ripplevec.changes import Changes
from ripplevec.errors import FormatError
from ripplevec.io.arrow_ipc import encode_arrow_stream
from ripplevec.io.change_messages import changes_to_dict
from ripplevec.io.protocols import BadMessage
from ripplevec.io.retry_policy import UnreachableError
from ripplevec.io.sinks.kafka import KafkaDeadLetters, KafkaSink
from ripplevec.io.sources.kafka import KafkaSource

kafka = pytest.importorskip("confluent_kafka", reason="not installed: pip install 'ripplevec[kafka]'")

PARTITIONS = 4
COUNTER = itertools.count()


@pytest.fixture
def topic():
    return f"edges-{next(COUNTER)}"


@pytest.fixture
def send(kafka_servers, topic):
    producer = kafka.Producer({"bootstrap.servers": kafka_servers})
    producer.list_topics(topic, timeout=30)

    def produce(values, partition=0):
        for value in values:
            producer.produce(topic, value, partition=partition)
        assert producer.flush(30) == 0

    return produce


@pytest.fixture
def begun(kafka_servers, topic):
    with ExitStack() as sources:

        def make(position=None, **options):
            options = {"batch_size": 4, "patience": 120, **options}
            source = sources.enter_context(closing(KafkaSource(kafka_servers, topic, **options)))
            source.open(json.loads(json.dumps(position)))
            return source

        yield make


def edges(first, last):
    return [json.dumps([number, "hub"]).encode() for number in range(first, last)]


def some(source, count):
    """Reads until so many edges have come."""
    reads, got = [], 0
    deadline = time.monotonic() + 120
    while got < count and time.monotonic() < deadline:
        if read := source.read(1):
            reads.append(read)
            got += len(read.batch)
    return reads


def numbers(*reads):
    return [name for read in reads for name in ids_to_list(read.batch.src)]


def test_going_on_at_any_position(send, begun):
    for partition in range(PARTITIONS):
        send(edges(10 * partition, 10 * partition + 5), partition)
    reads = some(begun(), 20)
    assert sorted(numbers(*reads)) == [10 * partition + number for partition in range(4) for number in range(5)]
    assert max(len(read.batch) for read in reads) <= 4
    for number, read in enumerate(reads[:-1]):
        again = some(begun(read.position), 20 - len(numbers(*reads[: number + 1])))
        assert sorted(numbers(*again)) == sorted(numbers(*reads[number + 1 :]))
    assert begun(reads[-1].position).read(0.2) is None


def test_each_partition_is_in_order(send, begun):
    for partition in range(PARTITIONS):
        send(edges(100 * partition, 100 * partition + 50), partition)
    got = numbers(*some(begun(batch_size=7), 200))
    for partition in range(PARTITIONS):
        own = [number for number in got if number // 100 == partition]
        assert own == list(range(100 * partition, 100 * partition + 50))


def test_fixed_reads_take_turns_and_do_not_depend_on_when_they_are_made(send, begun):
    for partition in range(PARTITIONS):
        send(edges(100 * partition, 100 * partition + 30), partition)
    whole = some(begun(fixed=True), 112)
    assert [numbers(read)[0] for read in whole[:5]] == [0, 100, 200, 300, 4]
    assert {len(read.batch) for read in whole} == {4}
    for cut in (1, 3, 13):
        again = some(begun(whole[cut - 1].position, fixed=True), 112 - 4 * cut)
        assert [numbers(read) for read in again] == [numbers(read) for read in whole[cut:]]
        assert [read.position for read in again] == [read.position for read in whole[cut:]]


def test_a_partition_that_is_far_ahead_is_paused(send, begun):
    send(edges(0, 100))
    source = begun(fixed=True)
    (first,) = some(source, 4)
    assert numbers(first) == [0, 1, 2, 3]
    assert source.read(0.5) is None  # it is the turn of another, which is silent
    assert len(source._buffered[0]) < 20
    for partition in range(1, PARTITIONS):
        send(edges(1000 * partition, 1000 * partition + 96), partition)
    reads = some(source, 380)
    assert numbers(first, *reads)[::4] == [
        1000 * partition + number for number in range(0, 96, 4) for partition in range(4)
    ]


def test_waiting_for_messages(send, begun):
    source = begun()
    assert source.read(0) is None
    later = threading.Timer(0.2, send, (edges(0, 1),))
    later.start()
    assert numbers(*some(source, 1)) == [0]
    later.join()


def test_the_group_is_told_how_far_we_are(kafka_servers, topic, send, begun):
    send(edges(0, 3))
    source = begun(group="followers")
    (read,) = some(source, 3)
    source.acknowledge(read.position)
    source.close()
    source.close()
    watcher = kafka.Consumer({"bootstrap.servers": kafka_servers, "group.id": "followers"})
    (place,) = watcher.committed([kafka.TopicPartition(topic, 0)], timeout=30)
    watcher.close()
    assert place.offset == 3
    assert numbers(*some(begun(group="followers"), 3)) == [0, 1, 2]  # a new state begins at the beginning


def arrow(**columns):
    return encode_arrow_stream(pa.table(columns))


def test_payloads_and_poison(send, begun):
    send([b'{"edges": [[1, 2]], "remove_vertices": [9]}', arrow(src=[3], dst=[4]), b"nothing", None, b"[5, 6]"])
    (read,) = some(begun(batch_size=5, fixed=True), 4)
    assert numbers(read) == [1, 9, 3, 5]
    assert [one.where.rsplit(", ", 2)[1:] for one in read.bad_messages] == [
        ["partition 0", "offset 2"],
        ["partition 0", "offset 3"],
    ]


def test_messages_that_are_gone(send, begun):
    send(edges(0, 2))
    source = begun({"offsets": {"0": 99}, "turn": 0})
    with pytest.raises(FormatError, match="partition 0 from 99 on"):
        some(source, 1)


def test_a_broker_that_does_not_answer():
    source = KafkaSource("127.0.0.1:1", "edges", patience=0.1, config={"log_level": 0})
    with closing(source), pytest.raises(UnreachableError, match=r"has not answered for 0\.1 s"):
        source.open(None)
    sink = KafkaSink("127.0.0.1:1", "changes", patience=0.1, config={"log_level": 0})
    sink.write(changed(1))
    with pytest.raises(UnreachableError, match="has not taken what was sent"):
        sink.flush()
    assert source.name == "kafka://127.0.0.1:1/edges"


def changed(sequence):
    vectors = np.arange(6, dtype=np.float32).reshape(2, 3)
    return Changes(id_column(["a", "b"]), np.arange(2), lambda rows: vectors, np.ones(2, bool), ["c"], sequence, False)


def received(servers, topic, count):
    consumer = kafka.Consumer({"bootstrap.servers": servers, "group.id": "test"})
    consumer.assign([kafka.TopicPartition(topic, number, kafka.OFFSET_BEGINNING) for number in range(PARTITIONS)])
    messages, deadline = [], time.monotonic() + 120
    while len(messages) < count and time.monotonic() < deadline:
        messages += [message for message in consumer.consume(count, 0.5) if message.error() is None]
    consumer.close()
    return messages


def test_changes_as_messages_in_order(kafka_servers, topic):
    sink = KafkaSink(kafka_servers, topic)
    for sequence in range(50):
        sink.write(changed(sequence))
    sink.close()
    messages = received(kafka_servers, topic, 50)
    assert [json.loads(message.value()) for message in messages] == [changes_to_dict(changed(n)) for n in range(50)]
    assert len({message.partition() for message in messages}) == 1


def test_more_than_fits_on_the_way(kafka_servers, topic):
    sink = KafkaSink(kafka_servers, topic, config={"queue.buffering.max.messages": 2})
    for sequence in range(9):
        sink.write(changed(sequence))
    sink.close()
    assert len(received(kafka_servers, topic, 9)) == 9


def test_dead_letters(kafka_servers, topic):
    letters = KafkaDeadLetters(kafka_servers, topic)
    letters.record("kafka", BadMessage("{", "offset 1", "no"))
    (message,) = received(kafka_servers, topic, 1)
    letters.close()
    assert json.loads(message.value()) == {"source": "kafka", "where": "offset 1", "reason": "no", "message": "{"}
