from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.netmf import NetMF
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation import classify

GRAPH = planted_partition(communities=2, size=40, inside=8, elsewhere=1)
SMALL = NetMF(dim=16, window=5)


def by_hand(matrix: np.ndarray, window: int, negatives: int) -> np.ndarray:
    """log max(M, 1) as the paper prints M."""
    inverse = np.diag(1 / matrix.sum(axis=1))
    powers = sum(np.linalg.matrix_power(inverse @ matrix, r) for r in range(1, window + 1))
    return np.log(np.maximum(matrix.sum() / (negatives * window) * powers @ inverse, 1))


def weighted(seed: int = 0) -> np.ndarray:
    matrix = GRAPH.adjacency().toarray() * np.random.default_rng(seed).integers(1, 4, (80, 80))
    return matrix + matrix.T


@pytest.mark.parametrize(("window", "negatives"), [(1, 1), (2, 5), (10, 1)])
def test_the_small_matrix_is_the_formula(window: int, negatives: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ripplevec.lab.baselines.netmf.BLOCK", 33)
    matrix = weighted()
    found = NetMF(window=window, negatives=negatives).logarithm(csr_array(matrix))
    np.testing.assert_allclose(found.toarray(), by_hand(matrix, window, negatives), atol=1e-9)


def test_vectors_are_singular_vectors_times_roots_of_singular_values() -> None:
    matrix = weighted()
    left, values, _ = np.linalg.svd(by_hand(matrix, 5, 1))
    exact = (left * np.sqrt(values))[:, :16]
    vectors = SMALL.embed(csr_array(matrix))
    np.testing.assert_allclose(vectors @ vectors.T, exact @ exact.T, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=0), np.sqrt(values[:16]), rtol=1e-4)


def test_with_all_eigenpairs_the_approximation_lacks_only_the_negative_part() -> None:
    matrix = weighted()
    root = np.sqrt(matrix.sum(axis=1))
    values, vectors = np.linalg.eigh(matrix / np.outer(root, root))
    gains = np.maximum(np.mean([values**r for r in range(1, 6)], axis=0), 0)
    exact = np.log(np.maximum(matrix.sum() * (vectors * gains) @ vectors.T / np.outer(root, root), 1))
    found = replace(SMALL, approximate=True, rank=80).logarithm(csr_array(matrix)).toarray()
    np.testing.assert_allclose(found, exact, atol=1e-9)
    odd = replace(SMALL, window=1).logarithm(csr_array(matrix)).toarray()
    assert abs(found - odd).max() > 0.1


def test_few_eigenpairs_come_near_where_the_window_is_large() -> None:
    matrix = csr_array(weighted())
    wide = NetMF(window=20)
    exact = wide.logarithm(matrix).toarray()
    error = [
        abs(replace(wide, approximate=True, rank=rank).logarithm(matrix).toarray() - exact).mean()
        for rank in (2, 10, 40)
    ]
    assert error[0] > error[1] > error[2]
    assert error[2] < exact.mean() / 4


def test_large_graphs_are_approximated_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, few = csr_array(weighted()), replace(SMALL, rank=4)
    exact, rough = (replace(few, approximate=choice).embed(graph) for choice in (False, True))
    np.testing.assert_array_equal(few.embed(graph), exact)
    monkeypatch.setattr("ripplevec.lab.baselines.netmf.EXACT", 79)
    np.testing.assert_array_equal(few.embed(graph), rough)
    assert (exact != rough).any()


def test_lanczos_finds_what_the_dense_solver_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = SMALL.embed(GRAPH.adjacency())
    monkeypatch.setattr("ripplevec.lab.baselines.netmf.DENSE", 0)
    sparse = SMALL.embed(GRAPH.adjacency())
    np.testing.assert_allclose(sparse @ sparse.T, dense @ dense.T, atol=1e-3)
    np.testing.assert_array_equal(sparse, SMALL.embed(GRAPH.adjacency()))


@pytest.mark.parametrize("approximate", [False, True])
def test_two_communities_separate(approximate: bool) -> None:
    vectors = replace(SMALL, approximate=approximate).embed(GRAPH.adjacency())
    half = np.random.default_rng(0).permutation(GRAPH.vertices)
    assert classify(vectors, GRAPH.labels, half[:40], half[40:]).micro > 0.9


def test_vertices_without_edges_have_zero_vectors() -> None:
    matrix = np.pad(GRAPH.adjacency().toarray(), (0, 2))
    for approximate in (False, True):
        vectors = replace(SMALL, approximate=approximate).embed(csr_array(matrix))
        assert vectors.any(axis=1).tolist() == [True] * 80 + [False] * 2
        assert np.isfinite(vectors).all()
    assert not SMALL.embed(csr_array((3, 3))).any()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({"approximate": "yes"}, "True, False"), ({"window": 0}, "whole"), ({"rank": 1.5}, "whole")],
)
def test_settings_are_checked(settings: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidValueError, match=f"NetMF.{next(iter(settings))}: expected .*{expected}"):
        NetMF(**settings)
