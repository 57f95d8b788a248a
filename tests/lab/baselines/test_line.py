from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.line import LINE
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation import classify

GRAPH = planted_partition(communities=2, size=40, inside=8, elsewhere=1)
SMALL = LINE(dim=16, samples=1_000)


def cosines(method: LINE, graph: csr_array) -> np.ndarray:
    vectors = method.embed(graph)
    return vectors @ vectors.T


def test_line_first_order_places_neighbors_close() -> None:
    graph = GRAPH.adjacency()
    near = cosines(replace(SMALL, order="first"), graph)
    linked = graph.toarray() > 0
    apart = ~linked & ~np.eye(GRAPH.vertices, dtype=bool)
    assert near[linked].mean() > near[apart].mean() + 0.3


def test_line_second_order_places_vertices_with_common_neighbors_close() -> None:
    matrix = np.zeros((12, 12))
    matrix[:3, 3:6] = matrix[6:9, 9:] = 1  # two graphs in which neighbors have no neighbor in common
    near = cosines(replace(SMALL, order="second", rate=0.1), csr_array(matrix + matrix.T))
    assert near[:3, :3].min() > 0.9
    assert near[:3, :3].min() > near[:3, 3:].max() + 0.2


def test_line_heavy_edge_attracts_more_than_light_one() -> None:
    matrix = np.zeros((20, 20))
    matrix[0, 1], matrix[0, 2:] = 50, 1
    near = cosines(replace(SMALL, order="first"), csr_array(matrix + matrix.T))
    assert near[0, 1] > near[0, 2:].max()


def test_line_with_both_orders_concatenates_unit_parts() -> None:
    graph, odd = GRAPH.adjacency(), replace(SMALL, dim=17, samples=50)
    vectors = odd.embed(graph)
    assert vectors.shape == (GRAPH.vertices, 17)
    np.testing.assert_array_equal(vectors[:, :9], replace(odd, dim=9, order="first").embed(graph))
    np.testing.assert_array_equal(vectors[:, 9:], replace(odd, dim=8, order="second").embed(graph))
    np.testing.assert_allclose(np.linalg.norm(vectors[:, :9], axis=1), 1, rtol=1e-5)


def test_line_separates_communities_deterministically() -> None:
    graph = GRAPH.adjacency()
    vectors = SMALL.embed(graph)
    half = np.random.default_rng(0).permutation(GRAPH.vertices)
    assert classify(vectors, GRAPH.labels, half[:40], half[40:]).micro > 0.9
    np.testing.assert_array_equal(vectors, SMALL.embed(graph))
    assert (vectors != replace(SMALL, seed=1).embed(graph)).any()


def test_line_with_more_threads_separates_communities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ripplevec.lab.baselines.line.SAMPLES_PER_BLOCK", 4_096)
    vectors = replace(SMALL, threads=2).embed(GRAPH.adjacency())
    half = np.random.default_rng(0).permutation(GRAPH.vertices)
    assert classify(vectors, GRAPH.labels, half[:40], half[40:]).micro > 0.9


def test_line_vertices_without_edges_have_zero_vectors() -> None:
    graph = csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    assert SMALL.embed(graph).any(axis=1).tolist() == [True, True, False]
    assert not SMALL.embed(csr_array((3, 3))).any()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"order": "third"}, "one of 'first'"),
        ({"dim": 1}, "at least 2"),
        ({"samples": 0}, "integer"),
        ({"rate": 0}, "> 0"),
    ],
)
def test_line_with_invalid_settings_raises(settings: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidValueError, match=f"LINE.{next(iter(settings))}: expected .*{expected}"):
        LINE(**settings)
