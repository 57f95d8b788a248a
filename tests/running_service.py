"""A real service on this machine, a server in a thread with its own state directory, and two small graphs for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from ripplevec.service.server import Server
from ripplevec.service.settings import Settings

RING = [[f"r{i}", f"r{(i + step) % 40}"] for i in range(40) for step in (1, 2, 5)]


@dataclass
class Service:
    server: Server
    thread: threading.Thread
    http: httpx.Client

    @property
    def url(self) -> str:
        return str(self.http.base_url).rstrip("/")

    @property
    def runtime(self) -> Any:
        return self.server.runtime

    def digest(self) -> str:
        return str(self.http.get("/v1/stats?digest=true").json()["digest"])

    def edges(self, *edges: Any, key: str | None = None) -> httpx.Response:
        return self.http.post("/v1/edges", json={"edges": edges} | ({"key": key} if key else {}))

    def stop(self) -> None:
        self.http.close()
        self.runtime.begin_stop()
        self.server.should_exit = True
        self.thread.join(60)
        assert not self.thread.is_alive()


def start_service(settings: Settings, *, ready: bool = True, token: str | None = None) -> Service:
    """Start a service and wait until it listens, and by default until it is ready."""
    server = Server(settings)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    service = Service(server, thread, httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60))
    while ready and service.http.get("/readyz").status_code != 200:
        time.sleep(0.005)
    return service


@contextmanager
def serve_ring(state: Path, **options: Any) -> Iterator[Service]:
    """Run a service with a ring of 40 vertices."""
    options = {"state": state, "port": 0, "parameters": {"dim": 8, "threads": 1}} | options
    service = start_service(Settings(**options))
    try:
        assert service.edges(*RING).status_code == 200
        yield service
    finally:
        service.stop()


@contextmanager
def serve_papers(state: Path, **options: Any) -> Iterator[Service]:
    """Run a service whose vertices have attributes."""
    service = start_service(Settings(state=state, port=0, parameters=PAPERS.parameters, **options))
    try:
        assert service.http.post("/v1/arrivals", json=PAPERS.document).status_code == 200
        yield service
    finally:
        service.stop()


@dataclass
class Papers:
    """Papers with words as attributes: six on graphs, six on proteins, in one chain."""

    parameters: dict[str, Any]
    document: dict[str, Any]


PAPERS = Papers(
    {"dim": 8, "attribute_dim": 4, "start_size": 4, "threads": 1},
    {
        "arrivals": [
            {
                "id": f"p{n}",
                "neighbors": [f"p{n - 1}"] if n else [],
                "attributes": {["graph", "protein"][n // 6]: 1, "of": 1},
            }
            for n in range(12)
        ]
    },
)
