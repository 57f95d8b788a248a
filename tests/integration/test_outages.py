"""Brokers that hang or die and come back in the middle of a run: nothing is lost, nothing is applied twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from types import SimpleNamespace

import pytest

from ripplevec.durability.session import Session
from ripplevec.errors import FormatError
from ripplevec.io.change_messages import changes_to_dict
from ripplevec.io.retry_policy import UnreachableError
from ripplevec.io.sinks.kafka import KafkaSink
from ripplevec.io.sinks.redis import RedisSink
from ripplevec.io.sources import kafka
from ripplevec.io.sources.kafka import KafkaSource
from ripplevec.io.sources.redis import RedisSource

PARAMETERS = {"dim": 3, "start_size": 6, "anchor_growth": 0.3, "anchor_lag": 0.05, "threads": 1}
SIZE, BATCHES = 4, 24
NOT_COMMITTED = "last offsets not committed"
LONG = 120.0
HASTY = {"socket.timeout.ms": 1200, "reconnect.backoff.max.ms": 200}

CLUSTER = """
import sys, confluent_kafka
cluster = confluent_kafka.Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
(broker,) = cluster.list_topics(timeout=30).brokers.values()
print(f"{broker.host}:{broker.port}", flush=True)
sys.stdin.read()
"""


def still_closing():
    return "ripplevec-kafka-close" in {thread.name for thread in threading.enumerate()}


def edges(first, last):
    return [(number % 29, f"v{7 * number % 31}") for number in range(first, last)]


class KafkaAway:
    """The cluster that librdkafka plays, in a process that is made to hang: connections stay, nobody answers."""

    noticed = "REQTMOUT"

    def __init__(self):
        self.kafka = pytest.importorskip("confluent_kafka", reason="not installed: pip install 'ripplevec[kafka]'")
        command = [sys.executable, "-c", CLUSTER]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.servers = self._process.stdout.readline().strip()
        self._producer = self.kafka.Producer({"bootstrap.servers": self.servers, "log_level": 0})
        for topic in ("edges", "changes"):
            self._producer.list_topics(topic, timeout=30)

    def send(self, first, last):
        """Edges, to the four partitions in turn, so that fixed reads come out even."""
        for number, edge in enumerate(edges(first, last), first):
            self._producer.produce("edges", json.dumps(edge).encode(), partition=number // SIZE % 4)
        assert self._producer.flush(30) == 0

    def source(self):
        options = {"batch_size": SIZE, "fixed": True, "patience": LONG, "config": {**HASTY, "fetch.wait.max.ms": 100}}
        return KafkaSource(self.servers, "edges", name="edges", **options)

    def sink(self, patience=LONG):
        return KafkaSink(self.servers, "changes", patience=patience, config=HASTY)

    def told(self):
        """The messages that followers find."""
        ours = {"bootstrap.servers": self.servers, "group.id": "follower", "auto.offset.reset": "earliest"}
        consumer = self.kafka.Consumer({**ours, "enable.partition.eof": True})
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

    def leave(self):
        self._process.send_signal(signal.SIGSTOP)

    def come_back(self):
        self._process.send_signal(signal.SIGCONT)

    def close(self):
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


class RedisAway:
    """A real redis-server, which is made to hang, or is killed and started again with what it had put on disk."""

    noticed = "broker unreachable"

    def __init__(self, server, leave, come_back):
        self._server, self.leave, self.come_back = server, leave, come_back
        with server.client() as client:
            client.flushall()

    def send(self, first, last):
        with self._server.client() as client:
            for src, dst in edges(first, last):
                client.xadd("edges", {"data": json.dumps([src, dst])})

    def source(self):
        return RedisSource(self._server.url, stream="edges", batch_size=SIZE, fixed=True, patience=LONG)

    def sink(self, patience=LONG):
        return RedisSink(self._server.url, stream="changes", patience=patience)

    def told(self):
        with self._server.client() as client:
            return [json.loads(fields[b"data"]) for _, fields in client.xrange("changes")]

    def close(self):
        """The server is everybody's."""


@pytest.fixture(params=["a Kafka that hangs", "a Redis that hangs", "a Redis that dies"])
def broker(request, monkeypatch):
    if "Kafka" in request.param:
        away = KafkaAway()
    else:
        server = request.getfixturevalue("redis_server")
        monkeypatch.setattr("ripplevec.io.redis_client.RESPONSE_TIMEOUT", 0.5)
        ways = (server.pause, server.resume) if "hangs" in request.param else (server.stop, server.start)
        away = RedisAway(server, *ways)
    with closing(away):
        yield away


class Leaving:
    """A sink whose broker leaves when the changes of a batch are about to be sent to it."""

    def __init__(self, broker, sequence, **options):
        self._broker, self._sequence, self._sink = broker, sequence, broker.sink(**options)
        self.flush, self.close = self._sink.flush, self._sink.close

    def write(self, changes):
        if changes.sequence == self._sequence:
            self._broker.leave()  # before, or what is sent at once may have arrived
        self._sink.write(changes)


class Kept(list):
    """A sink that is always there."""

    def write(self, changes):
        self.append(changes_to_dict(changes))

    def flush(self):
        """They are here."""


def eventually(holds):
    deadline = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < deadline, "it has not come to that"
        time.sleep(0.02)


def expired(seconds):
    """Whether so many seconds have passed, for those who ask."""
    deadline = time.monotonic() + seconds
    return lambda: time.monotonic() > deadline


