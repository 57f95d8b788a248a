"""Exact spectral embedding: eigenvectors of the symmetric normalized Laplacian, with nothing added to the degrees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.lab.baselines.base import check_settings, growing
from ripplevec.views.laplacian import laplacian_vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Spectral:
    """Eigenvectors of I − D^-½ A D^-½ for the smallest eigenvalues but the trivial one: FᵀF = I.

    The start of rule `paper`, of the whole graph. Weights count in single precision, self-loops not at all.
    """

    dim: int = 128
    seed: int = 0  # every baseline has one; nothing here is random

    def __post_init__(self) -> None:
        check_settings(self)

    def embed(self, graph: csr_array) -> NDArray[np.float32]:
        """Decompose; vertices without edges have zero vectors."""
        return laplacian_vectors(growing(graph), graph.shape[0], self.dim, "symmetric").astype(np.float32)
