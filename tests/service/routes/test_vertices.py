"""Endpoints for reads and labels: results, paths with any id, limits, disconnected clients."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np
import pyarrow as pa
import pytest

from ripplevec.client import Client, protocol
from ripplevec.service.lifecycle import SEARCH_THREADS
from ripplevec.service.settings import Limits


def test_vertex_has_vector_degree_and_age(start: Any) -> None:
    service = start()
    service.edges(["a", "b"], ["a", "c", 2.0])
    service.edges(["late", "a"])
    found = service.http.get("/v1/vertices/a").json()
    assert (found["id"], found["degree"], found["strength"]) == ("a", 3, 4.0)
    assert (found["arrival"], found["age"], found["sequence"]) == (0, 3, 2)
    assert service.http.get("/v1/vertices/late").json()["age"] == 0
    assert len(found["vector"]) == 8


def test_vectors_match_the_model(service: Any) -> None:
    answer = service.http.post("/v1/vectors", json={"ids": ["r3", "unknown", "r1"]}).json()
    assert answer["ids"] == ["r3", "r1"]
    assert answer["missing"] == ["unknown"]
    assert np.array_equal(np.array(answer["vectors"], np.float32), service.runtime.model.vectors(["r3", "r1"]))
    assert answer["sequence"] == service.runtime.model.sequence
    assert np.any(answer["vectors"])


def test_vectors_with_accept_header_are_sent_as_arrow(service: Any) -> None:
    kind = "application/vnd.apache.arrow.stream"
    answer = service.http.post("/v1/vectors", json={"ids": ["r3", 5, "r1"]}, headers={"Accept": kind})
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table["row"].to_pylist() == [0, 2]
    assert np.array_equal(
        np.array(table["vector"].to_pylist(), np.float32), service.runtime.model.vectors(["r3", "r1"])
    )
    assert int(table.schema.metadata[b"sequence"]) == service.runtime.model.sequence


def test_vectors_of_no_ids_are_empty(service: Any) -> None:
    answer = service.http.post("/v1/vectors", json={"ids": []}).json()
    assert (answer["ids"], answer["vectors"], answer["missing"]) == ([], [], [])


def test_nearest_to_vertex_and_to_vector_agree_with_the_model(service: Any) -> None:
    by_id = service.http.get("/v1/vertices/r0/nearest?k=4").json()["nearest"]
    assert [tuple(pair) for pair in by_id] == service.runtime.model.nearest("r0", 4)
    vector = service.http.get("/v1/vertices/r0").json()["vector"]
    by_vector = service.http.post("/v1/nearest", json={"vector": vector, "k": 1}).json()["nearest"]
    assert by_vector[0][0] == "r0"


def test_nearest_many_agrees_with_the_model(service: Any) -> None:
    model, names = service.runtime.model, ["r0", "r5"]
    for body, expected in (
        ({"vertices": names, "k": 3}, model.nearest_many(names, 3)),
        ({"vertices": names, "among": ["r1", "r2"]}, model.nearest_many(names, among=["r1", "r2"])),
        ({"vectors": model[names].tolist(), "k": 2}, model.nearest_many(model[names], 2)),
        ({"vertices": []}, []),
    ):
        answer = service.http.post("/v1/nearest/many", json=body).json()
        assert [[tuple(pair) for pair in found] for found in answer["nearest"]] == expected
        assert answer["sequence"] == model.sequence


def test_degrees_agree_with_the_model(service: Any) -> None:
    answer = service.http.post("/v1/degrees", json={"ids": ["r0", "r5"]}).json()
    assert answer["degrees"] == service.runtime.model.degree(["r0", "r5"]).tolist()
    assert answer["sequence"] == service.runtime.model.sequence


def test_ages_agree_with_the_model(service: Any) -> None:
    answer = service.http.post("/v1/ages", json={"ids": ["r0", "r5"]}).json()
    assert answer["ages"] == service.runtime.model.age(["r0", "r5"]).tolist()
    assert answer["sequence"] == service.runtime.model.sequence


@pytest.mark.parametrize("limit", [{}, {"limit": None}, {"limit": 2}, {"limit": 0}, {"limit": 1 << 70}])
def test_neighbors_agree_with_the_model(service: Any, limit: dict[str, Any]) -> None:
    answer = service.http.post("/v1/neighbors", json={"vertex": "r0", **limit}).json()
    assert [tuple(pair) for pair in answer["neighbors"]] == service.runtime.model.neighbors("r0")[: limit.get("limit")]
    assert answer["sequence"] == service.runtime.model.sequence


def test_neighbors_above_the_limit_of_a_response_are_refused(start: Any) -> None:
    service = start(limits=Limits(ids=3))
    service.edges(*(["hub", number] for number in range(4)))
    answer = service.http.post("/v1/neighbors", json={"vertex": "hub"})
    assert (answer.status_code, answer.json()["error"]) == (
        413,
        "expected at most 3 neighbors in one response, got more. Ask for the latest ones with `limit`",
    )
    answer = service.http.post("/v1/neighbors", json={"vertex": "hub", "limit": 3}).json()
    assert answer["neighbors"] == [[3, 1.0], [2, 1.0], [1, 1.0]]


def test_queries_that_are_compared_with_too_many_vectors_are_refused(start: Any) -> None:
    service = start(limits=Limits(comparisons=20))
    service.edges(*(["hub", number] for number in range(9)))
    for path, name in (("/v1/nearest/many", "nearest"), ("/v1/recommend", "recommended")):
        answer = service.http.post(path, json={"vertices": ["hub", 1, 2]})
        assert answer.status_code == 413
        assert answer.json()["error"] == "expected at most 2 queries of 10 vectors each, got 3"
        for accepted in ({"vertices": ["hub", 1]}, {"vertices": ["hub", 1, 2], "among": [1, 2, 3]}):
            answer = service.http.post(path, json=accepted)
            assert len(answer.json()[name]) == len(accepted["vertices"])


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/degrees", {"ids": ["r0", "x", 7]}),
        ("/v1/ages", {"ids": ["r0", "x", 7]}),
        ("/v1/neighbors", {"vertex": "x"}),
        ("/v1/nearest/many", {"vertices": ["x", 7]}),
    ],
)
def test_unknown_vertices_are_listed_in_the_response(service: Any, path: str, body: Any) -> None:
    answer = service.http.post(path, json=body)
    assert answer.status_code == 404
    assert answer.json()["missing"][0] == "x"


def test_preview_adds_nothing(service: Any) -> None:
    before = service.digest()
    answer = service.http.post("/v1/preview", json={"neighbors": ["r0", "r1"], "weights": [1, 2]}).json()
    assert np.array_equal(np.array(answer["vector"], np.float32), service.runtime.model.preview(["r0", "r1"], [1, 2]))
    assert service.digest() == before


def test_score_and_recommend_agree_with_the_model(service: Any) -> None:
    model = service.runtime.model
    pairs, newcomers = [["r0", "r3"], ["new", "r1"]], {"new": ["r5", "r6"]}
    body = {"pairs": pairs, "newcomers": list(newcomers.items())}
    answer = service.http.post("/v1/score", json=body).json()
    assert np.array_equal(np.array(answer["scores"], np.float32), model.score(pairs, newcomers=newcomers))
    assert answer["sequence"] == model.sequence
    body = {"vertices": ["r0", "new"], "k": 3, "among": ["r3", "r4", "r9"], "newcomers": list(newcomers.items())}
    answer = service.http.post("/v1/recommend", json=body).json()
    expected = model.recommend(["r0", "new"], 3, among=["r3", "r4", "r9"], newcomers=newcomers)
    assert [[tuple(pair) for pair in found] for found in answer["recommended"]] == expected
    assert answer["sequence"] == model.sequence


def test_recommend_with_exclude_null_includes_neighbors(service: Any) -> None:
    answers = [
        service.http.post("/v1/recommend", json={"vertices": ["r0"], "k": 4, "exclude": exclude}).json()
        for exclude in ("neighbors", None)
    ]
    neighbors = {name for name, _ in service.runtime.model.neighbors("r0")}
    kept = [neighbors & {name for name, _ in answer["recommended"][0]} for answer in answers]
    assert not kept[0]
    assert kept[1]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/degrees", {"ids": ["r0"] * 10_001}, 413),
        ("/v1/ages", {"ids": ["r0"] * 10_001}, 413),
        ("/v1/neighbors", {"vertex": "r0", "limit": -1}, 422),
        ("/v1/attributes/nearest", {}, 422),
        ("/v1/attributes/nearest", {"vertex": "r0", "attributes": {"x": 1}}, 422),
        ("/v1/attributes/nearest", {"vertex": "r0", "among": ["r1"] * 10_001}, 413),
        ("/v1/nearest/many", {}, 422),
        ("/v1/nearest/many", {"vertices": ["r0"], "vectors": []}, 422),
        ("/v1/nearest/many", {"vectors": [[1.0]]}, 422),
        ("/v1/nearest/many", {"vertices": ["r0"] * 11, "k": 1_000}, 413),
        ("/v1/nearest/many", {"vertices": ["r0"], "among": ["r1"] * 10_001}, 413),
        ("/v1/score", {"pairs": [["r0", "unknown"]]}, 404),
        ("/v1/score", {"pairs": [["r0"]]}, 422),
        ("/v1/score", {"pairs": [["new", "r0"]], "newcomers": [["r1", ["r0"]]]}, 422),
        ("/v1/score", {"pairs": [["r0", "r1"]] * 10_001}, 413),
        ("/v1/recommend", {"vertices": ["unknown"]}, 404),
        ("/v1/recommend", {"vertices": ["r0"], "exclude": "itself"}, 422),
        ("/v1/recommend", {"vertices": ["r0"], "k": 1_001}, 422),
        ("/v1/recommend", {"vertices": ["r0"] * 11, "k": 1_000}, 413),
        ("/v1/recommend", {"vertices": ["r0"], "among": ["r1"] * 10_001}, 413),
    ],
)
def test_reads_that_cannot_be_answered_are_rejected(service: Any, path: str, body: Any, status: int) -> None:
    assert service.http.post(path, json=body).status_code == status


def test_preview_with_british_spelling_is_accepted(service: Any) -> None:
    answers = [service.http.post("/v1/preview", json={key: ["r0", "r1"]}) for key in ("neighbors", "neighbours")]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()


@pytest.mark.parametrize(
    ("method", "path", "body", "key"),
    [
        ("POST", "/v1/vectors", {"ids": ["r0"], "more": 1}, "more"),
        ("POST", "/v1/nearest", {"vector": [0.5] * 8, "K": 3}, "K"),
        ("POST", "/v1/preview", {"neighbors": ["r0"], "weigths": [1]}, "weigths"),
        ("POST", "/v1/preview", {"neighbors": ["r0"], "neighbours": ["r1"]}, "neighbours"),
        ("PUT", "/v1/labels", {"labels": [], "label": []}, "label"),
    ],
)
def test_read_with_unknown_key_is_rejected_and_names_it(
    service: Any, method: str, path: str, body: Any, key: str
) -> None:
    answer = service.http.request(method, path, json=body)
    assert answer.status_code == 422
    assert f"got {key}." in answer.json()["error"]
    assert "expected only the keys" in answer.json()["error"]


@pytest.mark.parametrize("name", ["a/b", "ü", "a b", "100%", "?x=1", "#", "nearest", "a/nearest/b", "\\", "a&b"])
def test_vertex_path_may_contain_any_text(service: Any, name: str) -> None:
    assert service.edges([name, "r0"]).status_code == 200
    assert service.http.get(f"/v1/vertices/{quote(name, safe='')}").json()["id"] == name
    assert service.http.get(f"/v1/vertices/{quote(name, safe='')}/nearest").status_code == 200


def test_labels_are_set_removed_and_persisted(start: Any) -> None:
    service = start()
    service.edges(["a", 1])
    digest = service.digest()
    assert service.http.put("/v1/labels", json={"labels": [["a", "red"], [1, "blue"]]}).json() == {"labels": 2}
    assert service.http.put("/v1/labels", json={"labels": [[1, None]]}).json() == {"labels": 1}
    assert service.digest() == digest
    service.stop()
    service = start()
    assert service.http.get("/v1/vertices/a").json()["label"] == "red"
    assert service.http.get("/v1/vertices/1").json()["label"] is None


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/v1/vertices/unknown", None, 404),
        ("GET", "/v1/vertices/unknown/nearest", None, 404),
        ("GET", "/v1/vertices/r0/nearest?k=0", None, 422),
        ("GET", "/v1/vertices/r0/nearest?k=100000", None, 422),
        ("GET", "/v1/vertices/r0?kind=other", None, 422),
        ("POST", "/v1/vectors", {"ids": "r0"}, 422),
        ("POST", "/v1/vectors", {"ids": [1.5]}, 422),
        ("POST", "/v1/vectors", {"ids": [None]}, 422),
        ("POST", "/v1/vectors", {"ids": [True]}, 422),
        ("POST", "/v1/vectors", {"ids": ["r0"], "more": 1}, 422),
        ("POST", "/v1/vectors", {"ids": ["x"] * 10_001}, 413),
        ("POST", "/v1/nearest", {"vector": [1, 2]}, 422),
        ("POST", "/v1/nearest", {"vector": ["a"] * 8}, 422),
        ("POST", "/v1/nearest", {"vector": [0.5] * 8, "k": 0}, 422),
        ("POST", "/v1/preview", {"neighbors": ["unknown"]}, 404),
        ("POST", "/v1/preview", {"neighbors": ["r0"], "weights": [1, 2]}, 422),
        ("POST", "/v1/preview", {"neighbors": ["r0"], "weights": [-1]}, 422),
        ("PUT", "/v1/labels", {"labels": [["a", 1]]}, 422),
        ("PUT", "/v1/labels", {"labels": [["a", "x" * 300]]}, 422),
        ("GET", "/v1/nothing", None, 404),
        ("PATCH", "/v1/edges", None, 405),
    ],
)
def test_read_invalid_request_is_rejected_with_a_reason(
    service: Any, method: str, path: str, body: Any, status: int
) -> None:
    answer = service.http.request(method, path, **({} if body is None else {"json": body}))
    assert answer.status_code == status
    assert answer.json()["error"]


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b'{"ids": [NaN]}', b'{"ids": ["\\ud800"]}', b"\xff\xfe"])
@pytest.mark.parametrize("path", ["/v1/vectors", "/v1/nearest", "/v1/preview"])
def test_read_body_that_is_not_json_is_rejected(service: Any, path: str, body: bytes) -> None:
    answer = service.http.post(path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["error"]


class BlockedNearest:
    """`nearest` of a model, which blocks until it is released and counts its calls."""

    def __init__(self, service: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.release, self.calls, self._nearest = threading.Event(), 0, service.runtime.model.nearest_with_sequence
        monkeypatch.setattr(service.runtime.model, "nearest_with_sequence", self)

    def __call__(self, *arguments: Any) -> Any:
        self.calls += 1
        self.release.wait(30)
        return self._nearest(*arguments)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def waiting_searches(service: Any) -> int:
    (value,) = re.findall(r"^ripplevec_queue_reads (\S+)$", service.http.get("/metrics").text, re.MULTILINE)
    return int(float(value))


def test_nearest_of_disconnected_clients_is_not_computed(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    service = start(limits=Limits(read_seconds=600))  # no request leaves the queue because of its age
    service.edges(["a", "b"])
    blocked = BlockedNearest(service, monkeypatch)
    address = urlsplit(service.url)
    body = b'{"vector": [1, 1, 1, 1, 1, 1, 1, 1]}'
    head = (
        b"POST /v1/nearest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    )
    requests = [b"GET /v1/vertices/a/nearest HTTP/1.1\r\nHost: localhost\r\n\r\n", head % len(body) + body]
    connections = []
    for number in range(SEARCH_THREADS + 40):
        connections.append(socket.create_connection((address.hostname, address.port)))
        connections[-1].sendall(requests[number % 2])
    wait_until(lambda: waiting_searches(service) == 40)
    for connection in connections:
        connection.close()
    wait_until(lambda: waiting_searches(service) == 0)  # while no search was completed
    blocked.release.set()
    assert service.http.get("/v1/vertices/a/nearest").status_code == 200
    assert blocked.calls == SEARCH_THREADS + 1


def test_nearest_with_full_queue_is_rejected_and_others_are_answered(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = start(limits=Limits(queue_reads=3))
    service.edges(["a", "b"])
    blocked = BlockedNearest(service, monkeypatch)
    with ThreadPoolExecutor(SEARCH_THREADS + 3) as pool:
        answers = [pool.submit(service.http.get, "/v1/vertices/a/nearest") for _ in range(SEARCH_THREADS + 3)]
        wait_until(lambda: waiting_searches(service) == 3)
        rejected = service.http.get("/v1/vertices/a/nearest")
        assert (rejected.status_code, rejected.headers["retry-after"]) == (503, "1")
        assert service.http.get("/v1/vertices/a").status_code == 200
        assert service.http.post("/v1/vectors", json={"ids": ["a"]}).status_code == 200
        assert "ripplevec_queue_reads 3.0" in service.http.get("/metrics").text
        assert service.edges(["a", "c"]).status_code == 200
        blocked.release.set()
        assert [answer.result(30).status_code for answer in answers] == [200] * (SEARCH_THREADS + 3)


def test_nearest_beyond_timeout_is_rejected(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    service = start(limits=Limits(read_seconds=0.1))
    service.edges(["a", "b"])
    blocked = BlockedNearest(service, monkeypatch)
    for _ in range(SEARCH_THREADS + 2):
        rejected = service.http.get("/v1/vertices/a/nearest")
        assert (rejected.status_code, rejected.headers["retry-after"]) == (503, "1")
    assert blocked.calls == SEARCH_THREADS
    blocked.release.set()
    wait_until(lambda: service.http.get("/v1/vertices/a/nearest").status_code == 200)


def test_responses_not_read_by_clients_are_bounded(start: Any) -> None:
    service = start(limits=Limits(answers_bytes=1 << 20, ids=50_000), parameters={"dim": 64, "threads": 1})
    service.edges(*[[number, number + 1] for number in range(2000)])
    body = b'{"ids": [%s]}' % b",".join(b"%d" % (number % 2000) for number in range(40_000))
    head = (
        b"POST /v1/vectors HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    )
    address = urlsplit(service.url)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((address.hostname, address.port))
        connection.sendall(head % len(body) + body)
        wait_until(lambda: service.runtime.response_budget.pending_bytes > 1 << 20)
        rejected = service.http.post("/v1/vectors", json={"ids": [1]})
        assert (rejected.status_code, rejected.headers["retry-after"]) == (503, "1")
        assert service.http.get("/v1/vertices/1").status_code == 200
    wait_until(lambda: service.runtime.response_budget.pending_bytes == 0)
    assert service.http.post("/v1/vectors", json={"ids": [1]}).status_code == 200


def test_service_with_damaged_labels_starts_without_them(start: Any, tmp_path: Path) -> None:
    service = start()
    service.edges(["a", "b"])
    assert service.http.put("/v1/labels", json={"labels": [["a", "first"]]}).status_code == 200
    service.stop()
    (file,) = tmp_path.rglob("labels.sqlite")
    file.write_bytes(b"no database" * 1000)
    service = start()
    assert service.http.get("/readyz").status_code == 200
    assert service.http.get("/v1/vertices/a").json()["label"] is None
    assert service.http.put("/v1/labels", json={"labels": [["a", "second"]]}).status_code == 200
    assert file.with_name("labels.sqlite.damaged").read_bytes().startswith(b"no database")
    service.stop()
    assert start().http.get("/v1/vertices/a").json()["label"] == "second"


UNUSUAL_IDS = (
    "line\nend", "a\r\nb", "\n", "a/b", "/", "//", "/a", "a/", "a//b", "a/nearest", "/nearest", "nearest", "a/../b",
    " ", "\t", "%", "%2F", "%0A", "100%", "a?b", "a#b", "a&b=c", "a+b", "a;b", ";", "\x00", "\x7f", "é", "日本", "🙂",
    "\ufffd", "-1", "007", "+1", "\\", "[::1]", "...", "x" * 1024,
)  # fmt: skip


@pytest.mark.parametrize("name", [*UNUSUAL_IDS, ".", "..", 7, -7, 10**30])
def test_ids_of_any_text_can_be_read_and_deleted_by_path(service: Any, name: Any) -> None:
    assert service.edges([name, "r0"], [name, "r1"]).status_code == 200
    with Client(service.url) as client:
        assert client.vertex(name)["id"] == name
        assert client.nearest(name, k=2)
    kind = "text" if isinstance(name, str) else "integer"
    address = protocol.vertex_path(name)
    if isinstance(name, str) and name not in (".", ".."):
        assert service.http.get(address).json()["id"] == name
        assert service.http.get(f"{address}/nearest").status_code == 200
    assert service.http.delete(address, params={"kind": kind}).status_code == 200
    assert name not in service.runtime.model
    assert service.http.get(address, params={"kind": kind}).status_code == 404


def test_path_with_invalid_utf8_is_rejected(service: Any) -> None:
    service.edges(["\ufffd", "r0"])
    for path in ("/v1/vertices/%FF", "/v1/vertices/%FF?kind=text", "/v1/vertices/%FF/nearest"):
        assert service.http.get(path).status_code == 422, path
    assert service.http.delete("/v1/vertices/%FF").status_code == 422
    assert "\ufffd" in service.runtime.model


def test_vectors_not_finite_return_500(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    service = start(parameters={"dim": 8, "threads": 1, "normalize": False})
    service.edges(*[[f"r{i}", f"r{(i + step) % 40}"] for i in range(40) for step in (1, 2, 5)])
    service.runtime.model.engine.store.vectors[:] = np.inf
    service.edges(["new", "r0"])
    kind = "application/vnd.apache.arrow.stream"
    ids = {"ids": ["r0", "r1"]}
    answers = [
        service.http.get("/v1/vertices/r0"),
        service.http.get("/v1/vertices/r0?kind=text"),
        service.http.post("/v1/vectors", json=ids),
        service.http.post("/v1/vectors", json=ids, headers={"Accept": kind}),
    ]
    for answer in answers:
        assert answer.status_code == 500, answer.request.url
        assert "finite" in answer.json()["error"]
    for path in ("/v1/vertices/r0/nearest", "/v1/stats", "/v1/stats?full=true", "/v1/map"):
        answer = service.http.get(path)
        assert answer.status_code in (200, 500), path
        json.loads(answer.text, parse_constant=pytest.fail)
    assert service.http.get("/v1/stats").status_code == 200


def test_nearest_by_attributes_ignores_edges(attributed: Any) -> None:
    proteins = {f"p{n}" for n in range(6, 12)}
    model, http = attributed.runtime.model, attributed.http
    answer = http.post("/v1/attributes/nearest", json={"attributes": {"protein": 1, "of": 1}, "k": 6}).json()
    assert {vertex for vertex, _ in answer["nearest"]} == proteins
    expected = model.nearest_by_attributes({"protein": 1, "of": 1}, 6)
    assert [tuple(pair) for pair in answer["nearest"]] == expected
    answer = http.post("/v1/attributes/nearest", json={"vertex": "p6", "k": 2, "among": ["p0", "p7", "p8"]}).json()
    assert {vertex for vertex, _ in answer["nearest"]} == {"p7", "p8"}
    answer = http.get("/v1/vertices/p6/nearest?k=5&by=attributes").json()
    assert {vertex for vertex, _ in answer["nearest"]} == proteins - {"p6"}
    assert answer["sequence"] == model.sequence


def test_preview_with_attributes_matches_the_model(attributed: Any) -> None:
    model, http = attributed.runtime.model, attributed.http
    for neighbors in ([], ["p1", "p2"]):
        body = {"neighbors": neighbors, "attributes": {"protein": 2}}
        vector = http.post("/v1/preview", json=body).json()["vector"]
        assert np.array_equal(np.array(vector, np.float32), model.preview(neighbors, attributes={"protein": 2}))
        assert np.any(vector)
    assert attributed.http.get("/v1/stats").json()["attribute_dim"] == 4


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        ("attributes/nearest", {"k": 3}, "attributes"),
        ("attributes/nearest", {"attributes": [1.0, 2.0]}, "sparse rows"),
        ("preview", {"neighbors": [], "attributes": {"x": -1}}, "row 0, column 'x'"),
        ("preview", {"neighbors": [], "attributes": {"x": "y"}}, "attributes"),
    ],
)
def test_reads_with_bad_attributes_are_rejected(attributed: Any, path: str, body: Any, reason: str) -> None:
    answer = attributed.http.post(f"/v1/{path}", json=body)
    assert (answer.status_code, reason in answer.json()["error"]) == (422, True), answer.text


def test_reads_by_attributes_without_attributes_in_the_model_are_rejected(service: Any) -> None:
    for answer in (
        service.http.get("/v1/vertices/r1/nearest?by=attributes"),
        service.http.post("/v1/attributes/nearest", json={"attributes": {"x": 1}}),
        service.http.post("/v1/preview", json={"neighbors": ["r1"], "attributes": {"x": 1}}),
    ):
        assert (answer.status_code, "attributes" in answer.json()["error"]) == (422, True)
