"""Whatever is read of a model on shards is what one machine would answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.batch import id_column
from ripplevec.cluster.driver_reads import scatter_parts
from ripplevec.cluster.shard_graph import ShardGraph
from ripplevec.embedder import Embedder
from ripplevec.integrations.export import whole
from ripplevec.search import ann

KINDS = ["int", "text", "mixed"]


@pytest.fixture(params=KINDS)
def models(request: pytest.FixtureRequest, grown: Any) -> tuple[Embedder, Embedder]:
    return grown(kind=request.param)


def test_who_is_there(models: tuple[Embedder, Embedder]) -> None:
    one, other = models
    assert (len(one), one.ids, list(one), one.sequence) == (len(other), other.ids, list(other), other.sequence)
    assert all(name in other for name in one.ids)
    assert "stranger" not in other
    assert 0.5 not in other
    assert repr(other).endswith(repr(one).split(":")[1])


def test_vectors(models: tuple[Embedder, Embedder]) -> None:
    one, other = models
    assert np.array_equal(one.to_numpy(), other.to_numpy())
    some = one.ids[::-3] + one.ids[:2]
    assert np.array_equal(one.vectors(some), other.vectors(some))
    assert np.array_equal(one[some[0]], other[some[0]])
    assert other.vectors([]).shape == one.vectors([]).shape
    assert one.to_arrow().equals(other.to_arrow())
    assert one.to_pandas().equals(other.to_pandas())


def test_all_of_it_for_other_libraries(models: tuple[Embedder, Embedder]) -> None:
    one, other = map(whole, models)
    assert (one.ids, one.directed) == (other.ids, other.directed)
    assert np.array_equal(one.vectors, other.vectors)
    edges = [sorted(zip(held.src, held.dst, held.weight, strict=True)) for held in (one, other)]
    assert edges[0] == edges[1]
    assert edges[0]


def test_what_is_known_of_vertices(models: tuple[Embedder, Embedder]) -> None:
    one, other = models
    assert np.array_equal(one.degree(one.ids), other.degree(one.ids))
    assert np.array_equal(one.age(one.ids), other.age(one.ids))
    for name in one.ids:
        assert one.neighbors(name) == other.neighbors(name)
        assert one.neighbors(name, 2) == other.neighbors(name, 2)
        assert one.engine.vertex_info(one.engine.find_row(name)) == other.engine.vertex_info(other.engine.find_row(name))
    column = id_column(one.ids)
    rows = [model.engine.find_rows(column) for model in models]
    assert np.array_equal(one.engine.placed(rows[0]), other.engine.placed(rows[1]))
    early = [model.engine.ids_of(model.engine.rows_by_arrival(lambda number: number % 2 == 0)) for model in models]
    assert early[0] == early[1]
    assert one.engine.count_connected() == other.engine.count_connected()
    assert len(other.engine.empty_changes(3)) == 0
    assert other.engine.empty_changes(3).vectors.shape == one.engine.empty_changes(3).vectors.shape


@pytest.mark.parametrize("duplicates", ["add", "ignore", "replace"])
@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_previews(grown: Any, duplicates: str, storage: str) -> None:
    one, other = grown(duplicates=duplicates, storage=storage)
    rng = np.random.default_rng(1)
    for size in (0, 1, 2, 5, 30):
        around = [one.ids[place] for place in rng.integers(0, len(one), size)]
        weights = rng.uniform(0.1, 3, size)
        assert np.array_equal(one.preview(around), other.preview(around))
        assert np.array_equal(one.preview(around, weights), other.preview(around, weights))
    before = other.digest()
    other.preview(one.ids)
    assert other.digest() == before


def same_up_to_equals(one: list[tuple[Any, float]], other: list[tuple[Any, float]]) -> bool:
    """The same cosines, and the same vertices but for those that others are exactly as near as."""
    last = one[-1][1] if one else 0.0
    names = [{name for name, cosine in found if cosine > last} for found in (one, other)]
    return [cosine for _, cosine in one] == [cosine for _, cosine in other] and names[0] == names[1]


@pytest.mark.parametrize("shards", [1, 2, 5])
@pytest.mark.parametrize("parameters", [{}, {"storage": "float16"}, {"normalize": False}, {"search": "exact"}])
def test_who_is_near(grown: Any, shards: int, parameters: dict[str, Any]) -> None:
    one, other = grown(shards, **parameters)
    asked: list[Any] = [*one.ids[:20], *np.random.default_rng(0).normal(size=(5, one.dim)), np.zeros(one.dim)]
    for ask in asked:
        for count in (1, 3, 1000):
            assert same_up_to_equals(one.nearest(ask, count), other.nearest(ask, count))


@pytest.mark.parametrize("shards", [1, 3, 5])
def test_of_equals_the_first_to_arrive_comes_first(new: Any, shards: int) -> None:
    """Leaves of one hub have the same vector. Until somebody goes, rows of one machine are in order of arrival."""
    one, other = new(shards)
    ring = [(number, (number + step) % 20) for number in range(20) for step in (1, 2)]
    leaves = [(0, f"leaf {number}") for number in np.random.default_rng(0).permutation(40).tolist()]
    for model in (one, other):
        model.fit(ring)
        model.partial_fit(leaves)
    for count in (1, 5, 39, 45, 1000):
        for ask in ("leaf 7", 0, 11, other["leaf 3"]):
            assert one.nearest(ask, count) == other.nearest(ask, count)


def test_who_is_near_by_the_indexes_of_shards(grown: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("usearch")
    monkeypatch.setattr(ann, "MAX_UNINDEXED", 0)
    one, other = grown(2, search="exact")[0], grown(2, search="ann")[1]
    for _ in range(3):
        for name in one.ids[:20]:
            assert same_up_to_equals(one.nearest(name, 5), other.nearest(name, 5))
    shards: list[ShardGraph] = other.engine.transport.shards
    assert all(shard.search.index is not None and shard.search.index.total_added > 0 for shard in shards)
    other.remove_vertex(one.ids[3])
    one.remove_vertex(one.ids[3])
    for name in one.ids[:20]:
        assert same_up_to_equals(one.nearest(name, 5), other.nearest(name, 5))


@pytest.mark.parametrize("parameters", [{}, {"directed": True}, {"storage": "float16"}])
def test_diagnostics(grown: Any, parameters: dict[str, Any]) -> None:
    one, other = (model.diagnostics() for model in grown(**parameters))
    assert list(one) == list(other)
    for name in set(one) - {"bytes", "orthogonality_error"}:
        assert one[name] == other[name], name
    assert other["orthogonality_error"] == pytest.approx(one["orthogonality_error"], rel=1e-5)
    assert other["bytes"] > 0


def test_before_anything_came(new: Any) -> None:
    one, other = new(4)
    assert other.diagnostics() | {"bytes": 0} == one.diagnostics() | {"bytes": 0}
    assert (other.ids, other.nearest(np.ones(other.dim)), other.digest()) == ([], [], one.digest())
    assert np.array_equal(other.preview([]), one.preview([]))
    other.check()


def test_the_digest_brings_few_rows_at_a_time(grown: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from ripplevec.engine import digest

    one, other = grown()
    expected, engine = one.digest(), other.engine
    monkeypatch.setattr(digest, "HASH_BLOCK_ROWS", 7)
    assert one.digest() == expected
    brought: list[int] = []
    monkeypatch.setattr(
        type(engine), "row_values", lambda self, rows, what: brought.append(rows.size) or self.read_rows(rows, what)
    )
    assert other.digest() == expected
    assert max(brought) == 7


def test_parts_go_to_their_places() -> None:
    parts = [np.array([10.0, 30.0]), np.empty(0), np.array([20.0])]
    assert scatter_parts(parts, [np.array([0, 2]), np.empty(0, np.int64), np.array([1])]).tolist() == [10, 20, 30]


@pytest.mark.parametrize("shards", [1, 3, 5])
@pytest.mark.parametrize("directed", [False, True])
def test_edges_row_by_row(grown: Any, shards: int, directed: bool) -> None:
    one, other = (model.engine for model in grown(shards, directed=directed))
    names = np.random.default_rng(0).permutation(one.ids_of(one.rows_by_arrival()))
    here, there = one.rows_of(names), other.rows_of(names)
    links, slots = one.graph.adjacency.links, one.graph.adjacency.slots(here)
    assert other.ids_of(other.read_edges(there, "code")) == one.ids_of(links.neighbor[slots].astype(np.int64))
    for what in ("weight", "outgoing", "incoming"):
        assert np.array_equal(other.read_edges(there, what), getattr(links, what)[slots])
    for what in ("strength", "in_strength", "degree"):
        assert np.array_equal(other.read_rows(there, what), getattr(links, what)[here])
    assert other.read_edges(there[:0], "weight").shape == (0,)
    assert other.read_rows(there[:0], "vectors").shape == (0, 4)
