"""The short way answers as the long one does."""

from __future__ import annotations

from typing import Any

import pytest


def counted(service: Any) -> dict[str, float]:
    """How often each route was counted with success."""
    lines = service.http.get("/metrics").text.splitlines()
    found = [
        line.rsplit(" ", 1) for line in lines if line.startswith("ripplevec_requests_total") and 'status="200"' in line
    ]
    return {name.split('route="')[1].split('"')[0]: float(count) for name, count in found}


@pytest.mark.parametrize("name", ["r3", "a/b", "é%20", "nearest", "x/nearest/y"])
def test_fast_read_returns_the_same_as_the_route(service: Any, name: str) -> None:
    assert service.edges([name, "r0"]).status_code == 200
    path = "/v1/vertices/" + name.replace("%", "%25")
    short, long = service.http.get(path), service.http.get(path, params={"kind": "auto"})
    assert (short.status_code, short.json()) == (200, long.json())
    assert short.json()["id"] == name
    assert short.headers["cache-control"] == long.headers["cache-control"]


def test_fast_read_is_counted_under_its_route(service: Any) -> None:
    route = "/v1/vertices/{id}"
    before = counted(service).get(route, 0.0)
    service.http.get("/v1/vertices/r1")
    service.http.get("/v1/vertices/r1?kind=text")
    assert counted(service)[route] == before + 2


def test_fast_read_errors_come_from_the_route(service: Any) -> None:
    unknown = service.http.get("/v1/vertices/nobody")
    assert (unknown.status_code, "nobody" in unknown.json()["error"]) == (404, True)
    assert service.http.get("/v1/vertices/r1/nearest").json()["nearest"]
    assert service.http.head("/v1/vertices/r1").status_code == 405


def test_fast_read_during_recovery_returns_503(service: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service.runtime, "status", "recovering")
    assert service.http.get("/v1/vertices/r1").status_code == 503
