from __future__ import annotations

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.errors import InvalidValueError, UnknownVertexError
from ripplevec.service.reads import vertex_lookup


@pytest.fixture(scope="module")
def model() -> Embedder:
    edges = [(f"v{i}", f"v{(i + step) % 30}") for i in range(30) for step in (1, 2)]
    return Embedder(dim=4, threads=1).fit([*edges, (7, "v0"), ("8", "v0"), (8, "v1")])


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("a", "auto", ["a"]),
        ("7", "auto", ["7", 7]),
        ("7", "text", ["7"]),
        ("7", "integer", [7]),
        ("-7", "integer", [-7]),
        ("07", "auto", ["07"]),
        ("a", "integer", []),
        ("٧", "auto", ["٧"]),
        ("9" * 5000, "integer", []),
    ],
)
def test_what_an_address_may_mean(text: str, kind: vertex_lookup.IdKind, found: list[object]) -> None:
    assert vertex_lookup.candidate_ids(text, kind) == found


def test_the_text_goes_before_the_integer(model: Embedder) -> None:
    assert vertex_lookup.known(model, "8", "auto") == "8"
    assert vertex_lookup.known(model, "8", "integer") == 8
    assert vertex_lookup.known(model, "7", "auto") == 7
    with pytest.raises(UnknownVertexError):
        vertex_lookup.known(model, "7", "text")


def test_kinds_are_checked() -> None:
    assert vertex_lookup.parse_id_kind("text") == "text"
    with pytest.raises(InvalidValueError, match="kind"):
        vertex_lookup.parse_id_kind("other")


def test_all_about_a_vertex(model: Embedder) -> None:
    found = vertex_lookup.vertex(model._engine, "v3", "auto")
    assert np.array_equal(np.array(found.pop("vector"), np.float32), model["v3"])
    expected = {"id": "v3", "degree": 4, "strength": 4.0, "placed": True, "arrival": 3, "age": 29, "sequence": 0}
    assert found == expected
    with pytest.raises(UnknownVertexError):
        vertex_lookup.vertex(model._engine, "nobody", "auto")


def test_vectors_of_those_that_are_known(model: Embedder) -> None:
    sequence, there, vectors = vertex_lookup.vectors(model, ["v1", "nobody", 7])
    assert there.tolist() == [True, False, True]
    assert np.array_equal(vectors, model.vectors(["v1", 7]))
    assert sequence == model.sequence


def test_the_digest_comes_with_its_number(model: Embedder) -> None:
    assert vertex_lookup.digest(model) == (model.sequence, model.digest())
