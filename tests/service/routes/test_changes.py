"""Endpoint for changes: single reads, long polls, event streams, slow followers."""

from __future__ import annotations

import gc
import http.client
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from ripplevec.changes import Changes
from ripplevec.service import http_protocol
from ripplevec.service.settings import Limits

STREAM = {"Accept": "text/event-stream"}


def read_events(service: Any, count: int, **options: Any) -> list[tuple[int | None, dict[str, Any]]]:
    """Return the ids and messages of the first events of a stream."""
    found: list[tuple[int | None, dict[str, Any]]] = []
    number = None
    with service.http.stream("GET", "/v1/changes", **options) as response:
        assert response.status_code == 200, response.read()
        for line in response.iter_lines():
            if line.startswith("id: "):
                number = int(line[4:])
            if line.startswith("data: "):
                found.append((number, json.loads(line[6:])))
                number = None
                if len(found) == count:
                    break
    return found


def test_changes_since_a_batch_are_returned(start: Any) -> None:
    service = start()
    service.edges(["a", "b"])
    service.edges(["b", "c"])
    service.http.delete("/v1/vertices/a")
    answer = service.http.get("/v1/changes?since=1").json()
    assert (answer["since"], answer["next"]) == (1, 3)
    assert [batch["sequence"] for batch in answer["batches"]] == [2, 3]
    arrived = {row["id"] for row in answer["batches"][0]["changes"] if row["arrived"]}
    assert arrived == {"c"}
    assert answer["batches"][1]["removed"] == ["a"]
    assert service.http.get("/v1/changes?since=3").json()["batches"] == []
    assert service.http.get("/v1/changes?since=0&limit=1").json()["next"] == 1


def test_changes_vectors_match_served_vectors(service: Any) -> None:
    newest = service.runtime.feed.newest
    service.edges(["new", "r0"], ["new", "r1"])
    (batch,) = service.http.get(f"/v1/changes?since={newest}").json()["batches"]
    ids = [row["id"] for row in batch["changes"]]
    vectors = np.array([row["vector"] for row in batch["changes"]], np.float32)
    assert "new" in ids
    assert np.array_equal(vectors, service.runtime.model.vectors(ids))


def test_changes_mark_anchors(start: Any) -> None:
    service = start()
    for number in range(3, 60):
        service.edges(*[[f"v{number}", f"v{number - step}"] for step in (1, 2, 3)])
    batches = service.http.get("/v1/changes?since=0&limit=1000").json()["batches"]
    anchored = sum(batch["anchored"] for batch in batches)
    assert anchored == service.http.get("/v1/stats").json()["anchors"] > 0


def test_long_poll_waits_for_the_next_batch(start: Any) -> None:
    service = start()
    service.edges(["a", "b"])
    writer = threading.Timer(0.3, lambda: service.edges(["b", "c"]))
    writer.start()
    answer = service.http.get("/v1/changes?since=1&wait=30").json()
    writer.join()
    assert [batch["sequence"] for batch in answer["batches"]] == [2]


def test_long_poll_without_batch_returns_empty(service: Any) -> None:
    newest = service.runtime.feed.newest
    answer = service.http.get(f"/v1/changes?since={newest}&wait=0.05").json()
    assert answer == {"since": newest, "next": newest, "batches": []}


def test_stream_resumes_after_last_event_id(start: Any) -> None:
    service = start()
    for number in range(6):
        service.edges([f"v{number}", f"v{number + 1}"])
    first = read_events(service, 3, params={"since": 0}, headers=STREAM)
    assert [number for number, _ in first] == [1, 2, 3]
    rest = read_events(service, 3, headers=STREAM | {"Last-Event-ID": str(first[-1][0])})
    assert [message["sequence"] for _, message in rest] == [4, 5, 6]


def test_stream_continues_with_new_batches(start: Any) -> None:
    service = start()
    service.edges(["a", "b"])

    def write() -> None:
        while not service.runtime.feed.followers:
            time.sleep(0.005)
        for number in range(3):
            service.edges([f"n{number}", "a"])

    writer = threading.Thread(target=write)
    writer.start()
    assert [number for number, _ in read_events(service, 3, headers=STREAM)] == [2, 3, 4]
    writer.join()


def test_stream_large_batch_is_split_and_last_part_has_id(start: Any) -> None:
    service = start(parameters={"dim": 64, "threads": 1})
    service.edges(*[[f"v{number}", "hub"] for number in range(1000)])
    found = []
    while not found or found[-1][0] is None:
        found = read_events(service, len(found) + 1, params={"since": 0}, headers=STREAM)
    assert [number for number, _ in found] == [None] * (len(found) - 1) + [1]
    assert len(found) > 1
    assert [message["part"] for _, message in found] == list(range(len(found)))
    assert sum(len(message["changes"]) for _, message in found) == 1001


