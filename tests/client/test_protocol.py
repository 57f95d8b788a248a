from __future__ import annotations

import builtins
import importlib
import json
import sys
from typing import Any

import httpx
import numpy as np
import pytest

from ripplevec.batch import Batch
from ripplevec.client import protocol
from ripplevec.errors import InvalidValueError, MissingExtraError


def test_every_batch_has_a_key_of_its_own_or_the_one_given() -> None:
    first, second = (protocol.add_edges([("a", "b")], None).body["key"] for _ in range(2))
    assert first != second
    assert protocol.remove_vertices(["a"], "mine").body["key"] == "mine"


def test_times_go_along() -> None:
    edges = Batch.of(["a", "b"], ["b", "c"], time=[7.5, float("nan")])
    assert protocol.add_edges(edges, None).body["edges"] == [("a", "b", 1.0, 7.5), ("b", "c", 1.0, None)]
    assert protocol.add_vertex("v", ["a"], None, None, 3).body["arrivals"] == [
        {"id": "v", "neighbors": ["a"], "time": 3.0}
    ]
    assert protocol.add_vertex("v", [], None, None).body["arrivals"] == [{"id": "v", "neighbors": []}]


def test_ids_are_what_the_library_takes() -> None:
    assert protocol.add_vertex("v", np.array([1, 2]), None, None).body["arrivals"][0]["neighbors"] == [1, 2]
    assert json.loads(protocol.vectors(np.array([3])).arguments()["content"]) == {"ids": [3]}
    for call in (lambda: protocol.add_vertex("v", "ann", None, None), lambda: protocol.preview("ann", None)):
        with pytest.raises(InvalidValueError, match="neighbors: expected a list or column of ids, got 'ann'"):
            call()
    for call in (lambda: protocol.vectors("ann"), lambda: protocol.remove_vertices("ann", None)):
        with pytest.raises(InvalidValueError, match="ids: expected a list or column of ids, got 'ann'"):
            call()


def test_a_time_is_what_the_library_takes() -> None:
    assert protocol.add_vertex("v", [], None, None, float("nan")).body["arrivals"][0]["time"] is None
    with pytest.raises(InvalidValueError, match="time: expected numbers, or dates as datetime64"):
        protocol.add_vertex("v", [], None, None, "noon")  # type: ignore[arg-type]


def test_removals_are_not_edges() -> None:
    with pytest.raises(InvalidValueError, match="removals"):
        protocol.add_edges(Batch.of(["a"], ["b"], op=[1]), None)


@pytest.mark.parametrize("name", ["a/b", "?", "#", "ü", "a b", "%"])
def test_an_address_holds_any_text(name: str) -> None:
    path = protocol.address(name)
    assert httpx.URL(f"http://h{path}").path == f"/v1/vertices/{name}"


def test_patience_ends_and_waits_at_least_as_long_as_asked() -> None:
    patience = protocol.Patience(2)
    assert patience.pause(httpx.Response(429, headers={"Retry-After": "7"})) == 7
    assert 0 < (patience.pause() or 0) < 1
    assert patience.pause() is None
    assert protocol.Patience(2).pause(httpx.Response(422)) is None


def test_events_are_read_from_their_lines() -> None:
    lines = protocol.EventLines()
    text = [
        "retry: 1000",
        "",
        ": still here",
        "",
        "id: 4",
        "event: changes",
        "data: {}",
        "",
        "event: gone",
        "data: 1",
        "",
    ]
    assert [event for line in text for event in lines.take(line)] == [("changes", "{}"), ("gone", "1")]


def test_without_its_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "httpx":
            raise ModuleNotFoundError(name, name=name)
        return imported(name, *arguments, **options)

    for name in [name for name in sys.modules if name.startswith("ripplevec.client")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'ripplevec\[client\]'"):
        importlib.import_module("ripplevec.client")
