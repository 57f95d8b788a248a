"""The start of rule `paper`: plain eigenvectors of the graph Laplacian, as the paper's section 4.1 has them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import laplacian

from ripplevec.graph.adjacency import Adjacency
from ripplevec.views.base import Progress
from ripplevec.views.solvers import DENSE, largest
from ripplevec.views.subspace import fix_signs

NORMALIZATIONS = ("symmetric", "random-walk", "unnormalized")


def laplacian_vectors(
    adjacency: Adjacency, rows: int, columns: int, normalization: str, progress: Progress | None = None
) -> NDArray[np.float64]:
    """Eigenvectors of the smallest Laplacian eigenvalues but the trivial one; zero rows where there are no edges.

    `symmetric`: of I − D^-½ A D^-½, so that FᵀF = I. `random-walk`: those times D^-½, so that FᵀDF = I.
    `unnormalized`: of D − A, FᵀF = I.
    """
    active = np.flatnonzero(adjacency.links.degree[:rows])
    vectors = np.zeros((rows, columns))
    count = min(columns, active.size - 1)
    if count <= 0:
        return vectors
    matrix = adjacency.to_csr()[active][:, active]
    degree = adjacency.links.strength[active]
    trivial = np.ones(active.size) if normalization == "unnormalized" else np.sqrt(degree)
    mirrored, trivial = _mirrored(csr_array(matrix), degree, normalization), trivial / np.linalg.norm(trivial)
    found = _leading(mirrored, trivial, count, progress)
    if normalization == "random-walk":
        found = found / np.sqrt(degree)[:, None]
    vectors[active, :count] = fix_signs(found)
    return vectors


def _mirrored(matrix: csr_array, degree: NDArray[np.float64], normalization: str) -> csr_array:
    """A matrix whose largest eigenvalues are the Laplacian's smallest: easier for Lanczos than the other end."""
    if normalization == "unnormalized":
        return csr_array(2 * degree.max() * diags_array(np.ones(degree.size)) - laplacian(matrix))
    scale = diags_array(1 / np.sqrt(degree))
    return csr_array(scale @ matrix @ scale)


def _leading(
    matrix: csr_array, trivial: NDArray[np.float64], count: int, progress: Progress | None
) -> NDArray[np.float64]:
    size = trivial.size
    shift = 3 * abs(matrix).sum(axis=0).max()  # moves the trivial vector below all others
    if size <= max(DENSE, 2 * count + 2):
        vectors = eigh(matrix.toarray() - shift * np.outer(trivial, trivial))[1][:, ::-1]
    else:
        values, found = largest(lambda y: matrix @ y - shift * trivial * (trivial @ y), size, count, progress)
        vectors = np.zeros((size, count))
        vectors[:, : values.size] = found[:, np.argsort(-values, kind="stable")]
    return vectors[:, :count]
