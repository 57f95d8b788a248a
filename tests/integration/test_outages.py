"""Outages of brokers during a run: no batch is lost, and none is applied twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager

import pytest

from ripplevec.durability.session import Session
from ripplevec.errors import FormatError
from ripplevec.io.brokers import UnreachableError
from ripplevec.io.change_messages import changes_to_dict
from ripplevec.io.sinks.kafka import KafkaSink
from ripplevec.io.sinks.redis import RedisSink
from ripplevec.io.sources import kafka
from ripplevec.io.sources.kafka import KafkaSource
from ripplevec.io.sources.redis import RedisSource

PARAMETERS = {"dim": 3, "start_size": 6, "anchor_growth": 0.3, "threads": 1}
SIZE, BATCHES = 4, 24
NOT_COMMITTED = "last offsets not committed"
LONG_SECONDS = 120.0
SHORT_TIMEOUTS = {"socket.timeout.ms": 1200, "reconnect.backoff.max.ms": 200}

KAFKA_CLUSTER = """
import sys, confluent_kafka
cluster = confluent_kafka.Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
(broker,) = cluster.list_topics(timeout=30).brokers.values()
print(f"{broker.host}:{broker.port}", flush=True)
sys.stdin.read()
"""


def is_closing():
    return "ripplevec-kafka-close" in {thread.name for thread in threading.enumerate()}


def make_edges(first, last):
    return [(number % 29, f"v{7 * number % 31}") for number in range(first, last)]


class KafkaBroker:
    """Mock cluster of librdkafka in a process that can be suspended: connections stay open without responses."""

    outage_message = "REQTMOUT"

    def __init__(self):
        self.kafka = pytest.importorskip("confluent_kafka", reason="not installed: pip install '.[kafka]'")
        command = [sys.executable, "-c", KAFKA_CLUSTER]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.servers = self._process.stdout.readline().strip()
        self._producer = self.kafka.Producer({"bootstrap.servers": self.servers, "log_level": 0})
        for topic in ("edges", "changes"):
            self._producer.list_topics(topic, timeout=30)

    def send(self, first, last):
        """Send edges to the four partitions in turn, so that all fixed reads are full."""
        for number, edge in enumerate(make_edges(first, last), first):
            self._producer.produce("edges", json.dumps(edge).encode(), partition=number // SIZE % 4)
        assert self._producer.flush(30) == 0

    def source(self):
        options = {
            "batch_size": SIZE,
            "fixed": True,
            "patience": LONG_SECONDS,
            "config": {**SHORT_TIMEOUTS, "fetch.wait.max.ms": 100},
        }
        return KafkaSource(self.servers, "edges", name="edges", **options)

    def sink(self, patience=LONG_SECONDS):
        return KafkaSink(self.servers, "changes", patience=patience, config=SHORT_TIMEOUTS)

    def read_changes(self):
        """Read all messages from the topic of changes."""
        config = {"bootstrap.servers": self.servers, "group.id": "follower", "auto.offset.reset": "earliest"}
        consumer = self.kafka.Consumer({**config, "enable.partition.eof": True})
        with closing(consumer):
            consumer.assign([self.kafka.TopicPartition("changes", partition, 0) for partition in range(4)])
            ended = 0
            while ended < 4:
                message = consumer.poll(30)
                if message.error() is None:
                    yield json.loads(message.value())
                else:
                    assert message.error().code() == self.kafka.KafkaError._PARTITION_EOF
                    ended += 1

    def start_outage(self):
        self._process.send_signal(signal.SIGSTOP)

    def end_outage(self):
        self._process.send_signal(signal.SIGCONT)

    def close(self):
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


class RedisBroker:
    """Real Redis server that can be suspended, or killed and restarted from its files."""

    outage_message = "broker unreachable"

    def __init__(self, server, start_outage, end_outage):
        self._server, self.start_outage, self.end_outage = server, start_outage, end_outage
        with server.client() as client:
            client.flushall()

    def send(self, first, last):
        with self._server.client() as client:
            for src, dst in make_edges(first, last):
                client.xadd("edges", {"data": json.dumps([src, dst])})

    def source(self):
        return RedisSource(self._server.url, stream="edges", batch_size=SIZE, fixed=True, patience=LONG_SECONDS)

    def sink(self, patience=LONG_SECONDS):
        return RedisSink(self._server.url, stream="changes", patience=patience)

    def read_changes(self):
        with self._server.client() as client:
            return [json.loads(fields[b"data"]) for _, fields in client.xrange("changes")]

    def close(self):
        """Do nothing: other tests use the same server."""


@pytest.fixture(params=["a Kafka that hangs", "a Redis that hangs", "a Redis that dies"])
def broker(request, monkeypatch):
    if "Kafka" in request.param:
        broker = KafkaBroker()
    else:
        server = request.getfixturevalue("redis_server")
        monkeypatch.setattr("ripplevec.io.brokers.RESPONSE_TIMEOUT", 0.5)
        ways = (server.pause, server.resume) if "hangs" in request.param else (server.stop, server.start)
        broker = RedisBroker(server, *ways)
    with closing(broker):
        yield broker


class OutageSink:
    """Sink whose broker has an outage just before the changes of a batch are sent."""

    def __init__(self, broker, sequence, **options):
        self._broker, self._sequence, self._sink = broker, sequence, broker.sink(**options)
        self.flush, self.close = self._sink.flush, self._sink.close

    def write(self, changes):
        if changes.sequence == self._sequence:
            self._broker.start_outage()  # before the write, which may send immediately
        self._sink.write(changes)


class ListSink(list):
    """Sink that keeps all messages in a list."""

    def write(self, changes):
        self.append(changes_to_dict(changes))

    def flush(self):
        """Do nothing: nothing is buffered."""


def wait_until(condition):
    deadline = time.monotonic() + LONG_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true"
        time.sleep(0.02)


def make_timer(seconds):
    """Return a function that tells whether a number of seconds has passed."""
    deadline = time.monotonic() + seconds
    return lambda: time.monotonic() > deadline


@contextmanager
def running(session, source, sink):
    """Run a session in a separate thread until the end of the block."""
    stopped, failures = threading.Event(), []

    def run():
        try:
            session.run(source, [sink], until=stopped.is_set)
        except Exception as failure:
            failures.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(LONG_SECONDS)
        assert not thread.is_alive()
        assert failures == []


def run_undisturbed(directory, broker, batches=BATCHES):
    """Return the digest and the changes of a session without outages."""
    messages, source = ListSink(), broker.source()
    with Session(directory, **PARAMETERS) as session, closing(source):
        session.run(source, [messages], until=lambda: session.model.sequence == batches)
        return session.model.digest(), list(messages)


def drop_repeats(messages):
    """Keep the first message of each sequence number; repeated messages must be equal."""
    by_sequence = {}
    for message in messages:
        assert by_sequence.setdefault(message["sequence"], message) == message
    return list(by_sequence.values())


def test_run_survives_outages_of_sink_and_source(broker, tmp_path, caplog):
    half = BATCHES * SIZE // 2
    broker.send(0, half)
    source, sink = broker.source(), OutageSink(broker, 5)
    with Session(tmp_path / "state", **PARAMETERS) as session, closing(source), closing(sink):
        with running(session, source, sink):
            wait_until(lambda: broker.outage_message in caplog.text)  # by the sink
            broker.end_outage()
            wait_until(lambda: session.model.sequence == BATCHES // 2)
            wait_until(lambda: not session.recovery.unpublished)
            caplog.clear()
            broker.start_outage()
            wait_until(lambda: broker.outage_message in caplog.text)  # by the source
            broker.end_outage()
            broker.send(half, 2 * half)
            wait_until(lambda: session.model.sequence == BATCHES)
        digest = session.model.digest()
    expected, changes = run_undisturbed(tmp_path / "undisturbed", broker)
    assert digest == expected
    assert drop_repeats(broker.read_changes()) == changes


def test_run_sink_timeout_can_be_continued(broker, tmp_path):
    broker.send(0, BATCHES * SIZE)
    source, sink = broker.source(), OutageSink(broker, 5, patience=1)
    with Session(tmp_path / "state", **PARAMETERS) as session:
        with closing(source), pytest.raises(UnreachableError):
            session.run(source, [sink], until=lambda: session.model.sequence == BATCHES)
        broker.end_outage()
        source, sink = broker.source(), broker.sink()
        with closing(source), closing(sink):
            session.run(source, [sink], until=lambda: session.model.sequence == BATCHES)
        digest = session.model.digest()
    expected, changes = run_undisturbed(tmp_path / "undisturbed", broker)
    assert digest == expected
    assert drop_repeats(broker.read_changes()) == changes


def test_run_outage_without_input_raises_unreachable_error(broker, tmp_path):
    broker.send(0, 4 * SIZE)
    source, sink, timed_out = broker.source(), broker.sink(patience=1), make_timer(LONG_SECONDS)
    outage = threading.Event()

    def start_outage_after_last_batch():
        if session.model.sequence == 4 and not outage.is_set():
            broker.start_outage()
            outage.set()
        return timed_out()

    with Session(tmp_path / "state", **PARAMETERS) as session, closing(source), closing(sink):
        with pytest.raises(UnreachableError, match="changes has not answered for 1 s"):
            session.run(source, [sink], until=start_outage_after_last_batch)
        broker.end_outage()


def test_run_source_opens_during_outage(broker, tmp_path):
    broker.send(0, 4 * SIZE)
    broker.start_outage()
    recovery = threading.Timer(2, broker.end_outage)
    recovery.start()
    source = broker.source()
    with Session(tmp_path / "state", **PARAMETERS) as session, closing(source):
        session.run(source, until=lambda: session.model.sequence == 4)
        digest = session.model.digest()
    recovery.join()
    assert digest == run_undisturbed(tmp_path / "undisturbed", broker, 4)[0]


def test_kafka_source_close_during_outage_returns(caplog):
    with closing(KafkaBroker()) as broker:
        broker.send(0, 4 * SIZE)
        source = broker.source()
        source.open(None)
        while (read := source.read(1)) is None:
            pass
        broker.start_outage()
        source.acknowledge(read.position)
        source.close()  # usually before librdkafka notices the outage
        assert is_closing() == (NOT_COMMITTED in caplog.text)
        broker.end_outage()
        wait_until(lambda: not is_closing())


def test_kafka_source_close_does_not_wait_for_offset_commit(caplog, monkeypatch):
    monkeypatch.setattr(kafka, "CLOSE_TIMEOUT", 0.05)
    answered, create_client = threading.Event(), kafka.create_kafka_client

    class WaitingConsumer:
        def __init__(self, *arguments, **options):
            self.consumer = create_client(*arguments, **options)

        def __getattr__(self, name):
            return getattr(self.consumer, name)

        def close(self):
            answered.wait()
            self.consumer.close()

    monkeypatch.setattr(kafka, "create_kafka_client", WaitingConsumer)
    with closing(KafkaBroker()) as broker:
        source = broker.source()
        source.open(None)
        source.close()
        assert NOT_COMMITTED in caplog.text
        assert is_closing()
        answered.set()
        wait_until(lambda: not is_closing())


def test_run_kafka_with_lost_messages_raises_format_error(tmp_path):
    with Session(tmp_path / "state", **PARAMETERS) as session:
        for count, ends in ((8, lambda: session.model.sequence == 8), (4, None)):
            with closing(KafkaBroker()) as broker, closing(broker.source()) as source:
                broker.send(0, count * SIZE)
                if ends:
                    session.run(source, until=ends)
                    continue
                with pytest.raises(FormatError, match=r"partition \d from offset 8 on, but they no longer exist"):
                    session.run(source)
        assert session.model.sequence == 8
