"""Benchmark of a service under misbehaving clients: latency of other clients, and memory.

Three cases, each against `ripplevec serve` in a separate process on this machine:

- seventeen requests that announce a body of 16 MiB and send nothing: seconds until a write succeeds;
- 2,000 requests for nearest vertices whose clients disconnect at once: seconds until the next such request is answered,
  and the ratio to an idle service;
- 23 followers of the changes that read nothing while the feed moves on: additional megabytes of memory, compared with
  the same service without followers.

    python benchmarks/overload.py [--vertices 100000] [--json FILE]
"""

from __future__ import annotations

import http.client
import json
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from _report import run_benchmark
from _service_process import ServiceProcess, run_service

DIM, DEGREE, EDGES_PER_REQUEST = 128, 5, 20_000
ANNOUNCED_BODIES, BODY_BYTES = 17, 16 << 20
ABANDONED_REQUESTS = 2_000
FOLLOWERS, BATCHES_PER_FOLLOWER, LATER_BATCHES, ARRIVALS_PER_BATCH = 23, 8, 120, 2_000
TIMEOUT_SECONDS = 120.0


def send(service: ServiceProcess, method: str, path: str, body: Any = None) -> int:
    """Send a request, read the whole response and return its status."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=TIMEOUT_SECONDS)
    try:
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": "application/json"} if text else {})
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def time_until_success(service: ServiceProcess, method: str, path: str, body: Any = None) -> float:
    """Return the seconds until a request succeeds; it is repeated while the service is overloaded."""
    start = time.perf_counter()
    while (status := send(service, method, path, body)) != 200:
        if status not in (429, 503) or time.perf_counter() - start > TIMEOUT_SECONDS:
            raise SystemExit(f"{method} {path}: {status}")
        time.sleep(0.05)
    return time.perf_counter() - start


def build_graph(service: ServiceProcess, vertices: int) -> None:
    """Send a random graph with integer ids, in which each vertex has edges to earlier ones."""
    src = np.repeat(np.arange(1, vertices), DEGREE)
    dst = (np.random.default_rng(0).random(src.size) * src).astype(np.int64)
    edges = np.stack([src, dst], axis=1).tolist()
    for start in range(0, len(edges), EDGES_PER_REQUEST):
        time_until_success(service, "POST", "/v1/edges", {"edges": edges[start : start + EDGES_PER_REQUEST]})


def measure_announced_bodies(service: ServiceProcess) -> dict[str, float]:
    """Time a write on an idle service, and during requests that announce a body and do not send it."""
    idle = time_until_success(service, "POST", "/v1/edges", {"edges": [[0, "quiet"]]})
    head = (
        b"POST /v1/vectors HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    )
    with ExitStack() as stack:
        for _ in range(ANNOUNCED_BODIES):
            stack.enter_context(connect(service)).sendall(head % BODY_BYTES)
        time.sleep(0.5)
        loaded = time_until_success(service, "POST", "/v1/edges", {"edges": [[0, "beside"]]})
    return {"announced_quiet_seconds": idle, "announced_write_seconds": loaded}


def measure_abandoned_requests(service: ServiceProcess) -> dict[str, float]:
    """Time a nearest request on an idle service, and after many clients have disconnected from the same request."""
    path = "/v1/vertices/5/nearest"
    idle = float(np.median([time_until_success(service, "GET", path) for _ in range(9)]))
    for _ in range(ABANDONED_REQUESTS):
        with connect(service) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    loaded = time_until_success(service, "GET", path)
    return {"abandoned_quiet_seconds": idle, "abandoned_next_seconds": loaded, "abandoned_times": loaded / idle}


def measure_followers(service: ServiceProcess, vertices: int, followers: int) -> float:
    """Return the memory of a service in MB after its feed has moved on from followers that do not read."""
    random = np.random.default_rng(1)
    request = b"GET /v1/changes?since=%d HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"

    def write_batches(batches: int) -> None:
        nonlocal vertices
        for _ in range(batches):
            arrivals = range(vertices, vertices + ARRIVALS_PER_BATCH)
            neighbors = random.integers(0, vertices, ARRIVALS_PER_BATCH).tolist()
            edges = list(zip(arrivals, neighbors, strict=True))
            time_until_success(service, "POST", "/v1/edges", {"edges": edges})
            vertices += ARRIVALS_PER_BATCH

    with ExitStack() as stack:
        for number in range(FOLLOWERS):
            sequence = int(service.get("/v1/stats")[1]["sequence"])
            write_batches(BATCHES_PER_FOLLOWER)
            if number < followers:
                stack.enter_context(connect(service, 4096)).sendall(request % sequence)
        write_batches(LATER_BATCHES)
        time.sleep(1)
        return resident_megabytes(service)


def resident_megabytes(service: ServiceProcess) -> float:
    """Return the resident memory of the process."""
    lines = Path(f"/proc/{service.process.pid}/status").read_text().splitlines()
    return int(dict(line.split(":", 1) for line in lines)["VmRSS"].split()[0]) / 1024


@contextmanager
def connect(service: ServiceProcess, receive_buffer: int | None = None) -> Iterator[socket.socket]:
    """Open a connection; a small receive buffer suits a client that does not read."""
    with socket.socket() as connection:
        connection.settimeout(TIMEOUT_SECONDS)
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.connect(("127.0.0.1", service.port))
        yield connection


def measure(vertices: int) -> dict[str, Any]:
    """Run all three cases."""
    metrics: dict[str, Any] = {"vertices": vertices}
    options = ("--dim", str(DIM), "--anchor-growth", "0")
    with tempfile.TemporaryDirectory() as folder:
        with run_service(Path(folder) / "requests", *options) as service:
            build_graph(service, vertices)
            metrics |= measure_announced_bodies(service) | measure_abandoned_requests(service)
        megabytes = []
        for followers in (0, FOLLOWERS):
            with run_service(Path(folder) / f"followers{followers}", *options) as service:
                build_graph(service, vertices // 5)
                megabytes.append(measure_followers(service, vertices // 5, followers))
    without, with_followers = megabytes
    metrics |= {"unfollowed_mb": without, "followed_mb": with_followers, "followers_hold_mb": with_followers - without}
    return metrics


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "vertices", 100_000)
