"""Samples, lookups and neighborhoods for the map."""

from __future__ import annotations

import numpy as np
import pytest

from ripplevec.batch import Batch
from ripplevec.embedder import Embedder
from ripplevec.errors import UnknownVertexError
from ripplevec.service.map.map_sample import is_sampled, read_neighborhood, read_vertices, sample_vertices


def ring(size: int = 60) -> Embedder:
    edges = [(i, (i + step) % size, float(step)) for i in range(size) for step in (1, 2, 5)]
    return Embedder(dim=8, threads=1).fit(edges)


def test_sample_of_all_vertices_is_in_order_of_arrival() -> None:
    model = ring()
    seen = sample_vertices(model, 1.0)
    assert seen.ids == model.ids
    assert seen.arrival.tolist() == list(range(60))
    np.testing.assert_array_equal(seen.vectors, model.to_numpy())


def test_sample_ignores_free_and_reused_rows() -> None:
    model = ring()
    for vertex in (3, 4, 9):
        model.remove_vertex(vertex)
    model.partial_fit([("new", 0), ("newer", 1)])
    assert sample_vertices(model, 1.0).ids == model.ids
    assert sample_vertices(model, 1.0).arrival.tolist()[-2:] == [60, 61]


def test_sample_smaller_is_subset_of_larger() -> None:
    model = ring(400)
    small, large = sample_vertices(model, 0.2), sample_vertices(model, 0.5)
    assert set(small.ids) < set(large.ids)
    assert 60 <= len(small.ids) <= 100
    assert 180 <= len(large.ids) <= 220


def test_sample_membership_depends_on_arrival_number_only() -> None:
    numbers = np.arange(1000)
    picked = is_sampled(numbers, 0.3)
    assert is_sampled(numbers[500:], 0.3).tolist() == picked[500:].tolist()
    assert not is_sampled(numbers[1:], 0.0).any()
    assert is_sampled(numbers, 1.0).all()


def test_read_vertices_omits_unknown_and_unplaced_vertices() -> None:
    model = ring()
    model.partial_fit(Batch.vertices(["alone"]))
    assert read_vertices(model, [3, "alone", "unknown", 4]).ids == [3, 4]
    assert "alone" not in sample_vertices(model, 1.0).ids
    assert read_vertices(model, []).ids == []


def test_neighborhood_lists_latest_neighbors_first_with_weights() -> None:
    model = ring()
    model.add_vertex("new", [0, 7], [2.0, 3.0])
    assert read_neighborhood(model, "new", 10).neighbors == [(7, 3.0), (0, 2.0)]
    seen = read_neighborhood(model, 0, 2)
    assert seen.degree == 7
    assert len(seen.neighbors) == 2
    assert seen.neighbors[0] == ("new", 2.0)
    assert seen.arrival == 0
    assert read_neighborhood(model, "new", 10).arrival == 60


def test_neighborhood_of_unknown_vertex_is_an_error() -> None:
    with pytest.raises(UnknownVertexError, match="unknown"):
        read_neighborhood(ring(), "unknown", 5)
