"""Lookups of vertices and figures of the model, each with its sequence number."""

from __future__ import annotations

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.errors import UnknownVertexError
from ripplevec.service import model_reads


@pytest.fixture(scope="module")
def model() -> Embedder:
    edges = [(f"v{i}", f"v{(i + step) % 30}") for i in range(30) for step in (1, 2)]
    return Embedder(dim=4, threads=1).fit([*edges, (7, "v0"), ("8", "v0"), (8, "v1")])


def test_resolve_id_prefers_the_text_id(model: Embedder) -> None:
    assert model_reads.resolve_id(model, "8", "auto") == "8"
    assert model_reads.resolve_id(model, "8", "integer") == 8
    assert model_reads.resolve_id(model, "7", "auto") == 7
    with pytest.raises(UnknownVertexError):
        model_reads.resolve_id(model, "7", "text")


def test_read_vertex_returns_vector_and_figures(model: Embedder) -> None:
    vertex = model_reads.read_vertex(model.engine, "v3", "auto")
    assert np.array_equal(np.array(vertex.pop("vector"), np.float32), model["v3"])
    expected = {"id": "v3", "degree": 4, "strength": 4.0, "placed": True, "arrival": 3, "age": 29, "sequence": 0}
    assert vertex == expected
    with pytest.raises(UnknownVertexError):
        model_reads.read_vertex(model.engine, "unknown", "auto")


def test_read_vectors_masks_unknown_ids(model: Embedder) -> None:
    sequence, exists, vectors = model_reads.read_vectors(model, ["v1", "unknown", 7])
    assert exists.tolist() == [True, False, True]
    assert np.array_equal(vectors, model.vectors(["v1", 7]))
    assert sequence == model.sequence


def test_read_digest_returns_sequence_and_digest(model: Embedder) -> None:
    assert model_reads.read_digest(model) == (model.sequence, model.digest())


def test_read_model_stats_counts_vertices_until_the_start(model: Embedder) -> None:
    empty = Embedder(dim=4)
    empty.partial_fit([("a", "b"), ("b", "c")])
    empty.add_vertex("alone")
    stats = model_reads.read_model_stats(empty)
    assert (stats["started"], stats["connected"], stats["start_size"], stats["vertices"]) == (False, 3, 8, 4)
    stats = model_reads.read_model_stats(model)
    assert (stats["started"], stats["connected"]) == (True, None)
