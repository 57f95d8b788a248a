"""Kafka sources and sinks on the mock cluster of librdkafka: positions, restarts, payloads, bad messages."""

from __future__ import annotations

import json
import threading
import time
from contextlib import ExitStack, closing

import numpy as np
import pyarrow as pa
import pytest

from ripplevec.batch import id_column, ids_to_list
from ripplevec.changes import Changes
from ripplevec.errors import FormatError
from ripplevec.io.arrow_ipc import encode_arrow_stream
from ripplevec.io.brokers import UnreachableError
from ripplevec.io.change_messages import changes_to_dict
from ripplevec.io.protocols import BadMessage
from ripplevec.io.sinks.kafka import KafkaDeadLetters, KafkaSink
from ripplevec.io.sources import kafka as kafka_source
from ripplevec.io.sources.kafka import KafkaSource

kafka = pytest.importorskip("confluent_kafka", reason="not installed: pip install '.[kafka]'")

PARTITIONS = 4


@pytest.fixture
def open_source(kafka_servers, topic):
    with ExitStack() as sources:

        def open_at(position=None, **options):
            options = {"batch_size": 4, "patience": 120, **options}
            source = sources.enter_context(closing(KafkaSource(kafka_servers, topic, **options)))
            source.open(json.loads(json.dumps(position)))
            return source

        yield open_at


def encode_edges(first, last):
    return [json.dumps([number, "hub"]).encode() for number in range(first, last)]


def read_edges(source, count):
    """Read until a number of edges has arrived."""
    reads, received_edges = [], 0
    deadline = time.monotonic() + 120
    while received_edges < count and time.monotonic() < deadline:
        if read := source.read(1):
            reads.append(read)
            received_edges += len(read.batch)
    return reads


def edge_numbers(*reads):
    return [name for read in reads for name in ids_to_list(read.batch.src)]


def test_kafka_source_resumes_at_any_position(send, open_source):
    for partition in range(PARTITIONS):
        send(encode_edges(10 * partition, 10 * partition + 5), partition)
    reads = read_edges(open_source(), 20)
    assert sorted(edge_numbers(*reads)) == [10 * partition + number for partition in range(4) for number in range(5)]
    assert max(len(read.batch) for read in reads) <= 4
    for number, read in enumerate(reads[:-1]):
        again = read_edges(open_source(read.position), 20 - len(edge_numbers(*reads[: number + 1])))
        assert sorted(edge_numbers(*again)) == sorted(edge_numbers(*reads[number + 1 :]))
    assert open_source(reads[-1].position).read(0.2) is None


