"""DANE and DHPE: exact at the start, and close to the exact eigenvectors after a small change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import eigh, subspace_angles

from ripplevec.lab.baselines.streaming import DANE, DHPE

EACH = pytest.mark.parametrize("method", [DANE(dim=6, chunk=1), DHPE(dim=6, chunk=1)], ids=["DANE", "DHPE"])


def residual(method: Any, graph: Any) -> float:
    """Return the relative error of the generalized eigenproblem for the current eigenpairs."""
    p, q = (part.toarray() for part in method.matrices(graph))
    basis = method._basis.rows.astype(float)
    return float(np.linalg.norm(p @ basis - q @ basis * method._values) / np.linalg.norm(q @ basis))


@EACH
def test_start_solves_the_eigenproblem(method: Any, small_stream: Any) -> None:
    method.start(small_stream.graph)
    assert residual(method, small_stream.graph) < 1e-5
    p, q = (part.toarray() for part in method.matrices(small_stream.graph))
    linked = np.flatnonzero(small_stream.graph.sum(axis=1))
    everything = eigh(p[np.ix_(linked, linked)], q[np.ix_(linked, linked)], eigvals_only=True)
    expected = everything[1:7] if isinstance(method, DANE) else everything[np.argsort(-np.abs(everything))[:6]]
    np.testing.assert_allclose(method._values, expected, atol=1e-5)


@EACH
def test_row_of_a_known_vertex_follows_from_its_neighbors(method: Any, small_stream: Any) -> None:
    """The equation of the start, solved for a vertex with the rows of its neighbors, gives back its own row."""
    method.start(small_stream.graph)
    neighbors = small_stream.graph[[5]].indices.tolist()
    np.testing.assert_allclose(method.preview(neighbors), method.vectors()[5], atol=1e-4)


@EACH
def test_one_edge_between_known_vertices_moves_eigenvectors_toward_the_exact_ones(
    method: Any, small_stream: Any
) -> None:
    method.start(small_stream.graph)
    before = method._basis.rows.astype(float)
    method.add_vertex(3, [40])
    after, graph = method._basis.rows.astype(float), small_stream.graph.tolil()
    graph[3, 40] += 1
    graph[40, 3] += 1
    exact = type(method)(dim=6)
    exact.start(graph.tocsr())
    reference = exact._basis.rows.astype(float)
    distances = [float(np.sin(subspace_angles(basis, reference)).sum()) for basis in (before, after)]
    assert distances[1] <= distances[0] + 1e-3  # directions outside the kept ones cannot be mixed in
    np.testing.assert_allclose(method._values, exact._values, atol=0.03)


@EACH
def test_update_normalizes_columns(method: Any, small_stream: Any) -> None:
    small_stream.run(method)
    q, basis = method.matrices(method._graph)[1], method._basis.rows.astype(float)
    tolerance = 1e-4 if isinstance(method, DANE) else 0.1  # β of DHPE may have been lowered, which changes Q a little
    np.testing.assert_allclose(np.einsum("ij,ij->j", basis, q @ basis), 1, atol=tolerance)
