from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.prone import ProNE, log_ratio_matrix, randomized_svd
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation import classify

GRAPH = planted_partition(communities=4, size=40, inside=5, elsewhere=3)
MATRIX = csr_array(GRAPH.adjacency(), dtype=np.float64)


def test_log_ratio_matrix_equals_formula() -> None:
    dense = MATRIX.toarray()
    transition = dense / dense.sum(axis=1, keepdims=True)
    noise = transition.sum(axis=0) ** 0.75
    expected = np.zeros_like(dense)
    edges = dense > 0
    expected[edges] = (np.log(np.where(edges, transition, 1)) - np.log(noise / noise.sum()))[edges]
    np.testing.assert_allclose(log_ratio_matrix(MATRIX).toarray(), expected, atol=1e-12)


def test_randomized_svd_finds_leading_singular_values() -> None:
    matrix = log_ratio_matrix(MATRIX)
    left, values = randomized_svd(matrix, 4, seed=1)
    exact_left, exact_values, _ = np.linalg.svd(matrix.toarray())
    np.testing.assert_allclose(values, exact_values[:4], rtol=1e-2)
    assert abs(left[:, 0] @ exact_left[:, 0]) > 0.999


@pytest.mark.parametrize(("mu", "theta"), [(0.2, 0.5), (0.6, 1.5)])
def test_prone_filter_equals_matrix_exponential(mu: float, theta: float) -> None:
    looped = MATRIX + csr_array(np.eye(160))
    shifted = (1 - mu) * np.eye(160) - looped.toarray() / looped.sum(axis=1)[:, None]
    exact = expm(-theta * (shifted @ shifted / 2 - np.eye(160)))
    rows = np.random.default_rng(0).normal(size=(160, 5))
    found = ProNE(mu=mu, theta=theta).filter_rows(csr_array(looped), rows)
    np.testing.assert_allclose(found, exact @ rows, atol=1e-6)


def test_prone_vectors_separate_communities_better_than_factorization() -> None:
    method = ProNE(dim=8)
    propagated = classify(method.embed(MATRIX), GRAPH.labels, np.arange(0, 160, 2), np.arange(1, 160, 2)).micro
    factorized = classify(
        method.factorize(MATRIX).astype(np.float32), GRAPH.labels, np.arange(0, 160, 2), np.arange(1, 160, 2)
    ).micro
    assert propagated > 0.8
    assert propagated > factorized


def test_prone_rows_have_length_one_and_isolated_vertices_are_zero() -> None:
    graph = csr_array((MATRIX.data, MATRIX.indices, np.append(MATRIX.indptr, [MATRIX.nnz] * 4)), shape=(164, 164))
    vectors = ProNE(dim=8).embed(graph)
    np.testing.assert_allclose(np.linalg.norm(vectors[:160], axis=1), 1, rtol=1e-5)
    assert not vectors[160:].any()
    assert not ProNE(dim=8).embed(csr_array((3, 3))).any()


def test_prone_with_more_columns_than_vertices_leaves_zero_columns() -> None:
    vectors = ProNE(dim=8).embed(csr_array(np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]])))
    assert np.isfinite(vectors).all()
    assert not vectors[:, 3:].any()


def test_prone_same_seed_gives_same_vectors() -> None:
    np.testing.assert_array_equal(ProNE(dim=8, seed=3).embed(MATRIX), ProNE(dim=8, seed=3).embed(MATRIX))


def test_prone_with_invalid_settings_raises() -> None:
    with pytest.raises(InvalidValueError, match=r"ProNE\.theta: expected a number > 0"):
        ProNE(theta=0.0)
