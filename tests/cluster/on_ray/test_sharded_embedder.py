"""Tests of ShardedEmbedder on a Ray cluster: its results equal those of Embedder."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ripplevec import Batch, Embedder
from ripplevec.cluster import ShardedEmbedder
from ripplevec.cluster.sharded_embedder import IN_PROCESS
from ripplevec.errors import InvalidValueError, UnknownEdgeError, UnknownVertexError

PARAMETERS: dict[str, Any] = {"dim": 8, "anchor_growth": 0, "threads": 1}


@contextmanager
def on_shards(shards: int, **parameters: Any) -> Iterator[ShardedEmbedder]:
    model = ShardedEmbedder(shards=shards, **PARAMETERS | parameters)
    try:
        yield model
    finally:
        model.close()


def edges(seed: int, count: int = 150, vertices: int = 60) -> list[tuple[int, int]]:
    drawn = np.random.default_rng(seed).integers(0, vertices, (count, 2))
    return [(u, v) for u, v in drawn.tolist() if u != v]


@pytest.mark.parametrize("shards", [1, 3])
def test_stream_digest_matches_single_machine(shards: int) -> None:
    with on_shards(shards) as model:
        single = Embedder(**PARAMETERS).fit(edges(0))
        model.fit(edges(0))
        for seed in range(1, 5):
            batch = edges(seed, 40, 60 + 20 * seed)
            expected, changes = single.partial_fit(batch), model.partial_fit(batch)
            assert (expected.ids, expected.sequence) == (changes.ids, changes.sequence)
            np.testing.assert_array_equal(expected.vectors, changes.vectors)
        removed = single.ids[3]
        single.remove_vertex(removed)
        model.remove_vertex(removed)
        np.testing.assert_array_equal(single.add_vertex("new", single.ids[:3]), model.add_vertex("new", model.ids[:3]))
        assert model.digest() == single.digest()
        assert model.ids == single.ids
        assert model.nearest("new", 5)[0][0] == single.nearest("new", 5)[0][0]
        model.check()


def test_anchors_match_single_machine() -> None:
    parameters = {"anchor_growth": 0.2, "anchor_pace": "immediate"}
    with on_shards(2, **parameters) as model:
        single = Embedder(**PARAMETERS | parameters).fit(edges(0))
        model.fit(edges(0))
        for seed in range(1, 4):
            single.partial_fit(edges(seed, 40, 60 + 20 * seed))
            model.partial_fit(edges(seed, 40, 60 + 20 * seed))
        assert model.diagnostics()["anchors"] == single.diagnostics()["anchors"] > 0
        np.testing.assert_allclose(model.to_numpy(), single.to_numpy(), atol=1e-4)


def test_gradual_anchors_match_shards_in_this_process() -> None:
    with on_shards(2, anchor_growth=0.2) as model:
        local = ShardedEmbedder(shards=2, address=IN_PROCESS, **PARAMETERS | {"anchor_growth": 0.2}).fit(edges(0))
        model.fit(edges(0))
        for seed in range(1, 9):
            batch = edges(seed, 20, 60 + 10 * seed)
            assert model.partial_fit(batch).anchored == local.partial_fit(batch).anchored
            assert model.digest() == local.digest()
        assert model.diagnostics()["anchors"] > 1
        model.check()


def test_bad_batches_raise_single_machine_errors_and_change_nothing() -> None:
    with on_shards(2) as model:
        single = Embedder(**PARAMETERS).fit(edges(0))
        before = model.fit(edges(0)).digest()
        for bad, error in (
            ([(0, "unknown")], UnknownVertexError),
            ([single.ids[:1] * 2], UnknownEdgeError),
        ):
            with pytest.raises(error) as expected_error:
                single.remove_edges(bad)
            with pytest.raises(error) as raised:
                model.remove_edges(bad)
            assert str(expected_error.value) == str(raised.value)
        with pytest.raises(InvalidValueError, match="weight"):
            model.partial_fit([("a", "b", float("nan"))])
        with pytest.raises(UnknownVertexError):
            model.vectors(["unknown"])
        assert model.digest() == before


def test_failed_fit_leaves_model_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    with on_shards(2) as model:
        before = model.fit(edges(0)).digest()
        with pytest.raises(UnknownVertexError):
            model.fit(Batch.of([0], [1], op=[1]))
        assert model.digest() == before


def test_saved_and_pickled_models_continue_alike(tmp_path: Path) -> None:
    with on_shards(2) as model:
        model.fit(edges(0))
        model.save(tmp_path / "model")
        copy = pickle.loads(pickle.dumps(model))
        loaded = ShardedEmbedder.load(tmp_path / "model")
        try:
            assert loaded.get_params() == model.get_params() == copy.get_params()
            digests = {len(each.partial_fit(edges(1))) and each.digest() for each in (model, loaded, copy)}
            assert len(digests) == 1
        finally:
            loaded.close()
            copy.close()


@pytest.mark.parametrize(
    ("parameters", "name"), [({"shards": 0}, "shards"), ({"shards": True}, "shards"), ({"rule": "x"}, "rule")]
)
def test_constructor_with_unavailable_parameter_raises(parameters: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidValueError, match=f"^{name}: expected"):
        ShardedEmbedder(**parameters)


def test_set_params_starts_over_and_keeps_the_shards() -> None:
    model = ShardedEmbedder(shards=2, address=IN_PROCESS, dim=4, threads=1)
    model.fit([("a", "b"), ("b", "c")])
    assert model.set_params(dim=6, seed=3, shards=2) is model
    assert (model.shards, model.get_params()["dim"], len(model)) == (2, 6, 0)
    assert model.fit([("a", "b"), ("b", "c")]).to_numpy().shape == (3, 6)


@pytest.mark.parametrize(("name", "value"), [("shards", 3), ("address", "auto"), ("dim", -1), ("nodes", 2)])
def test_set_params_with_unusable_value_changes_nothing(name: str, value: Any) -> None:
    model = ShardedEmbedder(shards=2, address=IN_PROCESS, dim=4, threads=1).fit([("a", "b"), ("b", "c")])
    before = model.get_params(), model.digest()
    with pytest.raises(InvalidValueError, match=name):
        model.set_params(**{"seed": 5, name: value})
    assert (model.get_params(), model.digest()) == before


def test_attributes_match_single_machine(tmp_path: Path) -> None:
    parameters = PARAMETERS | {"attribute_dim": 4}
    with on_shards(2, **parameters) as model:
        single = Embedder(**parameters)
        for each in (single, model):
            each.fit(edges(0), attributes={vertex: {f"word {vertex % 7}": 1, "of": 2} for vertex in range(0, 60, 2)})
            each.partial_fit(edges(1, 40, 90), attributes={61: {"word 1": 1}, 1: {"word 3": 2}})
            each.set_attributes([4, 6], [{"word 5": 1}, {}])
            each.remove_vertex(8)
            each.add_vertex("new", [1, 2], attributes={"word 2": 1})
        assert model.digest() == single.digest()
        expected, found = (each.nearest_by_attributes({"word 2": 1}, 5) for each in (single, model))
        assert found[0] == expected[0]
        np.testing.assert_array_equal(model.to_numpy(), single.to_numpy())
        model.anchor()
        single.anchor()
        np.testing.assert_allclose(model.to_numpy(), single.to_numpy(), atol=1e-5)
        model.save(tmp_path / "saved")
        loaded = ShardedEmbedder.load(tmp_path / "saved")
        assert loaded.digest() == model.digest()
        loaded.close()
