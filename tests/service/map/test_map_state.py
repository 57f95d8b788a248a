"""The points of the map follow what batches change, without reading everything again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ripplevec.batch import Batch, Id, Op
from ripplevec.changes import Changes
from ripplevec.embedder import Embedder
from ripplevec.service.change_feed import ChangeFeed
from ripplevec.service.map import map_state as module
from ripplevec.service.map.map_state import MapState


class StubLabels:
    def __init__(self) -> None:
        self.version, self.labels = 0, {}

    def get(self, vertex: Id) -> str | None:
        return self.labels.get(vertex)

    def put(self, **labels: str) -> None:
        self.labels |= labels
        self.version += 1


class MapFixture:
    """A model, those who are told what it changes, and somebody who looks."""

    def __init__(self, limit: int = 1000, retained: int = 1000) -> None:
        self.model = Embedder(dim=8, threads=1, anchor_growth=0)
        self.model.fit([(f"v{i}", f"v{(i + step) % 80}") for i in range(80) for step in (1, 2, 5)])
        self.feed = ChangeFeed(0, 8, max_batches=retained, max_bytes=1 << 30, max_followers=1)
        self.labels, self.now = StubLabels(), 0.0
        self.map_state = MapState(self.model, self.feed, self.labels, limit=limit, clock=lambda: self.now)

    def apply(self, batch: Any) -> Changes:
        changes = self.model.partial_fit(batch)
        self.feed.append(changes)
        return changes

    def anchor(self) -> None:
        self.apply([("v0", "v9")])
        anchored = self.model.anchor()
        anchored.sequence += 1
        self.model._engine.sequence += 1
        self.feed.append(anchored)

    def look(self, seen: dict[str, Any] | None = None) -> dict[str, Any]:
        return self.map_state.read(*(() if seen is None else (seen["epoch"], seen["tick"])))


@pytest.fixture
def fixture() -> MapFixture:
    return MapFixture()


def test_map_first_read_returns_all_points(fixture: MapFixture) -> None:
    seen = fixture.look()
    points = seen["points"]
    assert seen["whole"]
    assert points["id"] == fixture.model.ids
    assert points["arrival"] == list(range(80))
    assert len(set(zip(points["x"], points["y"], strict=True))) > 70
    assert set(points["label"]) == {None}
    assert min(points["community"]) >= 0


def test_map_read_without_changes_returns_no_points(fixture: MapFixture) -> None:
    seen = fixture.look()
    again = fixture.look(seen)
    assert not again["whole"]
    assert again["points"]["id"] == again["gone"] == []


def test_map_read_returns_only_changed_points(fixture: MapFixture) -> None:
    seen = fixture.look()
    changes = fixture.apply([("new", "v3"), ("new", "v4")])
    again = fixture.look(seen)
    assert set(again["points"]["id"]) == set(changes.ids)
    assert again["points"]["arrival"][again["points"]["id"].index("new")] == 80
    assert fixture.look(again)["points"]["id"] == []
    assert set(fixture.look(seen)["points"]["id"]) == set(changes.ids), "another page that looks later"


def test_map_positions_match_the_projected_vectors(fixture: MapFixture) -> None:
    seen = fixture.look()
    fixture.apply([("new", "v3"), ("new", "v4")])
    told = fixture.look(seen)["points"]
    placed = fixture.map_state.locate(["new"])["new"]
    at = told["id"].index("new")
    assert (told["x"][at], told["y"][at]) == (placed["x"], placed["y"])
    assert told["community"][at] == placed["community"]


def test_map_unchanged_points_do_not_move(fixture: MapFixture) -> None:
    before = fixture.look()
    fixture.apply([("new", "v3"), ("new", "v4")])
    changed = set(fixture.look(before)["points"]["id"])
    after = fixture.look()["points"]
    there = {name: (x, y) for name, x, y in zip(after["id"], after["x"], after["y"], strict=True)}
    for name, x, y in zip(*(before["points"][column] for column in ("id", "x", "y")), strict=True):
        assert name in changed or there[name] == (x, y)


def test_map_removed_points_are_reported_once(fixture: MapFixture) -> None:
    seen = fixture.look()
    fixture.apply(Batch.vertices(["v7"], Op.REMOVE_VERTEX))
    again = fixture.look(seen)
    assert again["gone"] == [7]
    assert "v7" not in again["points"]["id"]
    assert fixture.look(again)["gone"] == []
    assert "v7" not in fixture.look()["points"]["id"]


def test_map_vertex_that_arrives_again_is_a_new_point(fixture: MapFixture) -> None:
    seen = fixture.look()
    fixture.apply(Batch.vertices(["v7"], Op.REMOVE_VERTEX))
    fixture.apply([("v7", "v8")])
    again = fixture.look(seen)
    assert again["gone"] == [7]
    assert again["points"]["arrival"][again["points"]["id"].index("v7")] == 80


def test_map_unplaced_vertex_is_omitted_until_placed(fixture: MapFixture) -> None:
    seen = fixture.look()
    fixture.apply(Batch.vertices(["alone"]))
    later = fixture.look(seen)
    assert "alone" not in later["points"]["id"]
    fixture.apply([("alone", "v1")])
    assert "alone" in fixture.look(later)["points"]["id"]


def test_map_anchor_refits_with_similar_positions(fixture: MapFixture) -> None:
    seen = fixture.look()
    fixture.now = 100.0
    fixture.anchor()
    again = fixture.look(seen)
    assert again["whole"]
    assert again["epoch"] == seen["epoch"] + 1
    before, after = (np.array([look["points"]["x"], look["points"]["y"]]) for look in (seen, again))
    assert np.abs(before - after).mean() < 0.2 * np.ptp(before)


def test_map_refits_are_rate_limited(fixture: MapFixture) -> None:
    fixture.now = 10.0
    seen = fixture.look()
    fixture.anchor()
    fixture.now = 10.5
    early = fixture.look(seen)
    assert not early["whole"], "what an anchor moved is told as changes until the map is fitted"
    assert early["points"]["id"]
    fixture.now = 11.5
    assert fixture.look(early)["whole"]


def test_map_growth_without_anchor_refits(fixture: MapFixture) -> None:
    seen = fixture.look()
    fixture.now = 100.0
    fixture.apply([(f"n{i}", f"v{i % 80}") for i in range(80)])
    again = fixture.look(seen)
    assert fixture.look(again)["epoch"] == seen["epoch"] + 1


def test_map_expired_changes_trigger_a_full_read() -> None:
    fixture = MapFixture(retained=3)
    seen = fixture.look()
    for i in range(9):
        fixture.apply([(f"n{i}", f"v{i}")])
    again = fixture.look(seen)
    assert again["whole"]
    assert {f"n{i}" for i in range(9)} <= set(again["points"]["id"])


def test_map_too_many_batches_trigger_a_full_read(fixture: MapFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BATCHES", 4)
    seen = fixture.look()
    for i in range(9):
        fixture.apply([(f"n{i}", f"v{i}")])
    assert fixture.look(seen)["whole"]


def test_map_large_graph_is_sampled_including_arrivals() -> None:
    fixture = MapFixture(limit=40)
    seen = fixture.look()
    assert 30 <= len(seen["points"]["id"]) <= 50
    fixture.apply([(f"n{i}", f"v{i % 80}") for i in range(200)])
    fresh = [name for name in fixture.look(seen)["points"]["id"] if name.startswith("n")]
    assert 60 <= len(fresh) <= 140
    assert fixture.map_state.locate(["v1", "v2", "v3", "v4"]).keys() == {"v1", "v2", "v3", "v4"}, "map_state or not"


def test_map_changed_labels_update_points(fixture: MapFixture) -> None:
    fixture.labels.put(v1="red")
    seen = fixture.look()
    assert seen["points"]["label"][1] == "red"
    fixture.labels.put(v2="blue", nobody="green")
    again = fixture.look(seen)
    assert again["points"]["id"] == ["v2"]
    assert again["points"]["label"] == ["blue"]
    fixture.apply([("new", "v3")])
    fixture.labels.put(new="red")
    told = fixture.look(again)["points"]
    assert told["label"][told["id"].index("new")] == "red"


def test_map_of_empty_model_is_empty() -> None:
    model = Embedder(dim=4, threads=1)
    feed = ChangeFeed(0, 4, max_batches=10, max_bytes=1 << 20, max_followers=1)
    map_state = MapState(model, feed, StubLabels())
    seen = map_state.read()
    assert seen["whole"]
    assert seen["points"]["id"] == []
    assert map_state.locate(["nobody"]) == {}


@pytest.mark.parametrize(("given", "sent"), [("a", "a"), (7, 7), (2**53, 2**53), (2**53 + 1, "9007199254740993")])
def test_json_id_large_integer_becomes_text(given: Id, sent: Id, fixture: MapFixture) -> None:
    check: Callable[[Id], Id] = module.json_id
    assert check(given) == sent
    assert type(check(given)) is type(sent)
