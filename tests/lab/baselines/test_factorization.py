from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.factorization import NetMF, Spectral
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation import classify

GRAPH = planted_partition(communities=2, size=40, inside=8, elsewhere=1)


def test_spectral_columns_are_eigenvectors_after_trivial_one() -> None:
    matrix = GRAPH.adjacency().toarray() * np.random.default_rng(0).integers(1, 4, (80, 80))
    matrix = matrix + matrix.T
    root = np.sqrt(matrix.sum(axis=1))
    exact = np.linalg.eigh(np.eye(80) - matrix / np.outer(root, root))[1][:, 1:9]
    vectors = Spectral(dim=8).embed(csr_array(matrix))
    np.testing.assert_allclose(abs(exact.T @ vectors), np.eye(8), atol=1e-5)


def test_spectral_first_column_sign_separates_two_communities() -> None:
    vectors = Spectral(dim=2).embed(GRAPH.adjacency())
    assert abs(((vectors[:, 0] > 0) == GRAPH.labels).mean() - 0.5) > 0.45


def test_spectral_of_same_graph_gives_same_vectors() -> None:
    large = planted_partition(communities=5, size=100).adjacency()
    np.testing.assert_array_equal(Spectral(dim=8).embed(large), Spectral(dim=8).embed(large))


def test_spectral_isolated_vertices_and_surplus_columns_are_zero() -> None:
    vectors = Spectral(dim=4).embed(csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])))
    assert vectors.any(axis=1).tolist() == [True, True, False]
    assert vectors.any(axis=0).tolist() == [True, False, False, False]
    assert not Spectral(dim=4).embed(csr_array((3, 3))).any()


def test_spectral_with_invalid_settings_raises() -> None:
    with pytest.raises(InvalidValueError, match=r"Spectral\.dim: expected an integer"):
        Spectral(dim=0)


NETMF = NetMF(dim=16, window=5)


def dense_log_matrix(matrix: np.ndarray, window: int, negatives: int) -> np.ndarray:
    """Return log max(M, 1) by the formula of the paper."""
    inverse = np.diag(1 / matrix.sum(axis=1))
    powers = sum(np.linalg.matrix_power(inverse @ matrix, r) for r in range(1, window + 1))
    return np.log(np.maximum(matrix.sum() / (negatives * window) * powers @ inverse, 1))


def weighted_matrix(seed: int = 0) -> np.ndarray:
    matrix = GRAPH.adjacency().toarray() * np.random.default_rng(seed).integers(1, 4, (80, 80))
    return matrix + matrix.T


@pytest.mark.parametrize(("window", "negatives"), [(1, 1), (2, 5), (10, 1)])
def test_netmf_log_matrix_equals_formula(window: int, negatives: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ripplevec.lab.baselines.factorization.ROWS_PER_BLOCK", 33)
    matrix = weighted_matrix()
    found = NetMF(window=window, negatives=negatives).log_matrix(csr_array(matrix))
    np.testing.assert_allclose(found.toarray(), dense_log_matrix(matrix, window, negatives), atol=1e-9)


def test_netmf_vectors_are_scaled_singular_vectors() -> None:
    matrix = weighted_matrix()
    left, values, _ = np.linalg.svd(dense_log_matrix(matrix, 5, 1))
    exact = (left * np.sqrt(values))[:, :16]
    vectors = NETMF.embed(csr_array(matrix))
    np.testing.assert_allclose(vectors @ vectors.T, exact @ exact.T, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=0), np.sqrt(values[:16]), rtol=1e-4)


def test_netmf_approximation_with_all_eigenpairs_drops_only_negative_part() -> None:
    matrix = weighted_matrix()
    root = np.sqrt(matrix.sum(axis=1))
    values, vectors = np.linalg.eigh(matrix / np.outer(root, root))
    gains = np.maximum(np.mean([values**r for r in range(1, 6)], axis=0), 0)
    exact = np.log(np.maximum(matrix.sum() * (vectors * gains) @ vectors.T / np.outer(root, root), 1))
    found = replace(NETMF, approximate=True, rank=80).log_matrix(csr_array(matrix)).toarray()
    np.testing.assert_allclose(found, exact, atol=1e-9)
    odd = replace(NETMF, window=1).log_matrix(csr_array(matrix)).toarray()
    assert abs(found - odd).max() > 0.1


def test_netmf_approximation_improves_with_rank() -> None:
    matrix = csr_array(weighted_matrix())
    wide = NetMF(window=20)
    exact = wide.log_matrix(matrix).toarray()
    error = [
        abs(replace(wide, approximate=True, rank=rank).log_matrix(matrix).toarray() - exact).mean()
        for rank in (2, 10, 40)
    ]
    assert error[0] > error[1] > error[2]
    assert error[2] < exact.mean() / 4


def test_netmf_approximates_large_graphs_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, few = csr_array(weighted_matrix()), replace(NETMF, rank=4)
    exact, rough = (replace(few, approximate=choice).embed(graph) for choice in (False, True))
    np.testing.assert_array_equal(few.embed(graph), exact)
    monkeypatch.setattr("ripplevec.lab.baselines.factorization.MAX_EXACT_VERTICES", 79)
    np.testing.assert_array_equal(few.embed(graph), rough)
    assert (exact != rough).any()


def test_netmf_lanczos_agrees_with_dense_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = NETMF.embed(GRAPH.adjacency())
    monkeypatch.setattr("ripplevec.lab.baselines.factorization.LANCZOS_TOLERANCE", 0)
    sparse = NETMF.embed(GRAPH.adjacency())
    np.testing.assert_allclose(sparse @ sparse.T, dense @ dense.T, atol=1e-3)
    np.testing.assert_array_equal(sparse, NETMF.embed(GRAPH.adjacency()))


@pytest.mark.parametrize("approximate", [False, True])
def test_netmf_separates_two_communities(approximate: bool) -> None:
    vectors = replace(NETMF, approximate=approximate).embed(GRAPH.adjacency())
    half = np.random.default_rng(0).permutation(GRAPH.vertices)
    assert classify(vectors, GRAPH.labels, half[:40], half[40:]).micro > 0.9


def test_netmf_vertices_without_edges_have_zero_vectors() -> None:
    matrix = np.pad(GRAPH.adjacency().toarray(), (0, 2))
    for approximate in (False, True):
        vectors = replace(NETMF, approximate=approximate).embed(csr_array(matrix))
        assert vectors.any(axis=1).tolist() == [True] * 80 + [False] * 2
        assert np.isfinite(vectors).all()
    assert not NETMF.embed(csr_array((3, 3))).any()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({"approximate": "yes"}, "True, False"), ({"window": 0}, "an integer"), ({"rank": 1.5}, "an integer")],
)
def test_netmf_with_invalid_settings_raises(settings: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidValueError, match=f"NetMF.{next(iter(settings))}: expected .*{expected}"):
        NetMF(**settings)
