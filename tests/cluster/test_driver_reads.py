"""Tests of reads from the driver: their results equal those of one machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.batch import id_column
from ripplevec.cluster.driver_reads import scatter_parts
from ripplevec.cluster.shard_graph import ShardGraph
from ripplevec.embedder import Embedder
from ripplevec.integrations.export import export_graph
from ripplevec.search import ann

KINDS = ["int", "text", "mixed"]


@pytest.fixture(params=KINDS)
def models(request: pytest.FixtureRequest, grown_models: Any) -> tuple[Embedder, Embedder]:
    return grown_models(kind=request.param)


def test_ids_and_membership_match_single_machine(models: tuple[Embedder, Embedder]) -> None:
    single, sharded = models
    assert (len(single), single.ids, list(single), single.sequence) == (
        len(sharded),
        sharded.ids,
        list(sharded),
        sharded.sequence,
    )
    assert all(name in sharded for name in single.ids)
    assert "unknown" not in sharded
    assert 0.5 not in sharded
    assert repr(sharded).endswith(repr(single).split(":")[1])


def test_vectors_match_single_machine(models: tuple[Embedder, Embedder]) -> None:
    single, sharded = models
    assert np.array_equal(single.to_numpy(), sharded.to_numpy())
    some = single.ids[::-3] + single.ids[:2]
    assert np.array_equal(single.vectors(some), sharded.vectors(some))
    assert np.array_equal(single[some[0]], sharded[some[0]])
    assert sharded.vectors([]).shape == single.vectors([]).shape
    assert single.to_arrow().equals(sharded.to_arrow())
    assert single.to_pandas().equals(sharded.to_pandas())


def test_export_graph_matches_single_machine(models: tuple[Embedder, Embedder]) -> None:
    single, sharded = map(export_graph, models)
    assert (single.ids, single.directed) == (sharded.ids, sharded.directed)
    assert np.array_equal(single.vectors, sharded.vectors)
    edges = [sorted(zip(exported.src, exported.dst, exported.weight, strict=True)) for exported in (single, sharded)]
    assert edges[0] == edges[1]
    assert edges[0]


def test_vertex_properties_match_single_machine(models: tuple[Embedder, Embedder]) -> None:
    single, sharded = models
    assert np.array_equal(single.degree(single.ids), sharded.degree(single.ids))
    assert np.array_equal(single.age(single.ids), sharded.age(single.ids))
    for name in single.ids:
        assert single.neighbors(name) == sharded.neighbors(name)
        assert single.neighbors(name, 2) == sharded.neighbors(name, 2)
        assert single.engine.vertex_info(single.engine.find_row(name)) == sharded.engine.vertex_info(
            sharded.engine.find_row(name)
        )
    column = id_column(single.ids)
    rows = [model.engine.find_rows(column) for model in models]
    assert np.array_equal(single.engine.placed(rows[0]), sharded.engine.placed(rows[1]))
    even = [model.engine.ids_of(model.engine.rows_by_arrival(lambda number: number % 2 == 0)) for model in models]
    assert even[0] == even[1]
    assert single.engine.count_connected() == sharded.engine.count_connected()
    assert len(sharded.engine.empty_changes(3)) == 0
    assert sharded.engine.empty_changes(3).vectors.shape == single.engine.empty_changes(3).vectors.shape


@pytest.mark.parametrize("duplicates", ["add", "ignore", "replace"])
@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_preview_matches_single_machine(grown_models: Any, duplicates: str, storage: str) -> None:
    single, sharded = grown_models(duplicates=duplicates, storage=storage)
    rng = np.random.default_rng(1)
    for size in (0, 1, 2, 5, 30):
        neighbors = [single.ids[position] for position in rng.integers(0, len(single), size)]
        weights = rng.uniform(0.1, 3, size)
        assert np.array_equal(single.preview(neighbors), sharded.preview(neighbors))
        assert np.array_equal(single.preview(neighbors, weights), sharded.preview(neighbors, weights))
    before = sharded.digest()
    sharded.preview(single.ids)
    assert sharded.digest() == before


def test_scores_and_recommendations_match_single_machine(models: tuple[Embedder, Embedder]) -> None:
    single, sharded = models
    newcomers = {"new": single.ids[:3]}
    pairs = [(first, second) for first in [*single.ids[:5], "new"] for second in single.ids]
    assert np.array_equal(single.score(pairs, newcomers=newcomers), sharded.score(pairs, newcomers=newcomers))
    for name in [*single.ids[:10], "new"]:
        options = {"among": single.ids[::2], "newcomers": newcomers}
        assert single.recommend(name, 5, **options) == sharded.recommend(name, 5, **options)
        found = [model.recommend(name, 5, newcomers=newcomers) for model in models]
        assert equal_up_to_ties(*found)


def equal_up_to_ties(single: list[tuple[Any, float]], sharded: list[tuple[Any, float]]) -> bool:
    """Test for equal cosines and equal vertices, except among vertices that share the lowest cosine."""
    last = single[-1][1] if single else 0.0
    names = [{name for name, cosine in found if cosine > last} for found in (single, sharded)]
    return [cosine for _, cosine in single] == [cosine for _, cosine in sharded] and names[0] == names[1]


@pytest.mark.parametrize("shards", [1, 2, 5])
@pytest.mark.parametrize("parameters", [{}, {"storage": "float16"}, {"normalize": False}, {"search": "exact"}])
def test_nearest_matches_single_machine_up_to_ties(grown_models: Any, shards: int, parameters: dict[str, Any]) -> None:
    single, sharded = grown_models(shards, **parameters)
    targets: list[Any] = [
        *single.ids[:20],
        *np.random.default_rng(0).normal(size=(5, single.dim)),
        np.zeros(single.dim),
    ]
    for target in targets:
        for count in (1, 3, 1000):
            assert equal_up_to_ties(single.nearest(target, count), sharded.nearest(target, count))


@pytest.mark.parametrize("shards", [1, 3, 5])
def test_nearest_with_ties_orders_by_arrival(new_models: Any, shards: int) -> None:
    """The leaves of one hub have the same vector. Without removals, rows on one machine are in order of arrival."""
    single, sharded = new_models(shards)
    ring = [(number, (number + step) % 20) for number in range(20) for step in (1, 2)]
    leaves = [(0, f"leaf {number}") for number in np.random.default_rng(0).permutation(40).tolist()]
    for model in (single, sharded):
        model.fit(ring)
        model.partial_fit(leaves)
    for count in (1, 5, 39, 45, 1000):
        for target in ("leaf 7", 0, 11, sharded["leaf 3"]):
            assert single.nearest(target, count) == sharded.nearest(target, count)


def test_nearest_with_ann_index_matches_exact_search(grown_models: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("usearch")
    monkeypatch.setattr(ann, "MAX_UNINDEXED", 0)
    single, sharded = grown_models(2, search="exact")[0], grown_models(2, search="ann")[1]
    for _ in range(3):
        for name in single.ids[:20]:
            assert equal_up_to_ties(single.nearest(name, 5), sharded.nearest(name, 5))
    shards: list[ShardGraph] = sharded.engine.transport.shards
    assert all(shard.search.index is not None and shard.search.index.total_added > 0 for shard in shards)
    sharded.remove_vertex(single.ids[3])
    single.remove_vertex(single.ids[3])
    for name in single.ids[:20]:
        assert equal_up_to_ties(single.nearest(name, 5), sharded.nearest(name, 5))


@pytest.mark.parametrize("parameters", [{}, {"directed": True}, {"storage": "float16"}])
def test_diagnostics_match_single_machine(grown_models: Any, parameters: dict[str, Any]) -> None:
    single, sharded = (model.diagnostics() for model in grown_models(**parameters))
    assert list(single) == list(sharded)
    for name in set(single) - {"bytes", "orthogonality_error"}:
        assert single[name] == sharded[name], name
    assert sharded["orthogonality_error"] == pytest.approx(single["orthogonality_error"], rel=1e-5)
    assert sharded["bytes"] > 0


def test_reads_of_empty_model_match_single_machine(new_models: Any) -> None:
    single, sharded = new_models(4)
    assert sharded.diagnostics() | {"bytes": 0} == single.diagnostics() | {"bytes": 0}
    assert (sharded.ids, sharded.nearest(np.ones(sharded.dim)), sharded.digest()) == ([], [], single.digest())
    assert np.array_equal(sharded.preview([]), single.preview([]))
    sharded.check()


def test_digest_fetches_rows_in_small_blocks(grown_models: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from ripplevec.engine import digest

    single, sharded = grown_models()
    expected, engine = single.digest(), sharded.engine
    monkeypatch.setattr(digest, "HASH_BLOCK_ROWS", 7)
    assert single.digest() == expected
    sizes: dict[str, list[int]] = {}

    def read_rows(self: Any, rows: Any, attribute: str) -> Any:
        sizes.setdefault(attribute, []).append(rows.size)
        return original(self, rows, attribute)

    original = type(engine).read_rows
    monkeypatch.setattr(type(engine), "read_rows", read_rows)
    assert sharded.digest() == expected
    assert max(sizes["vectors"]) == max(sizes["placed"]) == 7


def test_scatter_parts_puts_entries_at_their_positions() -> None:
    parts = [np.array([10.0, 30.0]), np.empty(0), np.array([20.0])]
    assert scatter_parts(parts, [np.array([0, 2]), np.empty(0, np.int64), np.array([1])]).tolist() == [10, 20, 30]


@pytest.mark.parametrize("shards", [1, 3, 5])
@pytest.mark.parametrize("directed", [False, True])
def test_read_edges_and_read_rows_match_single_machine(grown_models: Any, shards: int, directed: bool) -> None:
    single, sharded = (model.engine for model in grown_models(shards, directed=directed))
    ids = np.random.default_rng(0).permutation(single.ids_of(single.rows_by_arrival()))
    single_rows, sharded_rows = single.rows_of(ids), sharded.rows_of(ids)
    links, slots = single.graph.adjacency.links, single.graph.adjacency.slots(single_rows)
    assert sharded.ids_of(sharded.read_edges(sharded_rows, "neighbor")) == single.ids_of(
        links.neighbor[slots].astype(np.int64)
    )
    for attribute in ("weight", "outgoing", "incoming"):
        assert np.array_equal(sharded.read_edges(sharded_rows, attribute), getattr(links, attribute)[slots])
    for attribute in ("strength", "in_strength", "degree"):
        assert np.array_equal(sharded.read_rows(sharded_rows, attribute), getattr(links, attribute)[single_rows])
    assert sharded.read_edges(sharded_rows[:0], "weight").shape == (0,)
    assert sharded.read_rows(sharded_rows[:0], "vectors").shape == (0, 4)
