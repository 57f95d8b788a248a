"""Brokers for tests, as pytest fixtures: a private Redis server, and the mock Kafka cluster of librdkafka."""

from __future__ import annotations

import itertools
import logging
import shutil
import signal
import socket
import subprocess
import time

import pytest

try:
    from redis import ConnectionError, Redis
except ImportError:
    Redis = None


class RedisServer:
    """Redis server on a free port with its files in a temporary folder; it can be stopped and restarted."""

    def __init__(self, folder):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._folder = folder
        self.start()

    def start(self):
        settings = {"port": self.port, "bind": "127.0.0.1", "dir": self._folder, "appendonly": "yes", "save": ""}
        settings["appendfsync"] = "always"
        arguments = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
        self._process = subprocess.Popen(["redis-server", *arguments], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                self.client().ping()
                return
            except ConnectionError:
                time.sleep(0.02)
        raise RuntimeError("redis-server did not start within 120 s")

    def client(self):
        return Redis.from_url(self.url)

    def stop(self):
        self._process.kill()
        self._process.wait()

    def pause(self):
        """Suspend the server: connections stay open without responses."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self):
        self._process.send_signal(signal.SIGCONT)


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory):
    if Redis is None:
        pytest.skip("the Python package is not installed: pip install '.[redis]'")
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed: apt-get install redis-server")
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


@pytest.fixture
def redis_client(redis_server):
    with redis_server.client() as client:
        client.flushall()
        yield client


@pytest.fixture(scope="session")
def kafka_servers():
    """Address of a mock cluster with one broker; a topic is created at first use and has four partitions."""
    kafka = pytest.importorskip("confluent_kafka", reason="not installed: pip install '.[kafka]'")
    quiet = logging.getLogger("tests.kafka")
    cluster = kafka.Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "logger": quiet})
    (broker,) = cluster.list_topics(timeout=120).brokers.values()
    yield f"{broker.host}:{broker.port}"
    cluster.flush()


_TOPIC_NUMBERS = itertools.count()


@pytest.fixture
def topic():
    """Name of a Kafka topic that no other test uses."""
    return f"topic-{next(_TOPIC_NUMBERS)}"


@pytest.fixture
def send(kafka_servers, topic):
    """Return a function that sends values to a partition of the topic and waits for their delivery."""
    kafka = pytest.importorskip("confluent_kafka", reason="not installed: pip install '.[kafka]'")
    producer = kafka.Producer({"bootstrap.servers": kafka_servers})
    producer.list_topics(topic, timeout=60)

    def send_values(values, partition=0):
        for value in values:
            producer.produce(topic, value, partition=partition)
        assert producer.flush(60) == 0

    return send_values
