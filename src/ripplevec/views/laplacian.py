"""Laplacian eigenvectors, the initial embedding of rule `paper` (section 4.1 of the paper)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import laplacian

from ripplevec.graph.adjacency import Adjacency
from ripplevec.views.base import Progress
from ripplevec.views.solvers import MAX_DENSE_SIZE, fix_signs, lanczos_largest, solve_symmetric

NORMALIZATIONS = ("symmetric", "random-walk", "unnormalized")


def laplacian_vectors(
    adjacency: Adjacency, rows: int, columns: int, normalization: str, progress: Progress | None = None
) -> NDArray[np.float64]:
    """Return the eigenvectors of the smallest non-trivial Laplacian eigenvalues; rows of isolated vertices are zero.

    `normalization` selects the matrix. "symmetric": I − D^-½ A D^-½, so that FᵀF = I. "random-walk": the symmetric
    eigenvectors times D^-½, so that FᵀDF = I. "unnormalized": D − A, so that FᵀF = I.
    """
    active = np.flatnonzero(adjacency.links.degree[:rows])
    vectors = np.zeros((rows, columns))
    count = min(columns, active.size - 1)
    if count <= 0:
        return vectors
    matrix = adjacency.to_csr()[active][:, active]
    degree = adjacency.links.strength[active]
    trivial = np.ones(active.size) if normalization == "unnormalized" else np.sqrt(degree)
    trivial = trivial / np.linalg.norm(trivial)
    reflected = _reflect(csr_array(matrix), degree, normalization)
    eigenvectors = _leading_eigenvectors(reflected, trivial, count, progress)
    if normalization == "random-walk":
        eigenvectors = eigenvectors / np.sqrt(degree)[:, None]
    vectors[active, :count] = fix_signs(eigenvectors)
    return vectors


def _reflect(matrix: csr_array, degree: NDArray[np.float64], normalization: str) -> csr_array:
    """Return a matrix whose largest eigenvalues belong to the Laplacian's smallest; Lanczos finds large ones faster."""
    if normalization == "unnormalized":
        return csr_array(2 * degree.max() * diags_array(np.ones(degree.size)) - laplacian(matrix))
    scale = diags_array(1 / np.sqrt(degree))
    return csr_array(scale @ matrix @ scale)


def _leading_eigenvectors(
    matrix: csr_array, trivial: NDArray[np.float64], count: int, progress: Progress | None
) -> NDArray[np.float64]:
    """Return the eigenvectors of the largest eigenvalues, without the trivial eigenvector."""
    size = trivial.size
    shift = 3 * abs(matrix).sum(axis=0).max()  # moves the trivial eigenvalue below all others
    if size <= max(MAX_DENSE_SIZE, 2 * count + 2):
        vectors = solve_symmetric(matrix.toarray() - shift * np.outer(trivial, trivial))[1][:, ::-1]
    else:
        values, found = lanczos_largest(lambda y: matrix @ y - shift * trivial * (trivial @ y), size, count, progress)
        vectors = np.zeros((size, count))
        vectors[:, : values.size] = found[:, np.argsort(-values, kind="stable")]
    return vectors[:, :count]