def test_changes_no_longer_retained_return_410(start: Any) -> None:
    service = start(limits=Limits(retained_batches=3))
    for number in range(6):
        service.edges([f"v{number}", "hub"])
    assert service.http.get("/v1/changes?since=3").status_code == 200
    assert service.http.get("/v1/changes?since=2").status_code == 410
    assert service.http.get("/v1/changes?since=2", headers=STREAM).status_code == 410
    assert service.http.get("/v1/changes", headers=STREAM | {"Last-Event-ID": "0"}).status_code == 410
    assert service.http.get("/v1/changes?since=999").status_code == 410


def test_changes_after_restart_continue_for_current_followers(start: Any) -> None:
    service = start()
    service.edges(["a", "b"])
    service.stop()
    service = start()
    assert service.http.get("/v1/changes?since=1").json()["batches"] == []
    assert service.http.get("/v1/changes?since=0").status_code == 410


def test_followers_beyond_the_limit_are_rejected(start: Any) -> None:
    service = start(limits=Limits(followers=1))
    service.edges(["a", "b"])
    with service.http.stream("GET", "/v1/changes?since=0", headers=STREAM) as response:
        lines = response.iter_lines()
        next(lines)
        for headers in ({}, STREAM):
            answer = service.http.get("/v1/changes?since=1&wait=5", headers=headers)
            assert answer.status_code == 503
            assert answer.headers["retry-after"]


def open_silent_follower(service: Any, path: str, **headers: str) -> socket.socket:
    """Open a connection that requests changes and reads nothing."""
    address = urlsplit(service.url)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect((address.hostname, address.port))
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", *(f"{name}: {value}" for name, value in headers.items())]
    connection.sendall("\r\n".join([*lines, "", ""]).encode())
    return connection


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_followers_that_do_not_read_are_counted(start: Any) -> None:
    service = start(limits=Limits(followers=2), parameters={"dim": 64, "threads": 1})
    service.edges(*[[number, number + 1] for number in range(5000)])
    with ExitStack() as stack:
        for headers in ({}, STREAM):
            stack.enter_context(open_silent_follower(service, "/v1/changes?since=0", **headers))
        wait_until(lambda: service.runtime.feed.followers == 2)
        refused = service.http.get("/v1/changes?since=0")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "10")
    wait_until(lambda: service.runtime.feed.followers == 0)
    assert service.http.get("/v1/changes?since=0").json()["next"] == 1


def test_followers_that_do_not_read_keep_no_dropped_batches(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "STALL_SECONDS", 600)  # they stay connected
    service = start(limits=Limits(retained_batches=2), parameters={"dim": 64, "threads": 1, "anchor_growth": 0})
    service.edges(["a", "b"])
    rng, silent = np.random.default_rng(0), list[socket.socket]()
    with ExitStack() as stack:
        for batch in range(3):
            first = 10_000 * batch  # a random graph, whose vectors are long texts: no socket buffers such an answer
            service.edges(
                *[[first + n, first + (n + int(step)) % 8000] for n, step in enumerate(rng.integers(1, 8000, 8000))]
            )
            for headers in ({}, STREAM):
                follower = open_silent_follower(service, f"/v1/changes?since={batch}", **headers)
                silent.append(stack.enter_context(follower))
            wait_until(lambda: count_blocked_responses(service) == len(silent))
        for number in range(2):
            service.edges([f"late{number}", "a"])
        wait_until(lambda: not count_large_batches())


def count_blocked_responses(service: Any) -> int:
    """Count the connections whose client does not read what the service has to send."""
    return sum(connection.flow.write_paused for connection in list(service.server.server_state.connections))


def count_large_batches() -> int:
    """Count the large batches that this process still holds in memory."""
    time.sleep(0.5)  # garbage collection blocks all threads: give the service time to work
    gc.collect()
    return sum(type(found) is Changes and len(found) >= 8000 for found in gc.get_objects())


def test_changes_overtaken_response_reports_last_complete_batch(start: Any) -> None:
    service = start(limits=Limits(retained_batches=2), parameters={"dim": 64, "threads": 1})
    service.edges(*[[number, "a"] for number in range(100)])
    service.edges(*[[number, "b"] for number in range(100, 6000)])
    with open_silent_follower(service, "/v1/changes?since=0", Connection="close") as connection:
        wait_until(lambda: service.runtime.feed.followers == 1)
        for number in range(3):
            service.edges([f"late{number}", "a"])
        response = http.client.HTTPResponse(connection)
        response.begin()
        answer = json.loads(response.read())
    parts = Counter(batch["sequence"] for batch in answer["batches"])
    of = {batch["sequence"]: batch.get("parts", 1) for batch in answer["batches"]}
    whole = [sequence for sequence, count in parts.items() if count == of[sequence]]
    assert answer["next"] == max(whole, default=0) == len(whole)  # how many batches were sent depends on socket buffers


def test_changes_invalid_parameters_are_rejected(service: Any) -> None:
    for query in ("since=-1", "since=x", "wait=1e9", "limit=0", "wait=nan"):
        assert service.http.get(f"/v1/changes?{query}").status_code == 422, query
    assert service.http.get("/v1/changes", headers={"Last-Event-ID": "x"}).status_code == 422
