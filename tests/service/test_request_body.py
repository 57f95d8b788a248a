"""Request bodies: any content, and limits of size, time and memory."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import httpx
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ripplevec.io.arrow_ipc import encode_arrow_stream
from ripplevec.service.settings import Limits

ARROW, NDJSON = "application/vnd.apache.arrow.stream", "application/x-ndjson"
fuzzed = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
lines = st.lists(st.binary(max_size=30) | values.map(lambda value: json.dumps(value).encode()), min_size=1, max_size=5)


def send(service: Any, kind: str, body: bytes) -> httpx.Response:
    """Send a body and return the response; check that a rejected one changed nothing."""
    before = service.runtime.model.sequence
    digest = service.runtime.model.digest()
    answer = service.http.post("/v1/edges", content=body, headers={"Content-Type": kind})
    assert answer.status_code < 500, answer.text
    if answer.status_code != 200:
        assert answer.json()["error"]
        assert service.runtime.model.sequence == before
        assert service.runtime.model.digest() == digest
    return answer


@pytest.mark.filterwarnings("ignore::ripplevec.errors.SelfLoopWarning")
@fuzzed
@given(lines)
def test_body_any_ndjson_is_accepted_or_rejected(service: Any, found: list[bytes]) -> None:
    send(service, NDJSON, b"\n".join(found))


@pytest.mark.filterwarnings("ignore::ripplevec.errors.SelfLoopWarning")
@fuzzed
@given(values)
def test_body_any_json_is_accepted_or_rejected(service: Any, value: Any) -> None:
    send(service, "application/json", json.dumps(value).encode())
    send(service, "application/json", json.dumps({"edges": value}).encode())


GOOD = encode_arrow_stream(pa.table({"src": ["a", "b", "c"], "dst": ["d", "e", "f"], "weight": [1.0, 2.0, 3.0]}))


@pytest.mark.filterwarnings("ignore::ripplevec.errors.SelfLoopWarning")
@fuzzed
@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=4), st.integers(0, len(GOOD)))
def test_body_damaged_arrow_is_accepted_or_rejected(service: Any, flips: list[tuple[int, int]], cut: int) -> None:
    body = bytearray(GOOD)
    for place, byte in flips:
        body[place] = byte
    send(service, ARROW, bytes(body[:cut]))
    send(service, ARROW, bytes(body))


@fuzzed
@given(
    st.fixed_dictionaries(
        {"src": st.lists(st.text(max_size=3) | st.none(), min_size=2, max_size=2)},
        optional={
            "dst": st.lists(st.integers(-5, 5), min_size=2, max_size=2),
            "weight": st.lists(st.floats(), min_size=2, max_size=2),
            "op": st.lists(st.integers(-1, 5), min_size=2, max_size=2),
            "extra": st.lists(st.booleans(), min_size=2, max_size=2),
        },
    )
)
def test_body_any_arrow_columns_are_accepted_or_rejected(service: Any, columns: dict[str, Any]) -> None:
    send(service, ARROW, encode_arrow_stream(pa.table(columns)))


def test_body_too_large_is_rejected_before_it_is_read(start: Any) -> None:
    service = start(limits=Limits(body_bytes=1000))
    assert service.edges(["a", "x" * 2000]).status_code == 413
    chunks = (b"x" * 100 for _ in range(100))
    answer = service.http.post("/v1/edges", content=chunks, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413
    assert service.runtime.write_bodies.held_bytes == 0
    assert service.edges(["a", "b"]).status_code == 200


def test_body_very_large_is_rejected_with_a_response(start: Any) -> None:
    service = start(limits=Limits(body_bytes=1 << 20))
    answer = service.http.post("/v1/edges", content=b"x" * (20 << 20), headers={"Content-Type": "application/json"})
    assert answer.status_code == 413
    assert answer.json()["error"]


def test_body_with_too_many_events_is_rejected(start: Any) -> None:
    service = start(limits=Limits(events=3))
    assert service.edges(*[["a", "b"]] * 4).status_code == 413
    assert service.edges(*[["a", "b"]] * 3).status_code == 200


def send_raw(service: Any, text: bytes, *, close: bool) -> bytes:
    """Send raw bytes, optionally close the sending side, and return the response."""
    parts = urlsplit(service.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:
        connection.sendall(text)
        if close:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(65536):
            answer += part
        return answer


HEAD = b"POST /v1/edges HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_body_incomplete_changes_nothing(service: Any) -> None:
    before = service.digest()
    send_raw(service, HEAD + b'Content-Length: 1000\r\n\r\n{"edges": [["a", "b"]]}', close=True)
    assert service.digest() == before
    assert service.runtime.write_bodies.held_bytes == 0


def test_body_never_sent_times_out(start: Any) -> None:
    service = start(limits=Limits(body_seconds=0.2))
    assert b" 408 " in send_raw(service, HEAD + b"Connection: close\r\nContent-Length: 100\r\n\r\n{", close=False)
    assert service.runtime.write_bodies.held_bytes == 0


@pytest.mark.parametrize("length", [b"-1", b"x", b"9" * 30])
def test_content_length_invalid_is_rejected(service: Any, length: bytes) -> None:
    answer = send_raw(service, HEAD + b"Connection: close\r\nContent-Length: " + length + b"\r\n\r\n", close=True)
    assert b" 400 " in answer or b" 413 " in answer


def test_body_memory_budget_is_enforced(start: Any) -> None:
    service = start(limits=Limits(bodies_bytes=1500, body_bytes=1000))
    with connect(service) as holding:
        holding.sendall(HEAD + b"Content-Length: 901\r\n\r\n" + b" " * 900)
        wait_until(lambda: service.runtime.write_bodies.held_bytes == 900)
        answer = service.edges(["a", "x" * 800])
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == "1"
        assert service.edges(["a", "b"]).status_code == 200
    wait_until(lambda: service.runtime.write_bodies.held_bytes == 0)


READ_HEAD = HEAD.replace(b"/v1/edges", b"/v1/vectors")


def test_body_announced_but_not_sent_does_not_use_the_budget(start: Any) -> None:
    service = start(limits=Limits(bodies_bytes=4000, read_bodies_bytes=4000, body_bytes=1000))
    with ExitStack() as stack:
        for head in (HEAD, READ_HEAD) * 9:
            stack.enter_context(connect(service)).sendall(head + b"Content-Length: 1000\r\n\r\n{")
        wait_until(lambda: service.runtime.write_bodies.held_bytes == service.runtime.read_bodies.held_bytes == 9)
        assert service.edges(["a", "b"]).status_code == 200
        assert service.http.post("/v1/vectors", json={"ids": ["a"]}).status_code == 200


def test_body_budgets_of_reads_and_writes_are_separate(start: Any) -> None:
    service = start(limits=Limits(bodies_bytes=1000, read_bodies_bytes=2500, body_bytes=1000))
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(connect(service)).sendall(READ_HEAD + b"Content-Length: 1000\r\n\r\n" + b" " * 999)
        wait_until(lambda: service.runtime.read_bodies.held_bytes == 1998)
        for path, body in {
            "/v1/vectors": {"ids": ["x" * 600]},
            "/v1/nearest": {"vector": [1.0] * 200},
            "/v1/preview": {"neighbors": ["x" * 600]},
        }.items():
            answer = service.http.post(path, json=body)
            assert (answer.status_code, answer.headers["retry-after"]) == (429, "1"), path
        assert service.edges(["a", "x" * 800]).status_code == 200
        assert service.http.put("/v1/labels", json={"labels": [["a", "x" * 200]]}).status_code == 200


def test_body_below_the_minimum_rate_is_rejected_with_408(start: Any) -> None:
    service = start(limits=Limits(body_grace=0.1, body_rate=1000, body_seconds=600))
    with connect(service) as connection:
        connection.sendall(HEAD + b"Content-Length: 1000\r\n\r\n" + b" " * 100)
        answer = b""
        while part := connection.recv(65536):  # until the server disconnects: later bytes would be another request
            answer += part
        assert answer.startswith(b"HTTP/1.1 408 ")
    assert service.runtime.write_bodies.held_bytes == 0


def test_body_at_the_minimum_rate_is_accepted(start: Any) -> None:
    service = start(limits=Limits(body_grace=1.5, body_rate=100))  # a busy machine may delay each part by the grace
    body = b'{"edges": [["a", "b"]]}' + b" " * 777
    with connect(service) as connection:
        connection.sendall(HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body))
        for first in range(0, len(body), 40):  # for longer than the grace
            connection.sendall(body[first : first + 40])
            time.sleep(0.1)
        assert b" 200 " in connection.recv(65536)


def connect(service: Any) -> socket.socket:
    parts = urlsplit(service.url)
    return socket.create_connection((parts.hostname, parts.port), timeout=30)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("kind", "got"),
    [("text/plain", "'text/plain'"), ("", "none"), ("application/json; charset=latin-1", "with 'charset=latin-1'")],
)
def test_body_of_another_content_type_is_refused_with_what_was_received(service: Any, kind: str, got: str) -> None:
    answer = send(service, kind, b"{}")
    assert answer.status_code == 415
    assert answer.json()["error"].endswith(got)
