"""A service under clients that misbehave: what honest clients notice, and what memory it costs.

Three things, each against `ripplevec serve` in a process of its own, on this machine:

- seventeen requests that announce a body of 16 MiB and send nothing: seconds until a write is answered with success;
- 2,000 requests for the nearest vertices whose clients hang up at once: seconds until the next such request is
  answered, and how many times as long as before;
- 23 followers of the changes that read nothing while the feed moves on: megabytes that the process holds more than
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
from _report import run
from _service_process import ServiceProcess, run_service

DIM, DEGREE, REQUEST = 128, 5, 1_000
ANNOUNCED, BODY = 17, 16 << 20
ABANDONED = 2_000
FOLLOWERS, BATCHES_EACH, MOVED_ON, NEW = 23, 8, 120, 2_000
PATIENCE = 120.0  # seconds


def ask(service: ServiceProcess, method: str, path: str, body: Any = None) -> int:
    """The status of an answer, read to its end."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=PATIENCE)
    try:
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": "application/json"} if text else {})
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def until_served(service: ServiceProcess, method: str, path: str, body: Any = None) -> float:
    """Seconds until a request is answered with success, sent again where it is refused for the moment."""
    began = time.perf_counter()
    while (status := ask(service, method, path, body)) != 200:
        if status not in (429, 503) or time.perf_counter() - began > PATIENCE:
            raise SystemExit(f"{method} {path}: {status}")
        time.sleep(0.05)
    return time.perf_counter() - began


def grow(service: ServiceProcess, vertices: int) -> None:
    """A random graph of integer ids, each vertex with edges to earlier ones."""
    src = np.repeat(np.arange(1, vertices), DEGREE)
    dst = (np.random.default_rng(0).random(src.size) * src).astype(np.int64)
    edges = np.stack([src, dst], axis=1).tolist()
    for first in range(0, len(edges), 20 * REQUEST):
        until_served(service, "POST", "/v1/edges", {"edges": edges[first : first + 20 * REQUEST]})


def announced(service: ServiceProcess) -> dict[str, float]:
    """How long a write takes before and beside bodies that are announced and do not come."""
    quiet = until_served(service, "POST", "/v1/edges", {"edges": [[0, "quiet"]]})
    head = (
        b"POST /v1/vectors HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    )
    with ExitStack() as stack:
        for _ in range(ANNOUNCED):
            stack.enter_context(connected(service)).sendall(head + b"Content-Length: %d\r\n\r\n" % BODY)
        time.sleep(0.5)
        beside = until_served(service, "POST", "/v1/edges", {"edges": [[0, "beside"]]})
    return {"announced_quiet_seconds": quiet, "announced_write_seconds": beside}


def abandoned(service: ServiceProcess) -> dict[str, float]:
    """How long the nearest take before and after many who asked for them have hung up."""
    path = "/v1/vertices/5/nearest"
    quiet = float(np.median([until_served(service, "GET", path) for _ in range(9)]))
    for _ in range(ABANDONED):
        with connected(service) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    after = until_served(service, "GET", path)
    return {"abandoned_quiet_seconds": quiet, "abandoned_next_seconds": after, "abandoned_times": after / quiet}


def followed(service: ServiceProcess, vertices: int, followers: int) -> float:
    """Megabytes of a service once its feed has moved on from followers that came along and do not read."""
    random = np.random.default_rng(1)
    follow = b"GET /v1/changes?since=%d HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"

    def write(batches: int) -> None:
        nonlocal vertices
        for _ in range(batches):
            ends = zip(range(vertices, vertices + NEW), random.integers(0, vertices, NEW).tolist(), strict=True)
            until_served(service, "POST", "/v1/edges", {"edges": list(ends)})
            vertices += NEW

    with ExitStack() as stack:
        for number in range(FOLLOWERS):
            sequence = int(service.get("/v1/stats")[1]["sequence"])
            write(BATCHES_EACH)
            if number < followers:
                stack.enter_context(connected(service, 4096)).sendall(follow % sequence)
        write(MOVED_ON)
        time.sleep(1)
        return resident(service)


def resident(service: ServiceProcess) -> float:
    """Megabytes of the process."""
    lines = Path(f"/proc/{service.process.pid}/status").read_text().splitlines()
    return int(dict(line.split(":", 1) for line in lines)["VmRSS"].split()[0]) / 1024


@contextmanager
def connected(service: ServiceProcess, receive: int | None = None) -> Iterator[socket.socket]:
    """A connection, with a small buffer where its owner is not going to read."""
    with socket.socket() as connection:
        connection.settimeout(PATIENCE)
        if receive is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        connection.connect(("127.0.0.1", service.port))
        yield connection


def measure(vertices: int) -> dict[str, Any]:
    """All figures, in one run."""
    figures: dict[str, Any] = {"vertices": vertices}
    options = ("--dim", str(DIM), "--anchor-growth", "0")
    with tempfile.TemporaryDirectory() as folder:
        with run_service(Path(folder) / "asked", *options) as service:
            grow(service, vertices)
            figures |= announced(service) | abandoned(service)
        held = []
        for followers in (0, FOLLOWERS):
            with run_service(Path(folder) / f"followed{followers}", *options) as service:
                grow(service, vertices // 5)
                held.append(followed(service, vertices // 5, followers))
    figures |= {"unfollowed_mb": held[0], "followed_mb": held[1], "followers_hold_mb": held[1] - held[0]}
    return figures


if __name__ == "__main__":
    run(__doc__, measure, "vertices", 100_000)
