from __future__ import annotations

import builtins
import importlib
import json
import sys
from contextlib import suppress
from typing import Any

import httpx
import numpy as np
import pytest
from httpx_sse import EventSource
from scipy.sparse import csr_array
from tenacity import Retrying

from ripplevec.attributes.input import attach_attributes, read_attributes
from ripplevec.batch import Batch
from ripplevec.client import protocol
from ripplevec.errors import InvalidValueError, MissingExtraError


def test_batch_without_key_gets_a_unique_key() -> None:
    first, second = (protocol.add_edges([("a", "b")], None).body["key"] for _ in range(2))
    assert first != second
    assert protocol.remove_vertices(["a"], "mine").body["key"] == "mine"


def test_batch_with_times_sends_them() -> None:
    edges = Batch.of(["a", "b"], ["b", "c"], time=[7.5, float("nan")])
    assert protocol.add_edges(edges, None).body["edges"] == [("a", "b", 1.0, 7.5), ("b", "c", 1.0, None)]
    assert protocol.add_vertex("v", ["a"], None, None, 3).body["arrivals"] == [
        {"id": "v", "neighbors": ["a"], "time": 3.0}
    ]
    assert protocol.add_vertex("v", [], None, None).body["arrivals"] == [{"id": "v", "neighbors": []}]


def test_ids_of_unsupported_form_are_refused() -> None:
    assert protocol.add_vertex("v", np.array([1, 2]), None, None).body["arrivals"][0]["neighbors"] == [1, 2]
    assert json.loads(protocol.vectors(np.array([3])).arguments()["content"]) == {"ids": [3]}
    for call in (lambda: protocol.add_vertex("v", "ann", None, None), lambda: protocol.preview("ann", None)):
        with pytest.raises(InvalidValueError, match="neighbors: expected a list or column of ids, got 'ann'"):
            call()
    for call in (lambda: protocol.vectors("ann"), lambda: protocol.remove_vertices("ann", None)):
        with pytest.raises(InvalidValueError, match="ids: expected a list or column of ids, got 'ann'"):
            call()


def test_time_of_unsupported_form_is_refused() -> None:
    assert protocol.add_vertex("v", [], None, None, float("nan")).body["arrivals"][0]["time"] is None
    with pytest.raises(InvalidValueError, match="time: expected numbers, or dates as datetime, Timestamp, datetime64"):
        protocol.add_vertex("v", [], None, None, "noon")  # type: ignore[arg-type]


def test_batch_with_operations_sends_them() -> None:
    batch = Batch.of(["a", "c"], ["b", "c"], op=[1, 2])
    assert protocol.add_edges(batch, None).body["edges"] == [
        {"src": "a", "dst": "b", "op": "remove"},
        {"src": "c", "dst": "c", "op": "vertex"},
    ]


def test_remove_edges_with_attributes_is_refused() -> None:
    batch = attach_attributes(Batch.of([], []), read_attributes({"a": {"x": 1}}))
    removals = Batch.from_checked_columns(batch.src, batch.dst, op=batch.op * 0 + 1, attributes=batch.attributes)
    with pytest.raises(InvalidValueError, match="with attributes of 1 vertices, which cannot be sent with removals"):
        protocol.remove_edges(removals, None)


@pytest.mark.parametrize("name", ["a/b", "?", "#", "ü", "a b", "%"])
def test_vertex_path_of_any_text_round_trips(name: str) -> None:
    path = protocol.vertex_path(name)
    assert httpx.URL(f"http://h{path}").path == f"/v1/vertices/{name}"


def send_with_retries(retries: int, *responses: httpx.Response) -> list[float]:
    """Repeat a request that receives these responses; return the delays."""
    delays: list[float] = []
    remaining = list(responses)
    retrying = Retrying(**protocol.retry_policy(retries).arguments(), sleep=delays.append)
    with suppress(protocol.ServiceError):
        retrying(lambda: protocol.stats(False, False).parse_response(remaining.pop(0)))
    assert not remaining
    return delays


def test_retry_policy_honors_retry_after_and_ends() -> None:
    busy, lost = httpx.Response(429, headers={"Retry-After": "7"}), httpx.Response(502)
    first, second = send_with_retries(2, busy, lost, lost)
    assert first == 7
    assert 0 < second < 1
    assert send_with_retries(2, httpx.Response(422)) == []
    assert send_with_retries(1, httpx.Response(503, headers={"Retry-After": "3600"}), lost) == [30]


def parse_events(text: str) -> list[protocol.BatchChanges]:
    response = httpx.Response(200, headers={"Content-Type": "text/event-stream"}, content=text.encode())
    parsed = (protocol.parse_event(event, httpx.URL("http://h")) for event in EventSource(response).iter_sse())
    return [changes for changes in parsed if changes is not None]


def test_parse_event_returns_changes_and_skips_heartbeats() -> None:
    # Python regards U+2028 and U+0085 as ends of lines; server-sent events do not.
    message = '{"sequence":4,"anchored":false,"changes":[],"removed":["a\u2028b\u0085c"]}'
    text = f"retry: 1000\n\n: still here\n\nid: 4\nevent: changes\ndata: {message}\n\n: still here\n\n"
    (changes,) = parse_events(text)
    assert (changes.sequence, changes.removed, changes.last) == (4, ["a\u2028b\u0085c"], True)
    with pytest.raises(protocol.TooOldError):
        parse_events(f"{text}event: gone\ndata: {{}}\n\n")


@pytest.mark.parametrize("library", ["httpx", "httpx_sse", "tenacity"])
def test_client_without_library_names_the_missing_extra(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    imported = builtins.__import__

    def without(name: str, *arguments: Any, **options: Any) -> Any:
        if name == library:
            raise ModuleNotFoundError(name, name=name)
        return imported(name, *arguments, **options)

    for name in [
        name for name in sys.modules if name.startswith("ripplevec.client") or name == "ripplevec.util.retry_policy"
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[client\]"):
        importlib.import_module("ripplevec.client")


def test_attributes_are_sent_with_text_names() -> None:
    matrix = csr_array(np.array([[0.0, 2.0], [1.0, 0.0]]))
    assert protocol.set_attributes(["a", "b"], matrix, "k").body == {
        "key": "k",
        "attributes": [{"id": "a", "attributes": {"1": 2.0}}, {"id": "b", "attributes": {"0": 1.0}}],
    }
    assert protocol.preview([], None, [0.5, -1.0]).body["attributes"] == [0.5, -1.0]
    assert "attributes" not in protocol.preview(["a"], None).body
    batch = attach_attributes(Batch.of(["a"], ["b"]), read_attributes({"a": {"x": 1}}))
    body = protocol.add_edges(batch, None).body
    assert (body["edges"], body["attributes"]) == ([("a", "b")], [{"id": "a", "attributes": {"x": 1.0}}])
