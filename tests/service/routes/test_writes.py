"""Endpoints for writes: formats, idempotency keys, removals, invalid bodies."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from ripplevec.durability.session import Session
from ripplevec.io.arrow_ipc import encode_arrow_stream
from ripplevec.io.messages import decode_json

ARROW, NDJSON = "application/vnd.apache.arrow.stream", "application/x-ndjson"


def arrow(**columns: Any) -> bytes:
    return encode_arrow_stream(pa.table(columns))


def stats(service: Any) -> dict[str, Any]:
    return service.http.get("/v1/stats").json()


def test_writes_return_their_sequence_number(start: Any) -> None:
    service = start()
    first = service.edges(["a", "b"], ["a", "c", 2.0]).json()
    body = {"arrivals": [{"id": "v", "neighbors": ["a", "b"], "weights": [1, 2]}, {"id": "alone"}]}
    second = service.http.post("/v1/arrivals", json=body).json()
    assert (first["sequence"], first["arrived"], first["events"]) == (1, 3, 2)
    assert (second["sequence"], second["arrived"], second["repeated"]) == (2, 2, False)
    assert service.http.get("/v1/vertices/v").json()["strength"] == 3


@pytest.mark.parametrize("key", ["neighbors", "neighbours"])
def test_arrival_with_either_spelling_of_neighbors_is_applied(start: Any, key: str) -> None:
    service = start()
    service.edges(["a", "b"])
    answer = service.http.post("/v1/arrivals", json={"arrivals": [{"id": "v", key: ["a", "b"]}]})
    assert answer.status_code == 200
    assert service.http.get("/v1/vertices/v").json()["degree"] == 2


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/arrivals", {"arrivals": [{"id": "v", "neigbors": ["a"]}]}),
        ("POST", "/v1/arrivals", {"arrivals": [{"id": "v", "neighbors": [], "neighbours": []}]}),
        ("POST", "/v1/edges", {"edges": [["a", "b"]], "kye": "k"}),
        ("DELETE", "/v1/edges", {"edges": [["r0", "r1"]], "kye": "k"}),
        ("DELETE", "/v1/vertices", {"ids": ["r0"], "kye": "k"}),
    ],
)
def test_write_with_unknown_key_is_rejected_and_names_it(service: Any, method: str, path: str, body: Any) -> None:
    before = service.digest()
    answer = service.http.request(method, path, json=body)
    assert answer.status_code == 422
    assert any(key in answer.json()["error"] for key in ("neigbors", "neighbours", "kye"))
    assert service.digest() == before


def test_writes_in_every_format_give_the_same_state(start: Any, tmp_path: Any) -> None:
    edges = [["a", "b", 1.0], ["b", "c", 2.0], ["c", "a", 3.0]]
    src, dst, weight = map(list, zip(*edges, strict=True))
    lines = "\n".join(map(json.dumps, edges)).encode()
    forms = [
        ("application/json", json.dumps({"edges": edges}).encode()),
        (NDJSON, lines),
        (
            NDJSON,
            b"\n".join(json.dumps(dict(zip(("src", "dst", "weight"), edge, strict=True))).encode() for edge in edges),
        ),
        (ARROW, arrow(src=src, dst=dst, weight=weight)),
    ]
    digests = set()
    for number, (kind, body) in enumerate(forms):
        service = start(state=tmp_path / str(number))
        assert service.http.post("/v1/edges", content=body, headers={"Content-Type": kind}).status_code == 200
        digests.add(service.digest())
        service.stop()
    assert len(digests) == 1


@pytest.mark.parametrize("where", ["body", "header"])
def test_write_with_known_key_is_applied_once(start: Any, where: str) -> None:
    service = start()
    body = {"edges": [["a", "b"]]} | ({"key": "k"} if where == "body" else {})
    headers = {"Idempotency-Key": "k"} if where == "header" else {}
    answers = [service.http.post("/v1/edges", json=body, headers=headers).json() for _ in range(3)]
    assert [answer["repeated"] for answer in answers] == [False, True, True]
    assert {answer["sequence"] for answer in answers} == {1}
    assert service.http.get("/v1/vertices/a").json()["strength"] == 1


def test_write_with_known_key_after_restart_is_repeated(start: Any) -> None:
    service = start()
    service.edges(["a", "b"], key="once")
    digest = service.digest()
    service.stop()
    service = start()
    answer = service.edges(["a", "b"], key="once").json()
    assert answer["repeated"]
    assert answer["sequence"] == 1
    assert service.digest() == digest


def test_write_with_two_different_keys_is_rejected(service: Any) -> None:
    answer = service.http.post("/v1/edges", json={"key": "a", "edges": [["x", "y"]]}, headers={"Idempotency-Key": "b"})
    assert answer.status_code == 409


def test_removals_of_edges_and_vertices_are_applied(start: Any) -> None:
    service = start()
    service.edges(["a", "b"], ["b", "c"], [1, "a"], ["1", "b"])
    removed = service.http.request("DELETE", "/v1/edges", json={"edges": [["b", "a"]]}).json()
    assert removed["sequence"] == 2
    assert stats(service)["edges"] == 3
    assert service.http.delete("/v1/vertices/c").json()["removed"] == 1
    assert service.http.request("DELETE", "/v1/vertices", json={"ids": [1]}).json()["removed"] == 1
    assert service.http.get("/v1/vertices/1").json()["id"] == "1"
    assert stats(service)["vertices"] == 3


def test_removal_repeated_with_its_key_is_marked_as_repeated(start: Any) -> None:
    service = start()
    service.edges(["a", "b"])
    answers = [service.http.delete("/v1/vertices/a", headers={"Idempotency-Key": "gone"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert [answer.json()["repeated"] for answer in answers] == [False, True]


def test_ids_integer_and_text_are_different_vertices(start: Any) -> None:
    service = start()
    service.edges([7, "a"], ["7", "b"], [7, "b"])
    assert service.http.get("/v1/vertices/7").json()["degree"] == 1
    assert service.http.get("/v1/vertices/7?kind=integer").json()["degree"] == 2
    assert service.http.delete("/v1/vertices/7?kind=integer").json()["removed"] == 1
    assert service.http.get("/v1/vertices/7?kind=text").status_code == 200
    assert service.http.get("/v1/vertices/7?kind=integer").status_code == 404


BAD_JSON = [
    b"",
    b"{",
    b"null",
    b'"text"',
    b"[]",
    b"{}",
    b'{"edges": []}',
    b'{"edges": "ab"}',
    b'{"edges": [["a"]]}',
    b'{"edges": [["a", "b", 1, 2, 3]]}',
    b'{"edges": [["a", "b", 0]]}',
    b'{"edges": [["a", "b", -1]]}',
    b'{"edges": [["a", "b", "heavy"]]}',
    b'{"edges": [["a", "b", 1e400]]}',
    b'{"edges": [["a", "b", NaN]]}',
    b'{"edges": [["a", null]]}',
    b'{"edges": [["a", true]]}',
    b'{"edges": [["a", 1.5]]}',
    b'{"edges": [["a", {"b": 1}]]}',
    b'{"edges": [["a", ""]]}',
    b'{"edges": [["a", "\\ud800"]]}',
    b'{"edges": [["a", "b"]], "other": 1}',
    b'{"edges": [["a", "b"]], "key": 7}',
    b'{"edges": [["a", "b"]], "key": ""}',
    b'{"edges": [["a", "b"]], "key": "' + b"k" * 5000 + b'"}',
    b'{"arrivals": [{"id": "v", "neighbors": ["a"], "weights": [1, 2]}]}',
    b'{"arrivals": [{"neighbors": ["a"]}]}',
    b'{"remove_edges": [["unknown", "other"]]}',
    b'{"remove_vertices": ["unknown"]}',
    b'{"edges": [["a", "' + b"x" * 10_000_000 + b'"]]}',
    b'{"edges": [["a", ' + b"9" * 10_000 + b"]]}",
    b"[" * 100_000 + b"]" * 100_000,
    b'{"edges": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"edges": [["a", "\xff"]]}',
    b"\x00\x01\x02",
    b'{"edges": [["a", "b"]',
]


@pytest.mark.parametrize("body", BAD_JSON, ids=lambda body: f"{body[:24]!r}-{len(body)}")
def test_write_invalid_body_is_rejected_and_changes_nothing(service: Any, body: bytes) -> None:
    before = service.digest()
    answer = service.http.post("/v1/edges", content=body, headers={"Content-Type": "application/json"})
    assert 400 <= answer.status_code < 500
    assert answer.json()["error"]
    assert len(answer.json()["error"]) <= 500
    assert service.digest() == before


def test_write_with_one_bad_line_is_rejected_and_names_it(service: Any) -> None:
    before = service.digest()
    body = b'["a","b"]\n["c","d"]\nnonsense\n["e","f"]\n'
    answer = service.http.post("/v1/edges", content=body, headers={"Content-Type": NDJSON})
    assert answer.status_code == 422
    assert "line 3" in answer.json()["error"]
    assert service.digest() == before


@pytest.mark.parametrize("cut", [5, 100, -9])
def test_write_incomplete_arrow_stream_is_rejected(service: Any, cut: int) -> None:
    before = service.digest()
    body = arrow(src=["a", "b"], dst=["c", "d"])[:cut]
    answer = service.http.post("/v1/edges", content=body, headers={"Content-Type": ARROW})
    assert answer.status_code == 422
    assert service.digest() == before


def test_write_invalid_batch_is_rejected_as_a_whole(start: Any) -> None:
    service = start()
    service.edges(["a", "b"])
    digest = service.digest()
    body = {"edges": [["c", "d"]], "remove_edges": [["x", "y"]]}
    assert service.http.post("/v1/edges", json=body).status_code == 404
    assert service.digest() == digest
    assert service.edges(["c", "d"]).json()["sequence"] == 2


def test_attributes_are_durable_and_the_same_as_in_a_session(start: Any, papers: Any, tmp_path: Any) -> None:
    service = start(parameters=papers.parameters)
    assert service.http.post("/v1/arrivals", json=papers.document).status_code == 200
    rows = [{"id": "p1", "attributes": {"graph": 2}}, {"id": "p2", "attributes": {}}]
    answer = service.http.put("/v1/attributes", json={"attributes": rows, "key": "k"})
    assert (answer.status_code, answer.json()["sequence"], answer.json()["events"]) == (200, 2, 2)
    both = {"edges": [["p3", "p9"]], "attributes": [{"id": "p20", "attributes": {"graph": 1}}]}
    assert service.http.post("/v1/edges", json=both).json()["arrived"] == 1
    digest = service.digest()
    service.stop()
    with Session(tmp_path / "session", **papers.parameters) as session:
        session.apply(decode_json(json.dumps(papers.document).encode()).batch)
        session.set_attributes(["p1", "p2"], [{"graph": 2}, {}])
        session.partial_fit([("p3", "p9")], attributes={"p20": {"graph": 1}})
        assert session.model.digest() == digest
    with Session(tmp_path / "state") as session:
        assert session.model.digest() == digest


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "reason"),
    [
        ("PUT", "attributes", {"attributes": [{"id": "p99", "attributes": {"x": 1}}]}, 404, "p99"),
        ("PUT", "attributes", {"attributes": [{"id": "p1", "attributes": [1.0]}]}, 422, "sparse rows"),
        ("PUT", "attributes", {"attributes": [{"id": "p1", "attributes": {"x": "y"}}]}, 422, "row 0, column 'x'"),
        ("PUT", "attributes", {"attributes": [{"id": "p1", "attributes": {"x": -1}}]}, 422, "row 0, column 'x'"),
        ("PUT", "attributes", {"attributes": [{"id": "p1", "attributes": {}}] * 2}, 422, "in rows 0 and 1"),
        ("PUT", "attributes", {"attributes": []}, 422, "at least one event"),
        ("PUT", "attributes", {"edges": [["p1", "p2"]]}, 422, "attributes only"),
        ("POST", "arrivals", {"arrivals": [{"id": "z", "attributes": [1.0]}]}, 422, "sparse rows"),
    ],
)
def test_bad_attributes_are_rejected_and_nothing_changes(
    attributed: Any, method: str, path: str, body: Any, status: int, reason: str
) -> None:
    before = attributed.digest()
    answer = attributed.http.request(method, f"/v1/{path}", json=body)
    assert (answer.status_code, reason in answer.json()["error"]) == (status, True), answer.text
    assert attributed.digest() == before


def test_repeated_attributes_with_a_key_are_applied_once_after_their_vertex_is_gone(start: Any, papers: Any) -> None:
    service = start(parameters=papers.parameters)
    service.http.post("/v1/arrivals", json=papers.document)
    body = {"key": "once", "attributes": [{"id": "p3", "attributes": {"new": 1}}]}
    first = service.http.put("/v1/attributes", json=body).json()
    service.http.delete("/v1/vertices/p3")
    again = service.http.put("/v1/attributes", json=body).json()
    assert (again["repeated"], again["sequence"]) == (True, first["sequence"])


def test_service_without_dimensions_for_attributes_rejects_them(service: Any) -> None:
    answer = service.http.post("/v1/arrivals", json={"arrivals": [{"id": "z", "attributes": {"x": 1}}]})
    assert (answer.status_code, "attribute" in answer.json()["error"]) == (422, True)
