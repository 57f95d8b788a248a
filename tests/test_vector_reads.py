"""Reads of one vertex or several, with a default, and cosines, from a table of vectors."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pytest

from ripplevec.errors import UnknownVertexError
from ripplevec.vector_reads import VectorReads, cosine

NUMBER = UUID(int=7)
TABLE = {"a": [3, 4], "b": [4, -3], 7: [6, 8], "zero": [0, 0], NUMBER: [1, 0]}


class Table(VectorReads):
    """Vectors that are stored in a dictionary."""

    def vectors(self, ids):
        if unknown := [vertex for vertex in ids if vertex not in TABLE]:
            raise UnknownVertexError(unknown)
        return np.array([TABLE[vertex] for vertex in ids], np.float32).reshape(-1, 2)


@pytest.mark.parametrize("vertex", ["a", 7, np.int64(7), NUMBER])
def test_index_of_one_vertex_is_its_vector(vertex):
    assert Table()[vertex].tolist() == TABLE[vertex]


@pytest.mark.parametrize("ids", [["a", 7], ["b"], [], np.array([7, 7])])
def test_index_of_several_vertices_has_one_row_each(ids):
    assert Table()[ids].tolist() == [TABLE[vertex] for vertex in ids]


def test_index_of_an_unknown_vertex_raises():
    with pytest.raises(UnknownVertexError):
        Table()["x"]


def test_get_returns_the_default_for_an_unknown_vertex_only():
    assert Table().get("x") is None
    assert Table().get("x", "nothing") == "nothing"
    assert Table().get("a", "nothing").tolist() == [3, 4]


def test_similarity_is_the_cosine():
    assert Table().similarity("a", 7) == pytest.approx(1)
    assert Table().similarity("a", "b") == pytest.approx(0)
    assert Table().similarity("a", "zero") == 0


def test_cosine_of_large_and_small_numbers_does_not_overflow():
    tiny, huge = np.full(2, 1e-30, np.float32), np.full(2, 1e30, np.float32)
    assert cosine(tiny, huge) == pytest.approx(1)
