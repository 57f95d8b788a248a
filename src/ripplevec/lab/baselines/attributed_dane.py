"""DANE with attributes (Li et al., 2017), computed from scratch: the consensus of two Laplacian embeddings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, eigh
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import svds

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.base import as_weight_matrix, build_adjacency, check_settings
from ripplevec.views.laplacian import laplacian_vectors

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributedDANE:
    """The offline model of DANE: eigenvectors of the graph and of the cosines of attributes, and their consensus.

    Both embeddings solve L x = λ D x. The cosines of attributes are nonnegative weights of a complete graph with
    self-loops, so its eigenvectors are singular vectors of the scaled attributes. The consensus maximizes the
    correlation of the two embeddings.
    """

    dim: int = 128
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self)

    def embed(self, graph: csr_array, attributes: csr_array) -> NDArray[np.float32]:
        """Return one vector per row of the graph; rows of attributes must be nonnegative."""
        matrix = as_weight_matrix(graph)
        check_attributes(attributes, matrix.shape[0])
        adjacency = build_adjacency(matrix)
        of_edges = laplacian_vectors(adjacency, matrix.shape[0], self.dim, "random-walk", components="separate")
        of_attributes = solve_cosines(scale_rows(attributes), self.dim, self.seed)[1]
        consensus = np.hstack([of_edges, of_attributes]) @ solve_consensus(of_edges, of_attributes, self.dim)
        return consensus.astype(np.float32)


def check_attributes(attributes: csr_array, rows: int) -> None:
    """Check that there is a row of attributes for every vertex."""
    if attributes.shape[0] != rows:
        raise InvalidValueError.of("attributes", f"{rows:,} rows", f"{attributes.shape[0]:,}")


def scale_rows(attributes: csr_array) -> csr_array:
    """Return rows of length one; rows of zeros stay zero."""
    lengths = np.sqrt(np.asarray(attributes.multiply(attributes).sum(axis=1)).ravel())
    return csr_array(diags_array(_invert(lengths)) @ attributes)


def solve_cosines(units: csr_array, dim: int, seed: int) -> tuple[Matrix, Matrix]:
    """Return the smallest non-trivial eigenvalues and eigenvectors of the graph whose weights are cosines of rows."""
    strength = np.asarray(units @ np.asarray(units.sum(axis=0)).ravel()).ravel()
    roots = _invert(np.sqrt(strength))
    count = min(dim + 1, *(size - 1 for size in units.shape))
    left, values, _ = svds(csr_array(diags_array(roots) @ units), count, rng=np.random.default_rng(seed))
    order = np.argsort(-values)[1:]  # the first one is trivial: equal for all vertices
    return 1 - values[order] ** 2, roots[:, None] * left[:, order]


def solve_consensus(first: Matrix, second: Matrix, dim: int) -> Matrix:
    """Return the `dim` combinations of the columns of both embeddings with the highest correlation between them."""
    both = np.hstack([first, second])
    scale = _invert(np.linalg.norm(both, axis=0))
    both *= scale
    gram = both.T @ both
    middle = first.shape[1]
    own = block_diag(gram[:middle, :middle], gram[middle:, middle:])
    own += 1e-9 * np.eye(len(own))  # columns may be zero if the graph has few eigenvectors
    _, combinations = eigh(gram, own)
    best: Matrix = scale[:, None] * combinations[:, ::-1][:, :dim]
    return best


def _invert(values: Matrix) -> Matrix:
    """Return inverse values, zero for zero."""
    return np.divide(1.0, values, np.zeros_like(values, np.float64), where=values > 0)
