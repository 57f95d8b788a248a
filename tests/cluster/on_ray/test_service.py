"""Tests of a service whose shards are Ray actors: the HTTP tests of one machine, and lost shards."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from running_service import RING, Service, serve_papers, serve_ring
from service.routes import test_changes, test_operations, test_vertices, test_writes

from ripplevec import Embedder

SHARDS = 2
RECOVERY_SECONDS = 120.0


@contextmanager
def on_ray(serve: Callable[..., Any], state: Path, **options: Any) -> Iterator[Service]:
    """Run a service on Ray shards, whose actors end after it."""
    with ExitStack() as after_service, serve(state, shards=SHARDS, **options) as service:
        after_service.callback(service.runtime.session.model.close)
        yield service


@pytest.fixture(scope="module")
def find_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Service]]:
    """Return a function that starts a service, once for the tests of each file."""
    with ExitStack() as running:

        @cache
        def find(serve: Callable[..., Any], file: str) -> Service:
            return running.enter_context(on_ray(serve, tmp_path_factory.mktemp("service") / "state"))

        yield find


@pytest.fixture
def service(request: pytest.FixtureRequest, find_service: Any) -> Service:
    return find_service(serve_ring, request.function.__module__)


@pytest.fixture
def attributed(request: pytest.FixtureRequest, find_service: Any) -> Service:
    return find_service(serve_papers, request.function.__module__)


def can_run_on_ray(test: Any) -> bool:
    """Return whether a test uses a running service, and patches nothing: actors are other processes."""
    names = inspect.signature(test).parameters if inspect.isfunction(test) else {}
    return ("service" in names or "attributed" in names) and "monkeypatch" not in names


for module in (test_vertices, test_writes, test_operations, test_changes):
    globals().update({name: test for name, test in vars(module).items() if can_run_on_ray(test)})


@pytest.mark.parametrize("shard", range(SHARDS))
def test_killed_shard_is_recovered_and_every_batch_is_applied_once(tmp_path: Path, kill_shard: Any, shard: int) -> None:
    parameters = {"dim": 8, "threads": 1, "anchor_growth": 0}
    single = Embedder(**parameters)
    single.partial_fit(RING)
    with on_ray(serve_ring, tmp_path / "state", parameters=parameters) as service:
        for number in range(3):
            edges = [[f"n{number}", f"r{number}"], [f"n{number}", f"r{number + 7}"]]
            single.partial_fit(edges)
            if number == 1:
                kill_shard(service.runtime.session.model._actors, shard)
            assert send_until_accepted(service, edges, f"key {number}") == number + 2
        assert service.http.get("/v1/stats?digest=true").json()["vertices"] == len(single.ids)
        assert service.runtime.session.recoveries == 1
        assert service.digest() == single.digest()


def send_until_accepted(service: Service, edges: list[list[str]], key: str) -> int:
    """Send a batch under a key, again while the service recovers; return its sequence number."""
    deadline = time.monotonic() + RECOVERY_SECONDS
    while (answer := service.edges(*edges, key=key)).status_code == 503 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["sequence"])
