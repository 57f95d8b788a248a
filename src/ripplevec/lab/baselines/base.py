"""What every baseline that is retrained on the whole graph can do."""

from __future__ import annotations

from dataclasses import fields
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, triu

from ripplevec.batch import Op
from ripplevec.errors import InvalidValueError
from ripplevec.graph.adjacency import Adjacency


class Baseline(Protocol):
    """A method that knows nothing of streams: it sees a graph, once, and returns vectors.

    Its settings are the fields of a dataclass, `dim` and `seed` among them.
    """

    def __init__(self, **settings: Any) -> None: ...

    def embed(self, graph: csr_array) -> NDArray[np.float32]:
        """A vector per row of a symmetric matrix of weights; zero where a vertex has no edge."""


def checked(graph: Any) -> csr_array:
    """A graph as baselines want it: square, in float64, no stored zeros; an error where weights are negative."""
    matrix = csr_array(graph, dtype=np.float64, copy=True)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidValueError.of("graph", "a square matrix", f"shape {matrix.shape}")
    if matrix.nnz and not (matrix.data.min() >= 0 and np.isfinite(matrix.data).all()):
        raise InvalidValueError.of("graph", "finite weights ≥ 0", matrix.data.min())
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def growing(graph: Any) -> Adjacency:
    """A graph that edges can be added to, from a symmetric matrix; self-loops are left out."""
    edges, adjacency = triu(checked(graph), 1).tocoo(), Adjacency()
    adjacency.ensure_rows(edges.shape[0])
    add_edges(adjacency, np.column_stack([edges.row, edges.col]), edges.data)
    return adjacency


def add_edges(adjacency: Adjacency, pairs: NDArray[Any], weights: NDArray[np.float64]) -> None:
    """Add edges between rows that are there."""
    adjacency.apply(np.full(len(pairs), Op.ADD, np.int8), pairs.astype(np.int64), weights.astype(np.float32))


def check_settings(method: Any) -> None:
    """Refuse settings that cannot be used: whole numbers below 1 (the seed: below 0), numbers that are not above 0."""
    for field in fields(method):
        name, value = f"{type(method).__name__}.{field.name}", getattr(method, field.name)
        if field.type == "int":
            least = 0 if field.name == "seed" else 1
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InvalidValueError.of(name, f"a whole number ≥ {least}", value)
        elif field.type == "float" and (not isinstance(value, Real) or not 0 < float(value) < np.inf):
            raise InvalidValueError.of(name, "a number > 0", value)
