"""ShardedEmbedder on a real cluster: one line is changed, and the answers are those of one machine."""

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
from ripplevec.errors import InvalidValueError, UnknownEdgeError, UnknownVertexError

HOW: dict[str, Any] = {"dim": 8, "anchor_growth": 0, "threads": 1}


@contextmanager
def on_shards(shards: int, **parameters: Any) -> Iterator[ShardedEmbedder]:
    model = ShardedEmbedder(shards=shards, **HOW | parameters)
    try:
        yield model
    finally:
        model.close()


def edges(seed: int, count: int = 150, vertices: int = 60) -> list[tuple[int, int]]:
    drawn = np.random.default_rng(seed).integers(0, vertices, (count, 2))
    return [(u, v) for u, v in drawn.tolist() if u != v]


@pytest.mark.parametrize("shards", [1, 3])
def test_a_stream_has_the_digest_of_one_machine(shards: int) -> None:
    with on_shards(shards) as model:
        alone = Embedder(**HOW).fit(edges(0))
        model.fit(edges(0))
        for turn in range(1, 5):
            batch = edges(turn, 40, 60 + 20 * turn)
            mine, theirs = alone.partial_fit(batch), model.partial_fit(batch)
            assert (mine.ids, mine.sequence) == (theirs.ids, theirs.sequence)
            np.testing.assert_array_equal(mine.vectors, theirs.vectors)
        gone = alone.ids[3]
        alone.remove_vertex(gone)
        model.remove_vertex(gone)
        np.testing.assert_array_equal(alone.add_vertex("new", alone.ids[:3]), model.add_vertex("new", model.ids[:3]))
        assert model.digest() == alone.digest()
        assert model.ids == alone.ids
        assert model.nearest("new", 5)[0][0] == alone.nearest("new", 5)[0][0]
        model.check()


def test_anchors_agree() -> None:
    with on_shards(2, anchor_growth=0.2) as model:
        alone = Embedder(**HOW | {"anchor_growth": 0.2}).fit(edges(0))
        model.fit(edges(0))
        for turn in range(1, 4):
            alone.partial_fit(edges(turn, 40, 60 + 20 * turn))
            model.partial_fit(edges(turn, 40, 60 + 20 * turn))
        assert model.diagnostics()["anchors"] == alone.diagnostics()["anchors"] > 0
        np.testing.assert_allclose(model.to_numpy(), alone.to_numpy(), atol=1e-4)


def test_bad_batches_raise_the_errors_of_one_machine_and_change_nothing() -> None:
    with on_shards(2) as model:
        alone = Embedder(**HOW).fit(edges(0))
        before = model.fit(edges(0)).digest()
        for bad, error in (
            ([(0, "nobody")], UnknownVertexError),
            ([alone.ids[:1] * 2], UnknownEdgeError),
        ):
            with pytest.raises(error) as mine:
                alone.remove_edges(bad)
            with pytest.raises(error) as theirs:
                model.remove_edges(bad)
            assert str(mine.value) == str(theirs.value)
        with pytest.raises(InvalidValueError, match="weight"):
            model.partial_fit([("a", "b", float("nan"))])
        with pytest.raises(UnknownVertexError):
            model.vectors(["nobody"])
        assert model.digest() == before


def test_a_fit_that_fails_leaves_the_model_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    with on_shards(2) as model:
        before = model.fit(edges(0)).digest()
        with pytest.raises(UnknownVertexError):
            model.fit(Batch.of([0], [1], op=[1]))
        assert model.digest() == before


def test_saved_and_loaded_it_goes_on_as_before(tmp_path: Path) -> None:
    with on_shards(2) as model:
        model.fit(edges(0))
        model.save(tmp_path / "model")
        copy = pickle.loads(pickle.dumps(model))
        again = ShardedEmbedder.load(tmp_path / "model")
        try:
            assert again.get_params() == model.get_params() == copy.get_params()
            digests = {len(each.partial_fit(edges(1))) and each.digest() for each in (model, again, copy)}
            assert len(digests) == 1
        finally:
            again.close()
            copy.close()


@pytest.mark.parametrize(
    ("parameters", "what"), [({"shards": 0}, "shards"), ({"shards": True}, "shards"), ({"rule": "paper"}, "rule")]
)
def test_what_a_cluster_cannot_be_is_said(parameters: dict[str, Any], what: str) -> None:
    with pytest.raises(InvalidValueError, match=f"^{what}: expected"):
        ShardedEmbedder(**parameters)
