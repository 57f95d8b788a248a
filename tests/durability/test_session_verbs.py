from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ripplevec
from ripplevec import Embedder, Session
from ripplevec.cluster.sharded_embedder import ShardedEmbedder
from ripplevec.durability.session_verbs import SessionVerbs
from ripplevec.errors import FormatError, UnknownEdgeError, UnknownVertexError

EDGES = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e")]
VERBS = ["partial_fit", "add_edges", "add_vertex", "remove_edges", "remove_vertex"]
READS = [
    *("vectors", "nearest", "nearest_many", "degree", "get", "similarity", "preview", "score", "recommend"),
    "nearest_by_attributes",
]


@pytest.fixture
def session(tmp_path: Path) -> Any:
    with Session(tmp_path / "state", dim=2, start_size=3) as session:
        session.partial_fit(EDGES)
        yield session


@pytest.mark.parametrize("owner", [Embedder, Session, ShardedEmbedder, ripplevec.Client, ripplevec.AsyncClient])
def test_verbs_have_the_same_names_and_first_arguments_everywhere(owner: Any) -> None:
    for name in [*VERBS, *READS]:
        first = list(inspect.signature(getattr(Embedder, name)).parameters)[1]
        assert list(inspect.signature(getattr(owner, name)).parameters)[1] == first


@pytest.mark.parametrize("owner", [Session, ShardedEmbedder, ripplevec.Client, ripplevec.AsyncClient])
@pytest.mark.parametrize("name", ["nearest", "nearest_many"])
def test_searches_everywhere_accept_the_vertices_to_choose_from(owner: Any, name: str) -> None:
    assert "among" in inspect.signature(getattr(owner, name)).parameters


def test_session_writes_like_a_model(session: Any) -> None:
    model = Embedder(dim=2, start_size=3)
    for target in (model, session):
        if target is model:
            target.partial_fit(EDGES)
        target.add_edges([("e", "a")])
        vector = target.add_vertex("f", ["a", "b"], weights=[1.0, 2.0])
        assert np.array_equal(vector, target["f"])
        target.remove_edges([("a", "b")])
        target.remove_vertex("d")
    assert session.ids == model.ids == ["a", "b", "c", "e", "f"]
    assert session.sequence == 5
    np.testing.assert_allclose(session.vectors(model.ids), model.to_numpy(), atol=1e-5)


def test_session_reads_are_those_of_its_model(session: Any) -> None:
    assert isinstance(session, SessionVerbs)
    model = session.model
    assert np.array_equal(session[["a", "b"]], model.vectors(["a", "b"]))
    assert session.nearest("a", 2, among=["b", "c"]) == model.nearest("a", 2, among=["b", "c"])
    assert session.nearest_many(["a"]) == model.nearest_many(["a"])
    assert np.array_equal(session.score([("a", "d")]), model.score([("a", "d")]))
    assert session.recommend("a", 2, among=["d", "e"]) == model.recommend("a", 2, among=["d", "e"])
    assert session.similarity("a", "b") == model.similarity("a", "b")
    assert (session.degree("c"), session.neighbors("e"), len(session), "x" in session) == (3, [("d", 1.0)], 5, False)
    assert list(session) == model.ids
    assert np.array_equal(session.preview(["a"]), model.preview(["a"]))
    assert session.get("x") is None


def test_session_errors_are_those_of_a_model(session: Any) -> None:
    with pytest.raises(UnknownEdgeError):
        session.remove_edges([("a", "e")])
    with pytest.raises(UnknownVertexError):
        session.remove_vertex("x")


def test_session_remove_edges_of_a_batch_that_adds_is_refused(session: Any) -> None:
    with pytest.raises(ripplevec.InvalidValueError, match="a batch of removals only"):
        session.remove_edges(ripplevec.Batch.of(["a"], ["e"]))
    assert session.degree("e") == 1


def test_session_write_with_a_repeated_key_is_applied_once(session: Any) -> None:
    for _ in range(2):
        session.add_vertex("g", ["a"], key="one")
    assert session.neighbors("g") == [("a", 1.0)]


def test_load_of_a_session_directory_says_what_it_is(session: Any) -> None:
    with pytest.raises(FormatError, match=r"expected a saved model, got a session directory.*ripplevec\.Session"):
        ripplevec.load(session.directory)


def test_session_as_array_gives_vectors_like_a_model(session: Any) -> None:
    assert np.array_equal(np.asarray(session), session.model.to_numpy())
    assert np.asarray(session, dtype=np.float64).dtype == np.float64


def test_session_repr_names_the_directory_and_the_model(session: Any) -> None:
    assert repr(session).startswith(f"Session({str(session.directory)!r}): Embedder(dim=2, rule='ripple'): 5 vertices")
    session.close()
    assert repr(session).endswith("): closed")
