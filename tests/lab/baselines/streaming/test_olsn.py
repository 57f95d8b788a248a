"""OLSN: exact at the start, and updates converge to the eigenvectors of the grown graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import subspace_angles
from scipy.sparse import csr_array

from ripplevec.lab.baselines.streaming import OLSN
from ripplevec.lab.baselines.streaming.olsn import improve_eigenvectors, normalize, trivial_eigenvectors


def exact_eigenpairs(graph: csr_array, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues of D^-½ A D^-½ and their eigenvectors, without those that are trivial."""
    trivial = trivial_eigenvectors(graph).toarray()
    values, basis = np.linalg.eigh(normalize(graph).toarray() - trivial.T @ trivial)
    return values[::-1][:count], basis[:, ::-1][:, :count]


def distance_to_exact(method: OLSN, graph: csr_array) -> float:
    """Return the largest sine between the space of the vectors and the exact one."""
    exact = exact_eigenpairs(graph, method.dim)[1]
    return float(np.sin(subspace_angles(method.vectors().astype(float), exact)).max())


def test_olsn_start_is_exact(small_stream: Any) -> None:
    method = OLSN(dim=6)
    method.start(small_stream.graph)
    assert distance_to_exact(method, small_stream.graph) < 1e-4
    np.testing.assert_allclose(method._values, exact_eigenpairs(small_stream.graph, 6)[0], atol=1e-6)


def test_olsn_stream_ends_at_the_eigenvectors_of_the_final_graph(small_stream: Any) -> None:
    """The more steps per update, the closer; with many, the online result is the one of a new start."""
    distances = [
        distance_to_exact(small_stream.run(OLSN(dim=3, chunk=4, steps=n)), small_stream.final) for n in (1, 3, 30)
    ]
    assert distances[0] > distances[1] > distances[2]
    assert distances[2] < 1e-4


def test_olsn_update_keeps_coordinates_stable(small_stream: Any) -> None:
    method = OLSN(dim=6, chunk=1, steps=30)
    method.start(small_stream.graph)
    before = method.vectors().copy()
    method.add_vertex(80, [0, 1, 2])
    assert np.linalg.norm(method.vectors()[:80] - before) < 0.5 * np.linalg.norm(before)


def test_olsn_preview_of_twin_solves_the_equation_of_the_vertex(small_stream: Any) -> None:
    """A twin has the row of the original, up to its neighbors' degrees, which grow by one."""
    method = OLSN(dim=6)
    method.start(small_stream.graph)
    neighbors = small_stream.graph[[5]].indices
    degree = np.asarray(small_stream.graph.sum(axis=1)).ravel()
    rows = method.vectors()[neighbors] / np.sqrt((degree[neighbors] + 1) * len(neighbors))[:, None]
    coordinates = rows.sum(axis=0) @ method._rotation.T / method._values @ method._rotation
    np.testing.assert_allclose(method.preview(neighbors.tolist()), coordinates, atol=1e-6)
    assert np.corrcoef(coordinates, method.vectors()[5])[0, 1] > 0.99


def test_olsn_merged_components_have_no_trivial_direction() -> None:
    """Two rings, connected by the stream: the direction that told them apart is not among the vectors."""
    ring = np.roll(np.eye(8), 1, axis=1)
    ring += ring.T
    both = np.kron(np.eye(2), ring)
    method = OLSN(dim=4, chunk=1, steps=20)
    method.start(csr_array(both))
    method.add_vertex(0, [8])
    both[0, 8] = both[8, 0] = 1
    trivial = trivial_eigenvectors(csr_array(both))
    assert trivial.shape == (1, 16)
    np.testing.assert_allclose(trivial @ method.vectors(), 0, atol=1e-6)
    np.testing.assert_allclose(method._values, exact_eigenpairs(csr_array(both), 4)[0], atol=0.01)


def test_improve_eigenvectors_of_full_span_is_exact(small_stream: Any) -> None:
    operator = normalize(small_stream.graph)
    values, basis = improve_eigenvectors(operator, np.eye(operator.shape[0]), 5)
    np.testing.assert_allclose(operator @ basis, basis * values, atol=1e-9)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(operator.toarray())[::-1][:5], atol=1e-9)


def test_trivial_eigenvectors_are_unit_eigenvectors_of_components(small_stream: Any) -> None:
    operator, trivial = normalize(small_stream.graph), trivial_eigenvectors(small_stream.graph)
    np.testing.assert_allclose((operator @ trivial.T).toarray(), trivial.T.toarray(), atol=1e-12)
    gram = (trivial @ trivial.T).toarray()
    np.testing.assert_allclose(gram, np.diag(np.round(gram.diagonal())), atol=1e-12)
