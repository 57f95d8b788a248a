"""Tests of reads of a model with attributes: joined rows, and searches compared with plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.engine.attributed_engine import AttributedEngine
from ripplevec.engine.attributed_reads import JoinedRows, search_joined, search_own_parts, search_parts


@pytest.fixture
def engine() -> AttributedEngine:
    edges = [(i, j) for i in range(30) for j in range(i) if (i * j) % 7 == 1]
    tags = {i: {f"t{i % 3}": 1.0, f"u{i % 5}": 2.0} for i in range(0, 30, 2)}
    engine = Embedder(dim=8, seed=0).fit(edges, attributes=tags).engine
    assert isinstance(engine, AttributedEngine)
    return engine


def test_search_joined_finds_the_rows_of_highest_cosine(engine: AttributedEngine) -> None:
    rows = engine.rows_by_arrival()
    units = engine.unit_vectors(rows)
    query = units[4].astype(np.float64)
    found, cosines = search_joined(
        engine.store, engine.rule.scaling, engine.attributes, engine.attribute_weight, query, 5, int(rows[4])
    )
    expected = np.where(np.arange(rows.size) == 4, -2, units @ query)
    np.testing.assert_allclose(cosines, np.sort(expected)[::-1][:5], atol=1e-5)
    np.testing.assert_allclose(units[found] @ query, cosines, atol=1e-5)
    assert rows[4] not in found


def test_search_of_parts_considers_vertices_with_attributes_only(engine: AttributedEngine) -> None:
    own = engine.find_rows(np.arange(0, 30, 2))
    part = engine.attributes.parts[own[0]]
    found, cosines = search_own_parts(engine.attributes, part, 30, int(own[0]))
    assert sorted(found.tolist()) == sorted(own[1:].tolist())
    assert (np.diff(cosines) <= 0).all()
    assert search_parts(engine.attributes.parts[:3], np.zeros(3, np.bool_), part, 2, None)[0].size == 0


def test_joined_rows_have_unit_edge_parts_and_stored_attribute_parts(engine: AttributedEngine) -> None:
    joined = JoinedRows(engine.store, engine.rule.scaling, engine.attributes.parts)
    assert joined.shape == (len(joined), 8)
    block = joined[2:9]
    placed = engine.store.placed[2:9] == 1
    np.testing.assert_allclose(np.linalg.norm(block[placed, :4], axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(block[:, 4:], engine.attributes.parts[2:9])
