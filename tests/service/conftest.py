"""A real service on this machine: a server in a thread with its own state directory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from ripplevec.cluster.sharded_embedder import IN_PROCESS
from ripplevec.service.server import Server
from ripplevec.service.settings import Settings

JSON = {"Content-Type": "application/json"}


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


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Start services with one state directory; the running ones are stopped at the end."""
    running: list[Service] = []

    def start_one(*, ready: bool = True, token: str | None = None, **options: Any) -> Service:
        options = {"state": tmp_path / "state", "port": 0, "parameters": {"dim": 8, "threads": 1}} | options
        running.append(start_service(Settings(**options), ready=ready, token=token))
        return running[-1]

    yield start_one
    for service in running:
        service.stop()


ON_SHARDS: dict[str, Any] = {"shards": 2, "ray_address": IN_PROCESS}


@pytest.fixture(scope="module", params=[{}, ON_SHARDS], ids=["one machine", "shards"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service with a small graph for all tests of a module: its model in one place, then on shards."""
    state = tmp_path_factory.mktemp("service") / "state"
    running = start_service(Settings(state=state, port=0, parameters={"dim": 8, "threads": 1}, **request.param))
    ring = [[f"r{i}", f"r{(i + step) % 40}"] for i in range(40) for step in (1, 2, 5)]
    assert running.edges(*ring).status_code == 200
    yield running
    running.stop()


@dataclass
class Papers:
    """Papers with words as attributes: six on graphs, six on proteins, in one chain."""

    parameters: dict[str, Any]
    document: dict[str, Any]


@pytest.fixture(scope="session")
def papers() -> Papers:
    """Parameters of a model with attributes, and arrivals for it."""
    arrivals = [
        {
            "id": f"p{n}",
            "neighbors": [f"p{n - 1}"] if n else [],
            "attributes": {["graph", "protein"][n // 6]: 1, "of": 1},
        }
        for n in range(12)
    ]
    return Papers({"dim": 8, "attribute_dim": 4, "start_size": 4, "threads": 1}, {"arrivals": arrivals})


@pytest.fixture(scope="module", params=[{}, ON_SHARDS], ids=["one machine", "shards"])
def attributed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, papers: Papers
) -> Iterator[Service]:
    """A service whose vertices have attributes: its model in one place, then on shards."""
    state = tmp_path_factory.mktemp("attributed") / "state"
    running = start_service(Settings(state=state, port=0, parameters=papers.parameters, **request.param))
    assert running.http.post("/v1/arrivals", json=papers.document).status_code == 200
    yield running
    running.stop()
