"""The interface of baselines that embed a whole graph at once, and their input checks."""

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
    """A static embedding method: it reads a graph once and returns vectors.

    Its settings are the fields of a dataclass, `dim` and `seed` among them.
    """

    def __init__(self, **settings: Any) -> None: ...

    def embed(self, graph: csr_array) -> NDArray[np.float32]:
        """Return a vector per row of a symmetric weight matrix; zero for vertices without edges."""


def as_weight_matrix(graph: Any) -> csr_array:
    """Copy a graph to a square float64 matrix without stored zeros; raise if a weight is negative or not finite."""
    matrix = csr_array(graph, dtype=np.float64, copy=True)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidValueError.of("graph", "a square matrix", f"shape {matrix.shape}")
    if matrix.nnz and not (matrix.data.min() >= 0 and np.isfinite(matrix.data).all()):
        raise InvalidValueError.of("graph", "finite weights ≥ 0", matrix.data.min())
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def linked_part(matrix: csr_array) -> tuple[NDArray[np.int64], csr_array]:
    """Return the vertices with edges, and the matrix of these alone."""
    linked = np.flatnonzero(np.diff(matrix.indptr))
    return linked, csr_array(matrix[linked][:, linked])


def build_adjacency(graph: Any) -> Adjacency:
    """Convert a symmetric matrix to a growable adjacency; self-loops are dropped."""
    edges, adjacency = triu(as_weight_matrix(graph), 1).tocoo(), Adjacency()
    adjacency.ensure_rows(edges.shape[0])
    add_edges(adjacency, np.column_stack([edges.row, edges.col]), edges.data)
    return adjacency


def add_edges(adjacency: Adjacency, pairs: NDArray[Any], weights: NDArray[np.float64]) -> None:
    """Add edges between existing rows."""
    adjacency.apply(np.full(len(pairs), Op.ADD, np.int8), pairs.astype(np.int64), weights.astype(np.float32))


def check_settings(method: Any) -> None:
    """Check the settings of a method: integers must be at least 1 (the seed 0), other numbers positive."""
    for field in fields(method):
        name, value = f"{type(method).__name__}.{field.name}", getattr(method, field.name)
        if field.type == "int":
            least = 0 if field.name == "seed" else 1
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InvalidValueError.of(name, f"an integer ≥ {least}", value)
        elif field.type == "float" and (not isinstance(value, Real) or not 0 < float(value) < np.inf):
            raise InvalidValueError.of(name, "a number > 0", value)
