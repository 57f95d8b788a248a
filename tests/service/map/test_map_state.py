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


class VertexLabels:
    def __init__(self) -> None:
        self.version, self.labels = 0, {}

    def get(self, vertex: Id) -> str | None:
        return self.labels.get(vertex)

    def put(self, **labels: str) -> None:
        self.labels |= labels
        self.version += 1


class World:
    """A model, those who are told what it changes, and somebody who looks."""

    def __init__(self, limit: int = 1000, retained: int = 1000) -> None:
        self.model = Embedder(dim=8, threads=1, anchor_growth=0)
        self.model.fit([(f"v{i}", f"v{(i + step) % 80}") for i in range(80) for step in (1, 2, 5)])
        self.feed = ChangeFeed(0, 8, batches=retained, size=1 << 30, followers=1)
        self.labels, self.now = VertexLabels(), 0.0
        self.shown = MapState(self.model, self.feed, self.labels, limit=limit, clock=lambda: self.now)

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
        return self.shown.look(*(() if seen is None else (seen["epoch"], seen["tick"])))


@pytest.fixture
def world() -> World:
    return World()


def test_the_first_look_gets_everything(world: World) -> None:
    seen = world.look()
    points = seen["points"]
    assert seen["whole"]
    assert points["id"] == world.model.ids
    assert points["arrival"] == list(range(80))
    assert len(set(zip(points["x"], points["y"], strict=True))) > 70
    assert set(points["label"]) == {None}
    assert min(points["community"]) >= 0


def test_nothing_new_is_nothing(world: World) -> None:
    seen = world.look()
    again = world.look(seen)
    assert not again["whole"]
    assert again["points"]["id"] == again["gone"] == []


def test_only_what_changed_is_told(world: World) -> None:
    seen = world.look()
    changes = world.apply([("new", "v3"), ("new", "v4")])
    again = world.look(seen)
    assert set(again["points"]["id"]) == set(changes.ids)
    assert again["points"]["arrival"][again["points"]["id"].index("new")] == 80
    assert world.look(again)["points"]["id"] == []
    assert set(world.look(seen)["points"]["id"]) == set(changes.ids), "another page that looks later"


def test_places_are_those_of_the_vectors(world: World) -> None:
    seen = world.look()
    world.apply([("new", "v3"), ("new", "v4")])
    told = world.look(seen)["points"]
    placed = world.shown.place(["new"])["new"]
    at = told["id"].index("new")
    assert (told["x"][at], told["y"][at]) == (placed["x"], placed["y"])
    assert told["community"][at] == placed["community"]


def test_the_others_stay_still(world: World) -> None:
    before = world.look()
    world.apply([("new", "v3"), ("new", "v4")])
    changed = set(world.look(before)["points"]["id"])
    after = world.look()["points"]
    there = {name: (x, y) for name, x, y in zip(after["id"], after["x"], after["y"], strict=True)}
    for name, x, y in zip(*(before["points"][column] for column in ("id", "x", "y")), strict=True):
        assert name in changed or there[name] == (x, y)


def test_those_that_go_are_told_once(world: World) -> None:
    seen = world.look()
    world.apply(Batch.vertices(["v7"], Op.REMOVE_VERTEX))
    again = world.look(seen)
    assert again["gone"] == [7]
    assert "v7" not in again["points"]["id"]
    assert world.look(again)["gone"] == []
    assert "v7" not in world.look()["points"]["id"]


def test_a_vertex_that_comes_back_is_another_point(world: World) -> None:
    seen = world.look()
    world.apply(Batch.vertices(["v7"], Op.REMOVE_VERTEX))
    world.apply([("v7", "v8")])
    again = world.look(seen)
    assert again["gone"] == [7]
    assert again["points"]["arrival"][again["points"]["id"].index("v7")] == 80


def test_a_vertex_without_a_place_is_not_shown_until_it_has_one(world: World) -> None:
    seen = world.look()
    world.apply(Batch.vertices(["alone"]))
    later = world.look(seen)
    assert "alone" not in later["points"]["id"]
    world.apply([("alone", "v1")])
    assert "alone" in world.look(later)["points"]["id"]


def test_an_anchor_fits_the_map_anew_and_nearly_as_it_was(world: World) -> None:
    seen = world.look()
    world.now = 100.0
    world.anchor()
    again = world.look(seen)
    assert again["whole"]
    assert again["epoch"] == seen["epoch"] + 1
    before, after = (np.array([look["points"]["x"], look["points"]["y"]]) for look in (seen, again))
    assert np.abs(before - after).mean() < 0.2 * np.ptp(before)


def test_fits_are_not_made_without_a_pause(world: World) -> None:
    world.now = 10.0
    seen = world.look()
    world.anchor()
    world.now = 10.5
    early = world.look(seen)
    assert not early["whole"], "what an anchor moved is told as changes until the map is fitted"
    assert early["points"]["id"]
    world.now = 11.5
    assert world.look(early)["whole"]


def test_much_growth_fits_the_map_anew_without_an_anchor(world: World) -> None:
    seen = world.look()
    world.now = 100.0
    world.apply([(f"n{i}", f"v{i % 80}") for i in range(80)])
    again = world.look(seen)
    assert world.look(again)["epoch"] == seen["epoch"] + 1


def test_what_is_no_longer_known_is_read_anew() -> None:
    world = World(retained=3)
    seen = world.look()
    for i in range(9):
        world.apply([(f"n{i}", f"v{i}")])
    again = world.look(seen)
    assert again["whole"]
    assert {f"n{i}" for i in range(9)} <= set(again["points"]["id"])


def test_too_many_batches_at_once_are_read_anew(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BATCHES", 4)
    seen = world.look()
    for i in range(9):
        world.apply([(f"n{i}", f"v{i}")])
    assert world.look(seen)["whole"]


def test_of_many_vertices_a_sample_is_shown_and_newcomers_join_it() -> None:
    world = World(limit=40)
    seen = world.look()
    assert 30 <= len(seen["points"]["id"]) <= 50
    world.apply([(f"n{i}", f"v{i % 80}") for i in range(200)])
    fresh = [name for name in world.look(seen)["points"]["id"] if name.startswith("n")]
    assert 60 <= len(fresh) <= 140
    assert world.shown.place(["v1", "v2", "v3", "v4"]).keys() == {"v1", "v2", "v3", "v4"}, "shown or not"


def test_labels_are_told_when_they_change(world: World) -> None:
    world.labels.put(v1="red")
    seen = world.look()
    assert seen["points"]["label"][1] == "red"
    world.labels.put(v2="blue", nobody="green")
    again = world.look(seen)
    assert again["points"]["id"] == ["v2"]
    assert again["points"]["label"] == ["blue"]
    world.apply([("new", "v3")])
    world.labels.put(new="red")
    told = world.look(again)["points"]
    assert told["label"][told["id"].index("new")] == "red"


def test_an_empty_model_is_an_empty_map() -> None:
    model = Embedder(dim=4, threads=1)
    feed = ChangeFeed(0, 4, batches=10, size=1 << 20, followers=1)
    shown = MapState(model, feed, VertexLabels())
    seen = shown.look()
    assert seen["whole"]
    assert seen["points"]["id"] == []
    assert shown.place(["nobody"]) == {}


@pytest.mark.parametrize(("given", "sent"), [("a", "a"), (7, 7), (2**53, 2**53), (2**53 + 1, "9007199254740993")])
def test_ids_that_a_browser_cannot_hold_go_as_text(given: Id, sent: Id, world: World) -> None:
    check: Callable[[Id], Id] = module.json_id
    assert check(given) == sent
    assert type(check(given)) is type(sent)
