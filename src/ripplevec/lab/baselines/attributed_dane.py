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
        if attributes.shape[0] != matrix.shape[0]:
            raise InvalidValueError.of("attributes", f"{matrix.shape[0]:,} rows", f"{attributes.shape[0]:,}")
        adjacency = build_adjacency(matrix)
        of_edges = laplacian_vectors(adjacency, matrix.shape[0], self.dim, "random-walk", components="separate")
        of_attributes = embed_cosines(csr_array(attributes), self.dim, self.seed)
        return find_consensus(of_edges, of_attributes, self.dim).astype(np.float32)


def embed_cosines(attributes: csr_array, dim: int, seed: int) -> Matrix:
    """Return the leading non-trivial eigenvectors of the graph whose weights are the cosines of rows."""
    lengths = np.sqrt(np.asarray(attributes.multiply(attributes).sum(axis=1)).ravel())
    units = diags_array(_invert(lengths)) @ attributes
    strength = np.asarray(units @ np.asarray(units.sum(axis=0)).ravel()).ravel()
    roots = _invert(np.sqrt(strength))
    count = min(dim + 1, *(size - 1 for size in units.shape))
    left, values, _ = svds(csr_array(diags_array(roots) @ units), count, rng=np.random.default_rng(seed))
    order = np.argsort(-values)[1:]  # the first one is trivial: equal for all vertices
    vectors: Matrix = roots[:, None] * left[:, order]
    return vectors


def find_consensus(first: Matrix, second: Matrix, dim: int) -> Matrix:
    """Return the `dim` combinations of both embeddings with the highest correlation between them."""
    both = np.hstack([_scale_columns(first), _scale_columns(second)])
    gram = both.T @ both
    middle = first.shape[1]
    own = block_diag(gram[:middle, :middle], gram[middle:, middle:])
    own += 1e-9 * np.eye(len(own))  # columns may be zero if the graph has few eigenvectors
    _, combinations = eigh(gram, own)
    consensus: Matrix = both @ combinations[:, ::-1][:, :dim]
    return consensus


def _scale_columns(vectors: Matrix) -> Matrix:
    return vectors * _invert(np.linalg.norm(vectors, axis=0))


def _invert(values: Matrix) -> Matrix:
    """Return inverse values, zero for zero."""
    return np.divide(1.0, values, np.zeros_like(values, np.float64), where=values > 0)
