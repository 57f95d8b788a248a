"""The endpoints of the live page."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest


def test_map_endpoint_returns_a_point_per_vertex(service: Any) -> None:
    answer = service.http.get("/v1/map").json()
    assert answer["whole"]
    assert sorted(answer["points"]["id"]) == sorted(f"r{i}" for i in range(40))
    assert {len(column) for column in answer["points"].values()} == {40}
    assert answer["model"]["vertices"] == 40


def test_map_endpoint_with_tick_returns_updates(start: Callable[..., Any]) -> None:
    service = start()
    ring = [[f"r{i}", f"r{(i + step) % 40}"] for i in range(40) for step in (1, 2, 5)]
    service.edges(*ring)
    seen = service.http.get("/v1/map").json()
    service.edges(["new", "r3"], ["new", "r4"])
    service.http.put("/v1/labels", json={"labels": [["r20", "red"]]})
    since = {"epoch": seen["epoch"], "tick": seen["tick"]}
    update = service.http.get("/v1/map", params=since).json()
    labels = dict(zip(update["points"]["id"], update["points"]["label"], strict=True))
    assert not update["whole"]
    assert {"new", "r20"} <= labels.keys()
    assert labels["r20"] == "red"
    assert len(labels) < 41
    assert update["model"]["sequence"] == 2


def test_map_endpoint_concurrent_first_reads_share_one_map(start: Callable[..., Any]) -> None:
    service = start()
    with ThreadPoolExecutor(8) as pool:
        epochs = list(pool.map(lambda _: service.http.get("/v1/map").json()["epoch"], range(16)))
    assert len(set(epochs)) == 1


def test_map_endpoint_after_restart_returns_all_points(start: Callable[..., Any]) -> None:
    service = start()
    service.edges(*[[f"r{i}", f"r{(i + step) % 40}"] for i in range(40) for step in (1, 2, 5)])
    seen = service.http.get("/v1/map").json()
    service.stop()
    again = start().http.get("/v1/map", params={"epoch": seen["epoch"], "tick": seen["tick"]}).json()
    assert again["whole"]
    assert len(again["points"]["id"]) == 40


@pytest.mark.parametrize("query", ["epoch=-1", "tick=x", "epoch=1&tick=1.5"])
def test_map_endpoint_invalid_parameters_are_rejected(service: Any, query: str) -> None:
    assert service.http.get(f"/v1/map?{query}").status_code == 422


def test_around_endpoint_returns_neighbors_and_nearest(service: Any) -> None:
    around = service.http.get("/v1/map/around", params={"id": "r3", "k": 4}).json()
    assert around["id"] == "r3"
    assert around["degree"] == 6
    assert len(around["neighbors"]) == len(around["nearest"]) == 4
    assert {point["id"] for point in around["neighbors"]} <= {f"r{3 + step}" for step in (-5, -2, -1, 1, 2, 5)} | {
        "r38"
    }
    assert [point["id"] for point in around["nearest"]] == [
        name for name, _ in service.http.get("/v1/vertices/r3/nearest?k=4").json()["nearest"]
    ]
    for point in [around, *around["neighbors"], *around["nearest"]]:
        assert isinstance(point["x"], float)
        assert isinstance(point["y"], float)


def test_around_endpoint_distinguishes_integers_and_text(start: Callable[..., Any]) -> None:
    service = start()
    service.edges(*[[i, (i + step) % 40] for i in range(40) for step in (1, 2)])
    service.edges(["1", 7], ["a/b ?", 8])

    def found(id: str, kind: str) -> Any:
        return service.http.get("/v1/map/around", params={"id": id, "kind": kind}).json()

    assert found("1", "auto")["id"] == "1"
    assert found("1", "integer")["id"] == 1
    assert found("2", "auto")["id"] == 2
    assert found("a/b ?", "auto")["degree"] == 1


def test_around_endpoint_unplaced_vertex_has_no_position(start: Callable[..., Any]) -> None:
    service = start()
    service.edges(*[[f"r{i}", f"r{(i + step) % 40}"] for i in range(40) for step in (1, 2, 5)])
    service.http.post("/v1/arrivals", json={"arrivals": [{"id": "alone"}]})
    around = service.http.get("/v1/map/around?id=alone").json()
    assert around["id"] == "alone"
    assert around["degree"] == 0
    assert around["neighbors"] == []
    assert "x" not in around


def test_around_endpoint_unknown_vertex_returns_null_id(service: Any) -> None:
    answer = service.http.get("/v1/map/around?id=unknown")
    assert answer.status_code == 200
    assert answer.json() == {"id": None}


@pytest.mark.parametrize("query", ["", "id=", "id=r1&k=0", "id=r1&k=1000", "id=r1&kind=what", "id=" + "x" * 2000])
def test_around_endpoint_invalid_parameters_are_rejected(service: Any, query: str) -> None:
    assert service.http.get(f"/v1/map/around?{query}").status_code == 422


def test_pulse_endpoint_counts_arrivals(start: Callable[..., Any]) -> None:
    service = start()
    service.http.get("/v1/map/pulse")
    service.edges(*[[f"r{i}", f"r{(i + step) % 40}"] for i in range(40) for step in (1, 2, 5)])
    pulse = service.http.get("/v1/map/pulse").json()
    assert sum(second["arrivals"] for second in pulse["seconds"]) == 40
    assert sum(second["events"] for second in pulse["seconds"]) == 120
    assert any(second["p99"] for second in pulse["seconds"])


def test_page_needs_no_token_but_its_data_does(start: Callable[..., Any]) -> None:
    from ripplevec.service.security import Tokens

    token = "r" * 20
    service = start(tokens=Tokens.of(read=[token]), ready=True)
    assert service.http.get("/").status_code == 200
    assert service.http.get("/static/main.js").status_code == 200
    for path in ("/v1/map", "/v1/map/pulse", "/v1/map/around?id=a"):
        assert service.http.get(path).status_code == 401
        assert service.http.get(path, headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_around_endpoint_lists_vertices_with_similar_attributes(attributed: Any, service: Any) -> None:
    around = attributed.http.get("/v1/map/around", params={"id": "p7", "k": 5}).json()
    assert {point["id"] for point in around["nearest_by_attributes"]} == {"p6", "p8", "p9", "p10", "p11"}
    assert service.http.get("/v1/map/around", params={"id": "r3"}).json()["nearest_by_attributes"] == []
