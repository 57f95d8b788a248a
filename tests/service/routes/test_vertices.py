from __future__ import annotations

from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pytest


def test_a_vertex_has_vector_degree_and_age(start: Any) -> None:
    service = start()
    service.edges(["a", "b"], ["a", "c", 2.0])
    service.edges(["late", "a"])
    found = service.http.get("/v1/vertices/a").json()
    assert (found["id"], found["degree"], found["strength"]) == ("a", 3, 4.0)
    assert (found["arrival"], found["age"], found["sequence"]) == (0, 3, 2)
    assert service.http.get("/v1/vertices/late").json()["age"] == 0
    assert len(found["vector"]) == 8


def test_vectors_are_those_of_the_model(service: Any) -> None:
    answer = service.http.post("/v1/vectors", json={"ids": ["r3", "nobody", "r1"]}).json()
    assert answer["ids"] == ["r3", "r1"]
    assert answer["missing"] == ["nobody"]
    assert np.array_equal(np.array(answer["vectors"], np.float32), service.runtime.model.vectors(["r3", "r1"]))
    assert answer["sequence"] == service.runtime.model.sequence
    assert np.any(answer["vectors"])


def test_vectors_come_as_arrow_where_that_is_asked_for(service: Any) -> None:
    kind = "application/vnd.apache.arrow.stream"
    answer = service.http.post("/v1/vectors", json={"ids": ["r3", 5, "r1"]}, headers={"Accept": kind})
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table["row"].to_pylist() == [0, 2]
    assert np.array_equal(
        np.array(table["vector"].to_pylist(), np.float32), service.runtime.model.vectors(["r3", "r1"])
    )
    assert int(table.schema.metadata[b"sequence"]) == service.runtime.model.sequence


def test_no_ids_no_vectors(service: Any) -> None:
    answer = service.http.post("/v1/vectors", json={"ids": []}).json()
    assert (answer["ids"], answer["vectors"], answer["missing"]) == ([], [], [])


def test_nearest_by_vertex_and_by_vector(service: Any) -> None:
    by_id = service.http.get("/v1/vertices/r0/nearest?k=4").json()["nearest"]
    assert [tuple(pair) for pair in by_id] == service.runtime.model.nearest("r0", 4)
    vector = service.http.get("/v1/vertices/r0").json()["vector"]
    by_vector = service.http.post("/v1/nearest", json={"vector": vector, "k": 1}).json()["nearest"]
    assert by_vector[0][0] == "r0"


def test_a_preview_adds_nothing(service: Any) -> None:
    before = service.digest()
    answer = service.http.post("/v1/preview", json={"neighbours": ["r0", "r1"], "weights": [1, 2]}).json()
    assert np.array_equal(np.array(answer["vector"], np.float32), service.runtime.model.preview(["r0", "r1"], [1, 2]))
    assert service.digest() == before


@pytest.mark.parametrize("name", ["a/b", "ü", "a b", "100%", "?x=1", "#", "nearest", "a/nearest/b", "\\", "a&b"])
def test_any_text_can_be_an_address(service: Any, name: str) -> None:
    assert service.edges([name, "r0"]).status_code == 200
    assert service.http.get(f"/v1/vertices/{quote(name, safe='')}").json()["id"] == name
    assert service.http.get(f"/v1/vertices/{quote(name, safe='')}/nearest").status_code == 200


def test_labels_are_set_taken_away_and_kept(start: Any) -> None:
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
        ("GET", "/v1/vertices/nobody", None, 404),
        ("GET", "/v1/vertices/nobody/nearest", None, 404),
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
        ("POST", "/v1/preview", {"neighbours": ["nobody"]}, 404),
        ("POST", "/v1/preview", {"neighbours": ["r0"], "weights": [1, 2]}, 422),
        ("POST", "/v1/preview", {"neighbours": ["r0"], "weights": [-1]}, 422),
        ("PUT", "/v1/labels", {"labels": [["a", 1]]}, 422),
        ("PUT", "/v1/labels", {"labels": [["a", "x" * 300]]}, 422),
        ("GET", "/v1/nothing", None, 404),
        ("PATCH", "/v1/edges", None, 405),
    ],
)
def test_what_is_wrong_is_refused_with_a_reason(service: Any, method: str, path: str, body: Any, status: int) -> None:
    answer = service.http.request(method, path, **({} if body is None else {"json": body}))
    assert answer.status_code == status
    assert answer.json()["error"]


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b'{"ids": [NaN]}', b'{"ids": ["\\ud800"]}', b"\xff\xfe"])
@pytest.mark.parametrize("path", ["/v1/vectors", "/v1/nearest", "/v1/preview"])
def test_a_body_that_is_no_json_is_refused(service: Any, path: str, body: bytes) -> None:
    answer = service.http.post(path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["error"]
