"""Kernels of the Rayleigh–Ritz step against plain NumPy in double precision."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from correction_graphs import BOUNDS, DIM, adjacency_matrix, make_engine, make_step, random_block
from numpy.typing import NDArray

from ripplevec.engine.engine import Engine
from ripplevec.rules import _ritz_kernels as kernels
from ripplevec.rules._correction_kernels import SLICE_ROWS, FilterStep, RowRange
from ripplevec.rules._ritz_kernels import Sample
from ripplevec.rules.correction_workspace import select_columns

SAMPLES = [(0, 200, SLICE_ROWS), (SLICE_ROWS, 200, 2 * SLICE_ROWS), (0, 150, SLICE_ROWS), (192, 200, SLICE_ROWS)]


def dense_products(engine: Engine, step: FilterStep, block: NDArray[Any]) -> NDArray[np.float64]:
    """Return x, √(d+τ) · x and (d+τ) · W x of all rows x of a block, deflated."""
    links, per_unit = engine.graph.adjacency.links, 1 / engine.graph.adjacency.weight_scale.unit
    shift, center, _ = step.per_column.astype(np.float64)
    tau = np.repeat(step.per_view[:, 0], np.diff(step.bounds))
    degree, strength = links.degree[:200], links.strength[:200, None]
    x = block - shift
    weighted = np.sqrt((strength + tau) * per_unit) * x
    applied = (adjacency_matrix(engine) @ block - strength * shift - center) * per_unit
    products = np.stack([x, weighted, applied])
    products[:, degree == 0] = 0
    return products


def rows_of(sample: tuple[int, int, int]) -> NDArray[np.int64]:
    first, last, step = sample
    return np.concatenate([np.arange(begin, min(begin + SLICE_ROWS, last)) for begin in range(first, last, step)])


@pytest.mark.parametrize("bounds", BOUNDS, ids=len)
@pytest.mark.parametrize("part", [(0, SLICE_ROWS), (70, 100), (192, 200)])
@pytest.mark.parametrize("parameters", [{}, {"half_life": 2.0}])
def test_apply_operator_equals_dense_products(
    bounds: NDArray[np.int64], part: tuple[int, int], parameters: dict[str, Any]
) -> None:
    engine, step, block = make_engine(**parameters), make_step(bounds), random_block(1)
    graph, products = engine.graph, np.full((3, SLICE_ROWS, DIM), 7.0)
    rows = RowRange(*part, 1 / graph.adjacency.weight_scale.unit)
    total = np.zeros(DIM, np.float32)
    kernels.apply_operator(
        graph.adjacency.links, graph.arrival, step, rows, select_columns(block, 0, DIM), total, products
    )
    expected, count = dense_products(engine, step, block)[:, slice(*part)], part[1] - part[0]
    np.testing.assert_allclose(products[:, :count], expected, rtol=1e-4, atol=1e-4)
    assert (products[:, count:] == 7).all()


@pytest.mark.parametrize("bounds", BOUNDS, ids=len)
@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("parameters", [{}, {"half_life": 2.0}])
def test_add_quotients_adds_products_of_columns(
    bounds: NDArray[np.int64], sample: tuple[int, int, int], parameters: dict[str, Any]
) -> None:
    engine, step, block = make_engine(**parameters), make_step(bounds), random_block(1)
    graph, sums = engine.graph, np.ones((2, DIM))
    unit = graph.adjacency.weight_scale.unit
    kernels.add_quotients(
        graph.adjacency.links, graph.arrival, step, Sample(*sample, 1 / unit), select_columns(block, 0, DIM), sums
    )
    x, weighted, applied = dense_products(engine, step, block)[:, rows_of(sample)]
    np.testing.assert_allclose(sums, [1 + (x * applied).sum(axis=0), 1 + (weighted**2).sum(axis=0)], rtol=1e-4)


@pytest.mark.parametrize("bounds", BOUNDS, ids=len)
@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("plain_step", [SLICE_ROWS, 2 * SLICE_ROWS])
def test_add_projections_adds_matrices_of_each_view(
    bounds: NDArray[np.int64], sample: tuple[int, int, int], plain_step: int
) -> None:
    engine, step, block = make_engine(), make_step(bounds), random_block(1)
    graph, grams = engine.graph, np.zeros((3, DIM, DIM))
    arguments = graph.adjacency.links, graph.arrival, step, Sample(*sample, 1.0), select_columns(block, 0, DIM)
    active = kernels.add_projections(*arguments, plain_step, grams)

    rows, (x, weighted, applied) = rows_of(sample), dense_products(engine, step, block)
    plain = rows[rows // SLICE_ROWS * SLICE_ROWS % plain_step == 0]
    assert active == np.count_nonzero(graph.adjacency.links.degree[plain])
    expected = np.zeros((3, DIM, DIM))
    for first, last in pairwise(bounds):
        part = slice(first, last)
        expected[0, part, part] = weighted[rows, part].T @ weighted[rows, part]
        expected[1, part, part] = x[rows, part].T @ applied[rows, part]
        expected[2, part, part] = x[plain, part].T @ x[plain, part]
    for gram, product in zip(np.triu(grams[[0, 2]]), np.triu(expected[[0, 2]]), strict=True):
        np.testing.assert_allclose(gram, product, rtol=1e-4, atol=1e-2)
    np.testing.assert_allclose(grams[1], expected[1], rtol=1e-4, atol=1e-2)
