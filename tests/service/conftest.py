"""Services for the tests in this folder: see `running_service.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from running_service import PAPERS, Papers, Service, serve_papers, serve_ring, start_service

from ripplevec.cluster.sharded_embedder import IN_PROCESS
from ripplevec.service.settings import Settings

JSON = {"Content-Type": "application/json"}


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
    with serve_ring(tmp_path_factory.mktemp("service") / "state", **request.param) as running:
        yield running


@pytest.fixture(scope="session")
def papers() -> Papers:
    """Parameters of a model with attributes, and arrivals for it."""
    return PAPERS


@pytest.fixture(scope="module", params=[{}, ON_SHARDS], ids=["one machine", "shards"])
def attributed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service whose vertices have attributes: its model in one place, then on shards."""
    with serve_papers(tmp_path_factory.mktemp("attributed") / "state", **request.param) as running:
        yield running