def test_kafka_source_keeps_order_within_partitions(send, open_source):
    for partition in range(PARTITIONS):
        send(encode_edges(100 * partition, 100 * partition + 50), partition)
    got = edge_numbers(*read_edges(open_source(batch_size=7), 200))
    for partition in range(PARTITIONS):
        own = [number for number in got if number // 100 == partition]
        assert own == list(range(100 * partition, 100 * partition + 50))


def test_kafka_source_fixed_reads_alternate_independently_of_timing(send, open_source):
    for partition in range(PARTITIONS):
        send(encode_edges(100 * partition, 100 * partition + 30), partition)
    whole = read_edges(open_source(fixed=True), 112)
    assert [edge_numbers(read)[0] for read in whole[:5]] == [0, 100, 200, 300, 4]
    assert {len(read.batch) for read in whole} == {4}
    for cut in (1, 3, 13):
        again = read_edges(open_source(whole[cut - 1].position, fixed=True), 112 - 4 * cut)
        assert [edge_numbers(read) for read in again] == [edge_numbers(read) for read in whole[cut:]]
        assert [read.position for read in again] == [read.position for read in whole[cut:]]


def test_kafka_source_pauses_partition_that_is_far_ahead(send, open_source, monkeypatch):
    create_client, received = kafka_source.create_kafka_client, []

    class RecordedConsumer:
        """A consumer that records the messages it has returned."""

        def __init__(self, *arguments, **options):
            self.consumer = create_client(*arguments, **options)

        def __getattr__(self, name):
            return getattr(self.consumer, name)

        def poll(self, timeout):
            message = self.consumer.poll(timeout)
            received.extend([] if message is None else [message])
            return message

        def consume(self, *limits):
            messages = self.consumer.consume(*limits)
            received.extend(messages)
            return messages

    monkeypatch.setattr(kafka_source, "create_kafka_client", RecordedConsumer)
    send(encode_edges(0, 100))
    source = open_source(fixed=True)
    (first,) = read_edges(source, 4)
    assert edge_numbers(first) == [0, 1, 2, 3]
    assert source.read(0.5) is None  # the next partition in turn has no messages
    assert 4 <= len(received) < 20 + len(first.batch)  # the others have not left the client library
    for partition in range(1, PARTITIONS):
        send(encode_edges(1000 * partition, 1000 * partition + 96), partition)
    reads = read_edges(source, 380)
    assert edge_numbers(first, *reads)[::4] == [
        1000 * partition + number for number in range(0, 96, 4) for partition in range(4)
    ]


def test_kafka_source_read_waits_for_messages(send, open_source):
    source = open_source()
    assert source.read(0) is None
    later = threading.Timer(0.2, send, (encode_edges(0, 1),))
    later.start()
    assert edge_numbers(*read_edges(source, 1)) == [0]
    later.join()


def test_kafka_source_acknowledge_commits_group_offset(kafka_servers, topic, send, open_source):
    send(encode_edges(0, 3))
    source = open_source(group="followers")
    (read,) = read_edges(source, 3)
    source.acknowledge(read.position)
    source.close()
    source.close()
    watcher = kafka.Consumer({"bootstrap.servers": kafka_servers, "group.id": "followers"})
    (place,) = watcher.committed([kafka.TopicPartition(topic, 0)], timeout=30)
    watcher.close()
    assert place.offset == 3
    assert edge_numbers(*read_edges(open_source(group="followers"), 3)) == [
        0,
        1,
        2,
    ]  # a new state starts at the beginning


def encode_arrow(**columns):
    return encode_arrow_stream(pa.table(columns))


def test_kafka_source_decodes_payloads_and_reports_bad_messages(send, open_source):
    send([b'{"edges": [[1, 2]], "remove_vertices": [9]}', encode_arrow(src=[3], dst=[4]), b"nothing", None, b"[5, 6]"])
    (read,) = read_edges(open_source(batch_size=5, fixed=True), 4)
    assert edge_numbers(read) == [1, 9, 3, 5]
    assert [one.where.rsplit(", ", 2)[1:] for one in read.bad_messages] == [
        ["partition 0", "offset 2"],
        ["partition 0", "offset 3"],
    ]


def test_kafka_source_missing_messages_raise_format_error(send, open_source):
    send(encode_edges(0, 2))
    source = open_source({"offsets": {"0": 99}, "turn": 0})
    with pytest.raises(FormatError, match="partition 0 from offset 99 on"):
        read_edges(source, 1)


def test_kafka_unreachable_broker_raises_unreachable_error():
    source = KafkaSource("127.0.0.1:1", "edges", patience=0.1, config={"log_level": 0})
    with closing(source), pytest.raises(UnreachableError, match=r"has not answered for 0\.1 s"):
        source.open(None)
    sink = KafkaSink("127.0.0.1:1", "changes", patience=0.1, config={"log_level": 0})
    sink.write(make_changes(1))
    with pytest.raises(UnreachableError, match="has not accepted all messages"):
        sink.flush()
    assert source.name == "kafka://127.0.0.1:1/edges"


def make_changes(sequence):
    vectors = np.arange(6, dtype=np.float32).reshape(2, 3)
    return Changes(id_column(["a", "b"]), np.arange(2), lambda rows: vectors, np.ones(2, bool), ["c"], sequence, False)


def consume(servers, topic, count):
    consumer = kafka.Consumer({"bootstrap.servers": servers, "group.id": "test"})
    consumer.assign([kafka.TopicPartition(topic, number, kafka.OFFSET_BEGINNING) for number in range(PARTITIONS)])
    messages, deadline = [], time.monotonic() + 120
    while len(messages) < count and time.monotonic() < deadline:
        messages += [message for message in consumer.consume(count, 0.5) if message.error() is None]
    consumer.close()
    return messages


def test_kafka_sink_writes_changes_in_order_to_one_partition(kafka_servers, topic):
    sink = KafkaSink(kafka_servers, topic)
    for sequence in range(50):
        sink.write(make_changes(sequence))
    sink.close()
    messages = consume(kafka_servers, topic, 50)
    assert [json.loads(message.value()) for message in messages] == [
        changes_to_dict(make_changes(n)) for n in range(50)
    ]
    assert len({message.partition() for message in messages}) == 1


def test_kafka_sink_full_send_queue_delivers_everything(kafka_servers, topic):
    sink = KafkaSink(kafka_servers, topic, config={"queue.buffering.max.messages": 2})
    for sequence in range(9):
        sink.write(make_changes(sequence))
    sink.close()
    assert len(consume(kafka_servers, topic, 9)) == 9


def test_kafka_dead_letters_record_bad_message(kafka_servers, topic):
    letters = KafkaDeadLetters(kafka_servers, topic)
    letters.record("kafka", BadMessage("{", "offset 1", "no"))
    (message,) = consume(kafka_servers, topic, 1)
    letters.close()
    assert json.loads(message.value()) == {"source": "kafka", "where": "offset 1", "reason": "no", "message": "{"}
