"""Laplacian eigenvectors, the initial embedding of rule `paper` (section 4.1 of the paper).

The Laplacian of a graph has one eigenvalue 0 per connected component, and many small components share other eigenvalues
too. Components are therefore solved one by one: an iteration on the whole graph misses copies of repeated eigenvalues.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import connected_components, laplacian

from ripplevec.graph.adjacency import Adjacency, RowArray
from ripplevec.views.base import Progress
from ripplevec.views.solvers import MAX_DENSE_SIZE, Eigenpairs, fix_signs, lanczos_all_copies, solve_symmetric

NORMALIZATIONS = ("symmetric", "random-walk", "unnormalized")
COMPONENTS = ("together", "separate")


class _Part(NamedTuple):
    """A connected component: its rows in the matrix of all active vertices, and its normalized trivial eigenvector."""

    rows: RowArray
    trivial: NDArray[np.float64]
    volume: float  # squared length of the trivial eigenvector before it was normalized


def laplacian_vectors(
    adjacency: Adjacency,
    rows: int,
    columns: int,
    normalization: str,
    progress: Progress | None = None,
    *,
    components: str = "together",
) -> NDArray[np.float64]:
    """Return the eigenvectors of the smallest non-trivial Laplacian eigenvalues; rows of isolated vertices are zero.

    `normalization` selects the matrix. "symmetric": I − D^-½ A D^-½, so that FᵀF = I. "random-walk": the symmetric
    eigenvectors times D^-½, so that FᵀDF = I. "unnormalized": D − A, so that FᵀF = I.

    `components` selects the trivial eigenvectors. "together": only the one of the whole graph, so that the first
    columns of a graph with several components tell these apart. "separate": one per component, so that columns show the
    inside of components. Where equal eigenvalues compete for the last columns, larger components come first.
    """
    active = np.flatnonzero(adjacency.links.degree[:rows])
    vectors = np.zeros((rows, columns))
    if not active.size:
        return vectors
    matrix = csr_array(adjacency.to_csr()[active][:, active])
    degree = adjacency.links.strength[active]
    parts = _split_components(matrix, np.ones(active.size) if normalization == "unnormalized" else np.sqrt(degree))
    reflected = _reflect(matrix, degree, normalization)
    eigenvectors = _leading_eigenvectors(reflected, parts, columns, components == "together", progress)
    if normalization == "random-walk":
        eigenvectors = eigenvectors / np.sqrt(degree)[:, None]
    vectors[active, : eigenvectors.shape[1]] = fix_signs(eigenvectors)
    return vectors


def _split_components(matrix: csr_array, trivial: NDArray[np.float64]) -> list[_Part]:
    """Return the connected components, those with more vertices first."""
    component = connected_components(matrix, directed=False)[1]
    sizes = np.bincount(component)
    rows = np.split(np.argsort(component, kind="stable"), np.cumsum(sizes)[:-1])
    ordered = [rows[position] for position in np.argsort(-sizes, kind="stable")]
    return [_make_part(part, trivial[part]) for part in ordered]


def _make_part(rows: RowArray, trivial: NDArray[np.float64]) -> _Part:
    return _Part(rows, trivial / np.linalg.norm(trivial), float(trivial @ trivial))


def _reflect(matrix: csr_array, degree: NDArray[np.float64], normalization: str) -> csr_array:
    """Return a matrix whose largest eigenvalues belong to the Laplacian's smallest; Lanczos finds large ones faster."""
    if normalization == "unnormalized":
        return csr_array(2 * degree.max() * diags_array(np.ones(degree.size)) - laplacian(matrix))
    scale = diags_array(1 / np.sqrt(degree))
    return csr_array(scale @ matrix @ scale)


def _leading_eigenvectors(
    matrix: csr_array, parts: list[_Part], count: int, together: bool, progress: Progress | None
) -> NDArray[np.float64]:
    """Return at most `count` eigenvectors of the largest eigenvalues, without the trivial ones."""
    size = matrix.shape[0]
    contrasts = _component_contrasts(parts, count, size) if together else np.zeros((size, 0))
    count = min(count, size - (1 if together else len(parts))) - contrasts.shape[1]
    if count <= 0:
        return contrasts
    pairs = [_solve_component(matrix, part, count, progress) for part in parts]
    values = np.concatenate([values for values, _ in pairs])
    owner = np.repeat(np.arange(len(pairs)), [values.size for values, _ in pairs])
    column = np.concatenate([np.arange(values.size) for values, _ in pairs])
    found = np.zeros((size, min(count, values.size)))
    for target, position in enumerate(np.argsort(-values, kind="stable")[: found.shape[1]].tolist()):
        part = parts[owner[position]]
        found[part.rows, target] = pairs[owner[position]][1][:, column[position]]
    return np.hstack([contrasts, found])


def _component_contrasts(parts: list[_Part], count: int, size: int) -> NDArray[np.float64]:
    """Return orthonormal eigenvectors of eigenvalue 0 that tell components apart: each against all larger ones.

    They are orthogonal to the trivial eigenvector of the whole graph.
    """
    contrasts = np.zeros((size, min(count, len(parts) - 1)))
    volume = np.cumsum([part.volume for part in parts])
    for column in range(contrasts.shape[1]):
        own = parts[column + 1].volume
        total = volume[column] + own
        for part in parts[: column + 1]:
            contrasts[part.rows, column] = part.trivial * np.sqrt(part.volume / volume[column] * own / total)
        contrasts[parts[column + 1].rows, column] = -parts[column + 1].trivial * np.sqrt(volume[column] / total)
    return contrasts


def _solve_component(matrix: csr_array, part: _Part, count: int, progress: Progress | None) -> Eigenpairs:
    """Return the largest eigenvalues of a component except the trivial one in descending order, and eigenvectors."""
    size, trivial = part.rows.size, part.trivial
    count = min(count, size - 1)
    inside = matrix if size == matrix.shape[0] else csr_array(matrix[part.rows][:, part.rows])
    shift = 3 * abs(inside).sum(axis=0).max()  # moves the trivial eigenvalue below all others
    if size <= max(MAX_DENSE_SIZE, 2 * count + 2):
        values, vectors = solve_symmetric(inside.toarray() - shift * np.outer(trivial, trivial))
        return values[: -count - 1 : -1], vectors[:, : -count - 1 : -1]
    return lanczos_all_copies(lambda y: inside @ y - shift * trivial * (trivial @ y), size, count, 2 * shift, progress)
