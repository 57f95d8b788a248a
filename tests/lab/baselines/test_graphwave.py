from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.sparse import csr_array, diags_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.graphwave import (
    LAST_SAMPLE_POINT,
    GraphWave,
    chebyshev_coefficients,
    choose_scales,
    compute_wavelets,
    sample_characteristic,
)

KARATE = nx.karate_club_graph()


def matrix_of(graph: nx.Graph) -> csr_array:
    return csr_array(nx.to_scipy_sparse_array(graph, format="csr", dtype=float, weight=None))


def normalized(graph: csr_array) -> csr_array:
    scaled = diags_array(1 / np.sqrt(graph.sum(axis=1)))
    return csr_array(scaled @ graph @ scaled)


def heat(graph: csr_array, scale: float) -> np.ndarray:
    return expm(-scale * (np.eye(graph.shape[0]) - normalized(graph).toarray()))


@pytest.mark.parametrize("scale", [0.05, 1.0, 30.0])
def test_compute_wavelets_equal_columns_of_dense_exponential(scale: float) -> None:
    graph = matrix_of(KARATE)
    scales = np.array([scale, 2 * scale])
    columns = compute_wavelets(normalized(graph), chebyshev_coefficients(scales), 5, 12)
    for of, found in zip(scales, columns, strict=True):
        np.testing.assert_allclose(found, heat(graph, of)[:, 5:12], atol=1e-7)


def test_sample_characteristic_equals_mean_of_exponentials() -> None:
    wavelet = np.random.default_rng(0).random((20, 3))
    points = LAST_SAMPLE_POINT * np.arange(1, 12) / 11
    expected = np.exp(1j * points[:, None, None] * wavelet).mean(axis=1).T
    np.testing.assert_allclose(sample_characteristic(wavelet, 11), expected, atol=1e-12)


def test_compute_signatures_match_dense_exponential(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ripplevec.lab.baselines.graphwave.ENTRIES_PER_BLOCK", 200)
    graph = matrix_of(KARATE)
    found = GraphWave(dim=18, scales=2, threads=2).compute_signatures(graph)
    scales = choose_scales(normalized(graph), 2)
    values = np.hstack(
        [sample_characteristic(heat(graph, scales[0]), 5), sample_characteristic(heat(graph, scales[1]), 4)]
    )
    np.testing.assert_allclose(found, np.hstack([values.real, values.imag]), atol=1e-6)


@pytest.mark.parametrize("graph", [KARATE, nx.path_graph(200)])
def test_choose_scales_keep_intended_heat_in_middle_of_spectrum(graph: nx.Graph) -> None:
    operator = normalized(matrix_of(graph))
    values = np.linalg.eigvalsh(np.eye(len(graph)) - operator.toarray())
    kept = np.exp(-choose_scales(operator, 3) * np.sqrt(values[1] * values[-1]))
    np.testing.assert_allclose(kept[[0, 2]], [0.95, 0.85], atol=1e-3)
    assert kept[0] > kept[1] > kept[2]


def test_choose_scales_ignore_small_components() -> None:
    alone, among = matrix_of(KARATE), matrix_of(nx.disjoint_union(nx.path_graph(3), KARATE))
    np.testing.assert_allclose(choose_scales(normalized(among), 2), choose_scales(normalized(alone), 2))


def test_graphwave_of_equivalent_vertices_gives_same_vector() -> None:
    barbell = matrix_of(nx.barbell_graph(10, 11))
    vectors = GraphWave(dim=32).embed(barbell)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, vectors[::-1], atol=1e-4)
    np.testing.assert_allclose(vectors[:9], np.broadcast_to(vectors[0], (9, 32)), atol=1e-4)
    places = vectors[[0, 9, 10, 12, 15]]
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    assert apart[~np.eye(5, dtype=bool)].min() > 0.01


def test_graphwave_standardizes_columns_and_zeroes_constant_ones() -> None:
    vectors = GraphWave(dim=12).embed(matrix_of(KARATE))
    np.testing.assert_allclose(vectors.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(vectors.std(axis=0), 1, atol=1e-5)
    assert not GraphWave(dim=12).embed(matrix_of(nx.cycle_graph(30))).any()


def test_graphwave_is_independent_of_blocks_threads_and_numbering(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, order = matrix_of(KARATE), np.random.default_rng(0).permutation(34)
    vectors = GraphWave(dim=12).embed(graph)
    np.testing.assert_allclose(GraphWave(dim=12).embed(graph[order][:, order]), vectors[order], atol=1e-4)
    monkeypatch.setattr("ripplevec.lab.baselines.graphwave.ENTRIES_PER_BLOCK", 1)
    np.testing.assert_allclose(GraphWave(dim=12, threads=3).embed(graph), vectors, atol=1e-4)


def test_graphwave_vertices_without_edges_have_zero_vectors() -> None:
    graph = csr_array(np.array([[0, 1, 0, 0], [1, 0, 2, 0], [0, 2, 0, 0], [0, 0, 0, 0]]))
    assert GraphWave(dim=4, scales=1).embed(graph).any(axis=1).tolist() == [True, True, True, False]
    assert not GraphWave(dim=4).embed(csr_array((3, 3))).any()


@pytest.mark.parametrize("settings", [{"dim": 0}, {"dim": 7}, {"dim": 4, "scales": 3}, {"seed": -1}, {"scales": True}])
def test_graphwave_with_invalid_settings_raises(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError, match=f"GraphWave.{next(iter(settings))}"):
        GraphWave(**settings)
