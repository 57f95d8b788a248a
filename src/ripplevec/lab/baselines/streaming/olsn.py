"""OLSN (Jian et al., 2018), the embedding part: spectral embedding that follows the graph on arrivals.

Only its abstract and the description by Liu et al. (2018) were available: spectral embedding that is updated after
every arrival, with a vector for the new vertex at once, in O(n²) on a graph of n vertices. How the eigenvectors are
updated is our choice: an iteration that starts from the previous ones. The second part of OLSN, an online classifier,
is left out, because all methods are scored with the same classifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, polar
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import connected_components

from ripplevec.lab.baselines.base import as_weight_matrix, build_adjacency, check_settings
from ripplevec.lab.baselines.streaming.base import GrowingVectors, add_arrival_edges, check_arrival
from ripplevec.lab.baselines.streaming.incremental_svd import Matrix, orthonormal_basis
from ripplevec.views.laplacian import laplacian_vectors

MIN_EIGENVALUE = 0.1  # a new vertex divides by at least this, so that errors do not grow along arrivals


@dataclass(kw_only=True)
class OLSN:
    """Eigenvectors X of S = D^-½ A D^-½ for its largest eigenvalues, updated after every `chunk` arrivals.

    An update consists of `steps` Rayleigh-Ritz steps: the columns are replaced by the best approximations of
    eigenvectors in the span of X and S X. The trivial eigenvector of every component is left out. The vectors are the
    rows of X, rotated so that coordinates change as little as possible. Between updates, a new vertex gets the row that
    satisfies its own equation, λ x_v = Σ S_vu x_u.
    """

    dim: int = 128
    chunk: int = 8
    steps: int = 1
    seed: int = 0  # unused: every baseline has a seed, but this one is deterministic

    def __post_init__(self) -> None:
        check_settings(self)

    def start(self, graph: csr_array) -> None:
        """Compute the eigenvectors of the initial graph."""
        self._graph = build_adjacency(as_weight_matrix(graph))
        size, self._arrivals = graph.shape[0], 0
        basis = laplacian_vectors(self._graph, size, self.dim, "symmetric", components="separate")
        basis = basis[:, basis.any(axis=0)]
        operator = normalize(self._matrix(size))
        self._set_eigenvectors(np.einsum("ij,ij->j", basis, operator @ basis), basis, np.eye(self.dim)[: len(basis.T)])

    def preview(self, neighbors: Sequence[int]) -> NDArray[np.float32]:
        """Return the row that satisfies the equation of a new vertex."""
        chosen = np.asarray(neighbors, np.int64)
        if not chosen.size:
            return np.zeros(self.dim, np.float32)
        factors = 1 / np.sqrt((self._graph.links.strength[chosen] + 1) * chosen.size)
        row: NDArray[np.float32] = (factors @ self._vectors.rows[chosen] @ self._fold_in).astype(np.float32)
        return row

    def add_vertex(self, v: int, neighbors: Sequence[int]) -> NDArray[np.float32]:
        """Place a new vertex; update the eigenvectors if it completes a chunk. Return its vector."""
        check_arrival(v, neighbors, len(self._vectors))
        if not self._vectors.is_placed(v):
            self._vectors.set_row(v, self.preview(neighbors))
        add_arrival_edges(self._graph, v, neighbors)
        self._arrivals += 1
        if self._arrivals % self.chunk == 0:
            self._update()
        return self._vectors.rows[v].copy()

    def vectors(self) -> NDArray[np.float32]:
        """Return the vectors of the last update and of the vertices placed since, read-only."""
        return self._vectors.read_only()

    def _matrix(self, size: int) -> csr_array:
        return csr_array(self._graph.to_csr()[:size, :size], dtype=np.float64)

    def _update(self) -> None:
        """Improve the eigenvectors for the current graph."""
        served = self._vectors.rows.astype(np.float64)
        matrix = self._matrix(len(served))
        operator, trivial = normalize(matrix), trivial_eigenvectors(matrix)
        basis = served @ self._rotation.T
        basis -= trivial.T @ (trivial @ basis)
        for _ in range(self.steps):
            values, basis = improve_eigenvectors(operator, basis, self.dim)
        self._set_eigenvectors(values, basis, polar(basis.T @ served)[0])

    def _set_eigenvectors(self, values: Matrix, basis: Matrix, rotation: Matrix) -> None:
        self._values, self._rotation = values, rotation
        self._vectors = GrowingVectors(basis @ rotation)
        self._fold_in = (rotation.T / np.maximum(values, MIN_EIGENVALUE)) @ rotation


def normalize(matrix: csr_array) -> csr_array:
    """Return D^-½ A D^-½; rows without edges stay zero."""
    strength = np.asarray(matrix.sum(axis=1)).ravel()
    factors = diags_array(1 / np.sqrt(np.where(strength > 0, strength, 1.0)))
    return csr_array(factors @ matrix @ factors)


def trivial_eigenvectors(matrix: csr_array) -> csr_array:
    """Return the eigenvector with eigenvalue 1 of every component as a row; zero for isolated vertices."""
    count, component = connected_components(matrix, directed=False)
    strength = np.asarray(matrix.sum(axis=1)).ravel()
    volume = np.bincount(component, strength, minlength=count)[component]
    entries = np.sqrt(strength / np.where(volume > 0, volume, 1.0))
    return csr_array((entries, (component, np.arange(component.size))), shape=(count, component.size))


def improve_eigenvectors(operator: csr_array, columns: Matrix, count: int) -> tuple[Matrix, Matrix]:
    """Return the largest Ritz values in the span of some columns and their images, and the Ritz vectors."""
    basis = orthonormal_basis(columns)
    image = operator @ basis
    basis = np.hstack([basis, orthonormal_basis(image - basis @ (basis.T @ image))])
    projected = basis.T @ (operator @ basis)
    values, mixed = eigh(projected) if len(projected) else (projected.diagonal(), projected)
    return values[::-1][:count], basis @ mixed[:, ::-1][:, :count]
