from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.fastrp import FastRP
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation import classify

GRAPH = planted_partition(communities=4, size=60, inside=8, elsewhere=1)


def test_fastrp_vectors_equal_formula() -> None:
    method = FastRP(dim=6, fourth_weight=2.0, degree_power=-0.5, seed=4)
    dense = GRAPH.adjacency().toarray().astype(float)
    degrees = dense.sum(axis=1)
    power = np.linalg.matrix_power(dense / degrees[:, None], 3)
    projection = np.diag(degrees**-0.5) @ method._projection(240).toarray()
    rows = (power + 2 * power @ (dense / degrees[:, None])) @ projection
    expected = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    np.testing.assert_allclose(method.embed(GRAPH.adjacency()), expected, atol=1e-4)


def test_fastrp_projection_keeps_lengths_on_average() -> None:
    projection = FastRP(dim=400)._projection(2_000)
    assert projection.nnz == pytest.approx(2_000 * 400 / np.sqrt(2_000), rel=0.01)
    lengths = np.square(projection.toarray()).sum(axis=1)
    assert lengths.mean() == pytest.approx(1, rel=0.02)


def test_fastrp_vectors_separate_communities() -> None:
    vectors = FastRP(dim=32).embed(GRAPH.adjacency())
    assert classify(vectors, GRAPH.labels, np.arange(0, 240, 2), np.arange(1, 240, 2)).micro > 0.9


def test_fastrp_isolated_vertices_are_zero() -> None:
    vectors = FastRP(dim=4).embed(csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])))
    assert np.isfinite(vectors).all()
    assert not vectors[2].any()
    assert not FastRP(dim=4).embed(csr_array((3, 3))).any()


def test_fastrp_same_seed_gives_same_vectors() -> None:
    graph = GRAPH.adjacency()
    np.testing.assert_array_equal(FastRP(dim=8, seed=3).embed(graph), FastRP(dim=8, seed=3).embed(graph))
    assert (FastRP(dim=8, seed=3).embed(graph) != FastRP(dim=8, seed=4).embed(graph)).any()


@pytest.mark.parametrize("power", [0.5, -1.5, float("nan"), "0"])
def test_fastrp_with_invalid_degree_power_raises(power: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"FastRP\.degree_power: expected a number from -1 to 0"):
        FastRP(degree_power=power)
