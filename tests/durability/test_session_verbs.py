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
WRITES = {"partial_fit", "add_edges", "add_vertex", "set_attributes", "remove_edges", "remove_vertex"}
OPERATORS = {"__getitem__", "__contains__", "__len__", "__iter__", "__array__"}
PROPERTIES = {"ids", "sequence", "engine", "lock"}
PARAMETERS = set(inspect.signature(Embedder).parameters)
PUBLIC = OPERATORS | {name for name in dir(Embedder) if not name.startswith("_")} - PARAMETERS

# What a session does not have itself: its model has it, for reading.
START_OVER = {"fit", "fit_transform", "set_params", "anchor"}  # only batches are written to the journal
FILES = {"save", "load"}  # a session is its directory
INSPECTION = {"get_params", "engine", "lock", "check", "digest", "diagnostics"}
WHOLE_MODEL = {"to_numpy", "to_arrow", "to_pandas", "plot"}
WITH_SEQUENCE = {name for name in PUBLIC if name.endswith("_with_sequence")}
NOT_OF_SESSIONS = START_OVER | FILES | INSPECTION | WHOLE_MODEL | WITH_SEQUENCE

# What a client does not have either: operators cannot be awaited, and the ids of a large model exceed a response.
NOT_OF_CLIENTS = NOT_OF_SESSIONS | OPERATORS | {"ids", "sequence"}

LACKING: dict[Any, set[str]] = {
    ShardedEmbedder: set(),
    Session: NOT_OF_SESSIONS,
    ripplevec.Client: NOT_OF_CLIENTS,
    ripplevec.AsyncClient: NOT_OF_CLIENTS,
}
ADDED = dict.fromkeys(WRITES, "key")  # keyword-only parameters that a model does not have


@pytest.fixture
def session(tmp_path: Path) -> Any:
    with Session(tmp_path / "state", dim=2, start_size=3) as session:
        session.partial_fit(EDGES)
        yield session


def describe_parameters(method: Any, left_out: set[str]) -> tuple[list[str], dict[str, Any]]:
    """Return the names of positional parameters in their order, and the kinds and defaults of all."""
    found = [part for part in inspect.signature(method).parameters.values() if part.name not in left_out]
    positional = [part.name for part in found if part.kind is not inspect.Parameter.KEYWORD_ONLY]
    return positional, {part.name: (part.kind, part.default) for part in found}


@pytest.mark.parametrize("owner", LACKING)
def test_methods_have_the_same_signatures_everywhere(owner: Any) -> None:
    added = {"load": "address"} if owner is ShardedEmbedder else ADDED
    for name in PUBLIC - PROPERTIES - LACKING[owner]:
        method = getattr(owner, name)
        expected = describe_parameters(getattr(Embedder, name), set())
        assert describe_parameters(method, {added.get(name, "")}) == expected, name
        if name in added:
            parameter = inspect.signature(method).parameters[added[name]]
            assert (parameter.kind, parameter.default) == (inspect.Parameter.KEYWORD_ONLY, None), name


@pytest.mark.parametrize("owner", LACKING)
def test_methods_that_are_said_to_be_missing_are(owner: Any) -> None:
    assert not {name for name in LACKING[owner] if hasattr(owner, name)}
    assert not {name for name in PROPERTIES - LACKING[owner] if not hasattr(owner, name)}


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
    assert np.array_equal(session.preview(neighbours=["a"]), model.preview(["a"]))
    assert session.neighbours("e", 1) == model.neighbors("e")
    assert session.age(["a", "e"]).tolist() == model.age(["a", "e"]).tolist() == [4, 0]
    assert np.array_equal(session.transform(["a"]), model.vectors(["a"]))
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


def test_session_refuses_a_parameter_that_it_does_not_have_by_its_own_name(session: Any) -> None:
    for call in (lambda: session.partial_fit(EDGES, weigth="w"), lambda: session.recommend("a", amongst=["b"])):
        with pytest.raises(TypeError, match=r"SessionVerbs\.\w+\(\) got an unexpected keyword argument"):
            call()
