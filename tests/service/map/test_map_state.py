"""The map state follows the changes of batches without reading all vertices again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ripplevec.batch import Batch, Id, Op
from ripplevec.changes import Changes
from ripplevec.embedder import Embedder
from ripplevec.errors import UnknownVertexError
from ripplevec.service.change_feed import ChangeFeed
from ripplevec.service.map import map_state as module
from ripplevec.service.map.map_state import MapState, is_sampled, read_neighborhood, read_vertices, sample_vertices


class StubLabels:
    def __init__(self) -> None:
        self.version, self.labels = 0, {}

    def get(self, vertex: Id) -> str | None:
        return self.labels.get(vertex)

    def put(self, **labels: str) -> None:
        self.labels |= labels
        self.version += 1


class MapFixture:
    """A model, its change feed, and a map whose clock is set by the test."""

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
        self.model.engine.anchor_growth = 1e-9
        assert self.apply([("v0", "v9")]).anchored
        self.model.engine.anchor_growth = 0

    def read(self, first: dict[str, Any] | None = None) -> dict[str, Any]:
        return self.map_state.read(*(() if first is None else (first["epoch"], first["tick"])))


@pytest.fixture
def fixture() -> MapFixture:
    return MapFixture()


def test_map_first_read_returns_all_points(fixture: MapFixture) -> None:
    first = fixture.read()
    points = first["points"]
    assert first["whole"]
    assert points["id"] == fixture.model.ids
    assert points["arrival"] == list(range(80))
    assert len(set(zip(points["x"], points["y"], strict=True))) > 70
    assert set(points["label"]) == {None}
    assert min(points["community"]) >= 0


def test_map_read_without_changes_returns_no_points(fixture: MapFixture) -> None:
    first = fixture.read()
    again = fixture.read(first)
    assert not again["whole"]
    assert again["points"]["id"] == again["gone"] == []


def test_map_read_returns_only_changed_points(fixture: MapFixture) -> None:
    first = fixture.read()
    changes = fixture.apply([("new", "v3"), ("new", "v4")])
    again = fixture.read(first)
    assert set(again["points"]["id"]) == set(changes.ids)
    assert again["points"]["arrival"][again["points"]["id"].index("new")] == 80
    assert fixture.read(again)["points"]["id"] == []
    assert set(fixture.read(first)["points"]["id"]) == set(changes.ids), "for another page that reads later"


def test_map_positions_match_the_projected_vectors(fixture: MapFixture) -> None:
    first = fixture.read()
    fixture.apply([("new", "v3"), ("new", "v4")])
    update = fixture.read(first)["points"]
    placed = fixture.map_state.locate(["new"])["new"]
    at = update["id"].index("new")
    assert (update["x"][at], update["y"][at]) == (placed["x"], placed["y"])
    assert update["community"][at] == placed["community"]


def test_map_unchanged_points_do_not_move(fixture: MapFixture) -> None:
    before = fixture.read()
    fixture.apply([("new", "v3"), ("new", "v4")])
    changed = set(fixture.read(before)["points"]["id"])
    after = fixture.read()["points"]
    there = {name: (x, y) for name, x, y in zip(after["id"], after["x"], after["y"], strict=True)}
    for name, x, y in zip(*(before["points"][column] for column in ("id", "x", "y")), strict=True):
        assert name in changed or there[name] == (x, y)


def test_map_removed_points_are_reported_once(fixture: MapFixture) -> None:
    first = fixture.read()
    fixture.apply(Batch.vertices(["v7"], Op.REMOVE_VERTEX))
    again = fixture.read(first)
    assert again["gone"] == [7]
    assert "v7" not in again["points"]["id"]
    assert fixture.read(again)["gone"] == []
    assert "v7" not in fixture.read()["points"]["id"]


def test_map_vertex_that_arrives_again_is_a_new_point(fixture: MapFixture) -> None:
    first = fixture.read()
    fixture.apply(Batch.vertices(["v7"], Op.REMOVE_VERTEX))
    fixture.apply([("v7", "v8")])
    again = fixture.read(first)
    assert again["gone"] == [7]
    assert again["points"]["arrival"][again["points"]["id"].index("v7")] == 80


def test_map_unplaced_vertex_is_omitted_until_placed(fixture: MapFixture) -> None:
    first = fixture.read()
    fixture.apply(Batch.vertices(["alone"]))
    later = fixture.read(first)
    assert "alone" not in later["points"]["id"]
    fixture.apply([("alone", "v1")])
    assert "alone" in fixture.read(later)["points"]["id"]


def test_map_anchor_refits_with_similar_positions(fixture: MapFixture) -> None:
    first = fixture.read()
    fixture.now = 100.0
    fixture.anchor()
    again = fixture.read(first)
    assert again["whole"]
    assert again["epoch"] == first["epoch"] + 1
    before, after = (np.array([result["points"]["x"], result["points"]["y"]]) for result in (first, again))
    assert np.abs(before - after).mean() < 0.2 * np.ptp(before)


def test_map_refits_are_rate_limited(fixture: MapFixture) -> None:
    fixture.now = 10.0
    first = fixture.read()
    fixture.anchor()
    fixture.now = 10.5
    early = fixture.read(first)
    assert not early["whole"], "moves of an anchor are sent as changes until the map is fitted again"
    assert early["points"]["id"]
    fixture.now = 11.5
    assert fixture.read(early)["whole"]


def test_map_growth_without_anchor_refits(fixture: MapFixture) -> None:
    first = fixture.read()
    fixture.now = 100.0
    fixture.apply([(f"n{i}", f"v{i % 80}") for i in range(80)])
    again = fixture.read(first)
    assert fixture.read(again)["epoch"] == first["epoch"] + 1


def test_map_expired_changes_trigger_a_full_read() -> None:
    fixture = MapFixture(retained=3)
    first = fixture.read()
    for i in range(9):
        fixture.apply([(f"n{i}", f"v{i}")])
    again = fixture.read(first)
    assert again["whole"]
    assert {f"n{i}" for i in range(9)} <= set(again["points"]["id"])


def test_map_too_many_batches_trigger_a_full_read(fixture: MapFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BATCHES", 4)
    first = fixture.read()
    for i in range(9):
        fixture.apply([(f"n{i}", f"v{i}")])
    assert fixture.read(first)["whole"]


def test_map_large_graph_is_sampled_including_arrivals() -> None:
    fixture = MapFixture(limit=40)
    first = fixture.read()
    assert 30 <= len(first["points"]["id"]) <= 50
    fixture.apply([(f"n{i}", f"v{i % 80}") for i in range(200)])
    fresh = [name for name in fixture.read(first)["points"]["id"] if name.startswith("n")]
    assert 60 <= len(fresh) <= 140
    assert fixture.map_state.locate(["v1", "v2", "v3", "v4"]).keys() == {"v1", "v2", "v3", "v4"}, "displayed or not"


def test_map_changed_labels_update_points(fixture: MapFixture) -> None:
    fixture.labels.put(v1="red")
    first = fixture.read()
    assert first["points"]["label"][1] == "red"
    fixture.labels.put(v2="blue", unknown="green")
    again = fixture.read(first)
    assert again["points"]["id"] == ["v2"]
    assert again["points"]["label"] == ["blue"]
    fixture.apply([("new", "v3")])
    fixture.labels.put(new="red")
    update = fixture.read(again)["points"]
    assert update["label"][update["id"].index("new")] == "red"


def test_map_of_empty_model_is_empty() -> None:
    model = Embedder(dim=4, threads=1)
    feed = ChangeFeed(0, 4, max_batches=10, max_bytes=1 << 20, max_followers=1)
    map_state = MapState(model, feed, StubLabels())
    first = map_state.read()
    assert first["whole"]
    assert first["points"]["id"] == []
    assert map_state.locate(["unknown"]) == {}


@pytest.mark.parametrize(("given", "sent"), [("a", "a"), (7, 7), (2**53, 2**53), (2**53 + 1, "9007199254740993")])
def test_json_id_large_integer_becomes_text(given: Id, sent: Id, fixture: MapFixture) -> None:
    check: Callable[[Id], Id] = module.json_id
    assert check(given) == sent
    assert type(check(given)) is type(sent)


def ring(size: int = 60) -> Embedder:
    edges = [(i, (i + step) % size, float(step)) for i in range(size) for step in (1, 2, 5)]
    return Embedder(dim=8, threads=1).fit(edges)


def test_sample_of_all_vertices_is_in_order_of_arrival() -> None:
    model = ring()
    seen = sample_vertices(model, 1.0)
    assert seen.ids == model.ids
    assert seen.arrival.tolist() == list(range(60))
    np.testing.assert_array_equal(seen.vectors, model.to_numpy())


def test_sample_ignores_free_and_reused_rows() -> None:
    model = ring()
    for vertex in (3, 4, 9):
        model.remove_vertex(vertex)
    model.partial_fit([("new", 0), ("newer", 1)])
    assert sample_vertices(model, 1.0).ids == model.ids
    assert sample_vertices(model, 1.0).arrival.tolist()[-2:] == [60, 61]


def test_sample_smaller_is_subset_of_larger() -> None:
    model = ring(400)
    small, large = sample_vertices(model, 0.2), sample_vertices(model, 0.5)
    assert set(small.ids) < set(large.ids)
    assert 60 <= len(small.ids) <= 100
    assert 180 <= len(large.ids) <= 220


def test_sample_membership_depends_on_arrival_number_only() -> None:
    numbers = np.arange(1000)
    picked = is_sampled(numbers, 0.3)
    assert is_sampled(numbers[500:], 0.3).tolist() == picked[500:].tolist()
    assert not is_sampled(numbers[1:], 0.0).any()
    assert is_sampled(numbers, 1.0).all()


def test_read_vertices_omits_unknown_and_unplaced_vertices() -> None:
    model = ring()
    model.partial_fit(Batch.vertices(["alone"]))
    assert read_vertices(model, [3, "alone", "unknown", 4]).ids == [3, 4]
    assert "alone" not in sample_vertices(model, 1.0).ids
    assert read_vertices(model, []).ids == []


def test_neighborhood_lists_latest_neighbors_first_with_weights() -> None:
    model = ring()
    model.add_vertex("new", [0, 7], [2.0, 3.0])
    assert read_neighborhood(model, "new", 10).neighbors == [(7, 3.0), (0, 2.0)]
    seen = read_neighborhood(model, 0, 2)
    assert seen.degree == 7
    assert len(seen.neighbors) == 2
    assert seen.neighbors[0] == ("new", 2.0)
    assert seen.arrival == 0
    assert read_neighborhood(model, "new", 10).arrival == 60


def test_neighborhood_of_unknown_vertex_is_an_error() -> None:
    with pytest.raises(UnknownVertexError, match="unknown"):
        read_neighborhood(ring(), "unknown", 5)
