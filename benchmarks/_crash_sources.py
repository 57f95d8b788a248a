"""Event sources of the crash test: calls with keys, a file, a folder, Redis, Kafka."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ripplevec.io.registry import stream_from

BATCH_SIZE = 20
"""Events per batch that a source delivers."""

KINDS = ("calls", "file", "folder", "redis", "kafka")

_KAFKA_CLUSTER = """
import confluent_kafka, logging, sys
cluster = confluent_kafka.Producer(
    {"bootstrap.servers": "none", "test.mock.num.brokers": 1, "logger": logging.getLogger("quiet")}
)
(broker,) = cluster.list_topics(timeout=30).brokers.values()
print(f"{broker.host}:{broker.port}", flush=True)
sys.stdin.read()
"""


def generate_events(count: int, seed: int) -> list[dict[str, Any]]:
    """Generate a growing graph with integer and text ids, weights, and removals of edges and vertices."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    present: dict[frozenset[Any], tuple[Any, Any]] = {}
    for number in range(count):
        ends = rng.integers(0, 10 + number // 3), rng.integers(0, 9 + number // 4)
        src, dst = (int(end) if end % 5 else f"v{end}" for end in ends)
        if number % 29 == 28 or number % 97 == 96:
            src, dst = list(present.values())[int(rng.integers(len(present)))]
            vertex = number % 29 != 28
            rows.append({"src": src, "dst": src if vertex else dst, "op": "remove_vertex" if vertex else "remove"})
            removed = [edge for edge in present if src in edge] if vertex else [frozenset((src, dst))]
            for edge in removed:
                del present[edge]
            continue
        rows.append({"src": src, "dst": dst})
        if number % 7 == 3:
            rows[-1]["weight"] = float(2.0 ** rng.integers(-2, 3))
        if src != dst:
            present[frozenset((src, dst))] = src, dst
    return rows


def prepare_source(
    kind: str, rows: list[dict[str, Any]], directory: Path, brokers: dict[str, str]
) -> Callable[[], Any]:
    """Store the events for a kind of source; return the function that creates the source in each process."""
    lines = [json.dumps(row).encode() for row in rows]
    reads: dict[str, Any] = {"batch_size": BATCH_SIZE, "fixed": True}
    if kind == "file":
        (directory / "edges.jsonl").write_bytes(b"\n".join(lines) + b"\n")
        return lambda: stream_from(directory / "edges.jsonl", follow=True, **reads)
    if kind == "folder":
        (directory / "edges").mkdir()
        for first in range(0, len(lines), 10 * BATCH_SIZE):
            (directory / "edges" / f"{first:08}.jsonl").write_bytes(
                b"\n".join(lines[first : first + 10 * BATCH_SIZE]) + b"\n"
            )
        return lambda: stream_from(directory / "edges", **reads)
    if kind == "redis":
        return _prepare_redis(lines, f"edges-{directory.name}", brokers["redis"], reads)
    return _prepare_kafka(lines, f"edges-{directory.name}", brokers["kafka"], reads)


def _prepare_redis(lines: list[bytes], stream: str, url: str, reads: dict[str, Any]) -> Callable[[], Any]:
    from redis import Redis

    with Redis.from_url(url) as client, client.pipeline() as pipe:
        for line in lines:
            pipe.xadd(stream, {"data": line})
        pipe.execute()
    return lambda: stream_from(url, stream=stream, group=f"group-{os.getppid()}", **reads)


def _prepare_kafka(lines: list[bytes], topic: str, servers: str, reads: dict[str, Any]) -> Callable[[], Any]:
    code = (
        "import sys, confluent_kafka\nproducer = confluent_kafka.Producer({'bootstrap.servers': sys.argv[1]})\n"
        "partitions = len(producer.list_topics(sys.argv[2], timeout=30).topics[sys.argv[2]].partitions)\n"
        "for number, line in enumerate(sys.stdin.buffer.read().splitlines()):\n"
        f"    producer.produce(sys.argv[2], line, partition=number // {BATCH_SIZE} % partitions)\n"
        "assert producer.flush(60) == 0\n"
    )  # in a separate process: its threads must not be forked
    subprocess.run([sys.executable, "-c", code, servers, topic], input=b"\n".join(lines), check=True)
    return lambda: stream_from(f"kafka://{servers}/{topic}?group=crash", **reads)


@contextmanager
def running_brokers(kinds: tuple[str, ...], directory: Path) -> Iterator[dict[str, str]]:
    """Run the brokers that the kinds of sources need, each in its own process; yield their addresses."""
    processes: list[subprocess.Popen[Any]] = []
    addresses: dict[str, str] = {}
    try:
        if "redis" in kinds:
            processes.append(_start_redis(directory, addresses))
        if "kafka" in kinds:
            pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            broker = subprocess.Popen([sys.executable, "-c", _KAFKA_CLUSTER], **pipes)
            processes.append(broker)
            assert broker.stdout is not None
            addresses["kafka"] = broker.stdout.readline().strip()
        yield addresses
    finally:
        for process in processes:
            process.send_signal(signal.SIGKILL)
            process.wait()


def _start_redis(directory: Path, addresses: dict[str, str]) -> subprocess.Popen[Any]:
    if shutil.which("redis-server") is None:
        raise SystemExit(
            "redis-server is not installed. Run apt-get install redis-server, or omit redis from --sources."
        )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"port": port, "bind": "127.0.0.1", "dir": directory, "appendonly": "yes", "save": ""}
    arguments = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    process = subprocess.Popen(["redis-server", *arguments], stdout=subprocess.DEVNULL)
    for _ in range(500):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.02)
    addresses["redis"] = f"redis://127.0.0.1:{port}/0"
    return process