@contextmanager
def running(session, source, sink):
    """The loop of a session in a thread of its own, until the end of the block."""
    over, failures = threading.Event(), []

    def run():
        try:
            session.run(source, [sink], until=over.is_set)
        except Exception as failure:
            failures.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(LONG)
        assert not thread.is_alive()
        assert failures == []


def left_alone(directory, broker, batches=BATCHES):
    """The digest and the changes of a session that meets no outage."""
    kept, source = Kept(), broker.source()
    with Session(directory, **PARAMETERS) as session, closing(source):
        session.run(source, [kept], until=lambda: session.model.sequence == batches)
        return session.model.digest(), list(kept)


def without_repeats(messages):
    """What a follower makes of them: a message that is sent again has a sequence number that it knows."""
    known = {}
    for message in messages:
        assert known.setdefault(message["sequence"], message) == message
    return list(known.values())


def test_a_run_survives_that_its_broker_leaves_and_comes_back(broker, tmp_path, caplog):
    half = BATCHES * SIZE // 2
    broker.send(0, half)
    source, sink = broker.source(), Leaving(broker, 5)
    with Session(tmp_path / "state", **PARAMETERS) as session, closing(source), closing(sink):
        with running(session, source, sink):
            eventually(lambda: broker.noticed in caplog.text)  # by the sink
            broker.come_back()
            eventually(lambda: session.model.sequence == BATCHES // 2)
            eventually(lambda: not session._unpublished)
            caplog.clear()
            broker.leave()
            eventually(lambda: broker.noticed in caplog.text)  # by the source
            broker.come_back()
            broker.send(half, 2 * half)
            eventually(lambda: session.model.sequence == BATCHES)
        digest = session.model.digest()
    expected, changes = left_alone(tmp_path / "calm", broker)
    assert digest == expected
    assert without_repeats(broker.told()) == changes


def test_a_run_that_lost_patience_with_its_sink_is_taken_up_again(broker, tmp_path):
    broker.send(0, BATCHES * SIZE)
    source, sink = broker.source(), Leaving(broker, 5, patience=1)
    with Session(tmp_path / "state", **PARAMETERS) as session:
        with closing(source), pytest.raises(UnreachableError):
            session.run(source, [sink], until=lambda: session.model.sequence == BATCHES)
        broker.come_back()
        source, sink = broker.source(), broker.sink()
        with closing(source), closing(sink):
            session.run(source, [sink], until=lambda: session.model.sequence == BATCHES)
        digest = session.model.digest()
    expected, changes = left_alone(tmp_path / "calm", broker)
    assert digest == expected
    assert without_repeats(broker.told()) == changes


def test_run_whose_broker_leaves_while_nothing_is_to_be_sent_ends_with_the_error_of_its_sink(broker, tmp_path):
    broker.send(0, 4 * SIZE)
    source, sink, late = broker.source(), broker.sink(patience=1), expired(LONG)
    left = threading.Event()

    def leave_once_all_is_sent():
        if session.model.sequence == 4 and not left.is_set():
            broker.leave()
            left.set()
        return late()

    with Session(tmp_path / "state", **PARAMETERS) as session, closing(source), closing(sink):
        with pytest.raises(UnreachableError, match="changes has not answered for 1 s"):
            session.run(source, [sink], until=leave_once_all_is_sent)
        broker.come_back()


def test_a_source_is_opened_while_its_broker_is_away(broker, tmp_path):
    broker.send(0, 4 * SIZE)
    broker.leave()
    back = threading.Timer(2, broker.come_back)
    back.start()
    source = broker.source()
    with Session(tmp_path / "state", **PARAMETERS) as session, closing(source):
        session.run(source, until=lambda: session.model.sequence == 4)
        digest = session.model.digest()
    back.join()
    assert digest == left_alone(tmp_path / "calm", broker, 4)[0]


def test_a_source_is_closed_while_its_kafka_is_away(caplog):
    with closing(KafkaAway()) as broker:
        broker.send(0, 4 * SIZE)
        source = broker.source()
        source.open(None)
        while (read := source.read(1)) is None:
            pass
        broker.leave()
        source.acknowledge(read.position)
        source.close()  # mostly too soon for librdkafka to have noticed that nobody answers
        assert still_closing() == (NOT_COMMITTED in caplog.text)
        broker.come_back()
        eventually(lambda: not still_closing())


def test_nobody_waits_for_a_kafka_that_does_not_take_the_last_offsets(caplog, monkeypatch):
    monkeypatch.setattr(kafka, "CLOSE_TIMEOUT", 0.05)
    answered = threading.Event()
    with closing(KafkaAway()) as broker:
        source = broker.source()
        source.open(None)
        consumer = source._consumer
        monkeypatch.setattr(source, "_consumer", SimpleNamespace(close=answered.wait))
        source.close()
        assert NOT_COMMITTED in caplog.text
        assert still_closing()
        answered.set()
        eventually(lambda: not still_closing())
        consumer.close()


def test_a_kafka_that_has_lost_its_messages_is_an_error(tmp_path):
    with Session(tmp_path / "state", **PARAMETERS) as session:
        for count, ends in ((8, lambda: session.model.sequence == 8), (4, None)):
            with closing(KafkaAway()) as broker, closing(broker.source()) as source:
                broker.send(0, count * SIZE)
                if ends:
                    session.run(source, until=ends)
                    continue
                with pytest.raises(FormatError, match=r"partition \d from 8 on, but they are not there any more"):
                    session.run(source)
        assert session.model.sequence == 8
