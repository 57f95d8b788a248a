"""A graph, a block of rows and coefficients for tests of the kernels of gradual corrections."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec import Batch, Embedder
from ripplevec.engine.engine import Engine
from ripplevec.rules._correction_kernels import FilterStep, RowRange

DIM = 5
BOUNDS = [np.array([0, DIM]), np.array([0, 2, DIM])]  # one view, two views


def make_engine(edges: int = 500, **parameters: Any) -> Engine:
    """Return a graph with 200 vertices and weighted edges, some without edges; nothing is embedded."""
    rng, model = np.random.default_rng(edges), Embedder(dim=DIM, start_size=10**6, **parameters)
    model.partial_fit(Batch.vertices(range(200)))
    ends = rng.integers(0, 180, (edges, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    time = np.linspace(0, 9, len(ends)) if parameters.get("half_life") else None
    model.partial_fit(Batch.of(*ends.T, 2.0 ** rng.integers(-3, 4, len(ends)), time=time))
    assert (model.engine.graph.adjacency.links.degree[:200] == 0).sum() >= 20
    return model.engine


def adjacency_matrix(engine: Engine) -> NDArray[np.float64]:
    links, rows = engine.graph.adjacency.links, engine.graph.row_count
    matrix = np.zeros((rows, rows))
    for row in range(rows):
        slots = slice(links.begin[row], links.begin[row] + links.degree[row])
        matrix[row, links.neighbor[slots]] = links.weight[slots]
    return matrix


def make_step(bounds: NDArray[np.int64], seed: int = 0) -> FilterStep:
    rng, views = np.random.default_rng(seed), len(bounds) - 1
    per_view = np.column_stack([rng.uniform(0.5, 3, views), rng.standard_normal((views, 3))])
    return FilterStep(0, bounds, per_view, rng.standard_normal((3, DIM)).astype(np.float32))


def random_block(seed: int, rows: int = 200, columns: int = DIM) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32)


def expected_sums(engine: Engine, block: NDArray[Any], rows: RowRange) -> tuple[NDArray[np.float64], list[float]]:
    links, part = engine.graph.adjacency.links, slice(rows.first, rows.last)
    active = links.degree[part] > 0
    values, strength = block[part][active].astype(np.float64), links.strength[part][active] * rows.per_unit
    totals = [strength.sum(), links.degree[part].sum(), active.sum(), (strength**2).sum()]
    squares = np.square(values)
    return np.stack([strength @ values, values.sum(axis=0), strength @ squares, squares.sum(axis=0)]), totals
