"""The fast path returns the same responses as the route."""

from __future__ import annotations

from typing import Any

import pytest


def count_requests(service: Any) -> dict[str, float]:
    """Return the number of successful requests per route."""
    lines = service.http.get("/metrics").text.splitlines()
    found = [
        line.rsplit(" ", 1) for line in lines if line.startswith("ripplevec_requests_total") and 'status="200"' in line
    ]
    return {name.split('route="')[1].split('"')[0]: float(count) for name, count in found}


@pytest.mark.parametrize("name", ["r3", "a/b", "é%20", "nearest", "x/nearest/y"])
def test_fast_read_returns_the_same_as_the_route(service: Any, name: str) -> None:
    assert service.edges([name, "r0"]).status_code == 200
    path = "/v1/vertices/" + name.replace("%", "%25")
    fast, normal = service.http.get(path), service.http.get(path, params={"kind": "auto"})
    assert (fast.status_code, fast.json()) == (200, normal.json())
    assert fast.json()["id"] == name
    assert fast.headers["cache-control"] == normal.headers["cache-control"]


def test_fast_read_is_counted_under_its_route(service: Any) -> None:
    route = "/v1/vertices/{id}"
    before = count_requests(service).get(route, 0.0)
    service.http.get("/v1/vertices/r1")
    service.http.get("/v1/vertices/r1?kind=text")
    assert count_requests(service)[route] == before + 2


def test_fast_read_errors_come_from_the_route(service: Any) -> None:
    unknown = service.http.get("/v1/vertices/unknown")
    assert (unknown.status_code, "unknown" in unknown.json()["error"]) == (404, True)
    assert service.http.get("/v1/vertices/r1/nearest").json()["nearest"]
    assert service.http.head("/v1/vertices/r1").status_code == 405


def test_method_that_a_path_does_not_have_is_refused_with_those_it_has(service: Any) -> None:
    answer = service.http.post("/v1/vertices/r1")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "DELETE, GET")
    assert answer.json()["error"] == "method: expected DELETE or GET, got POST"


def test_fast_read_during_recovery_returns_503(service: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service.runtime, "status", "recovering")
    assert service.http.get("/v1/vertices/r1").status_code == 503
