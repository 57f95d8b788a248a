"""DepthLGP (Ma et al., 2018): vectors of new vertices from a Laplacian Gaussian process and a neural network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.lab.baselines.base import as_weight_matrix
from ripplevec.lab.baselines.streaming.base import GrowingVectors
from ripplevec.lab.baselines.streaming.out_of_sample import OutOfSampleExtension
from ripplevec.lab.baselines.torch_training import import_torch, minimize

Rows = NDArray[np.float32]


@dataclass(kw_only=True)
class DepthLGP(OutOfSampleExtension):
    """DepthLGP on a spectral start, whose vectors stay fixed.

    The latent row of a new vertex is the conditional mean of a Gaussian process with the precision matrix
    I + η L(A) + ζ L(A²), given the rows of all other vertices:

        h = (η Σ x_u + ζ Σ x_w) / (1 + η d + ζ d₂),

    with sums over the neighbors u, and over the ends w of the paths of two edges. Its vector is h + V relu(W h). η, ζ,
    V and W are trained to reproduce the vectors of the start, each from those of the others. The weights of vertices
    and the second network of the paper are left out.
    """

    hidden: int = 256
    rate: float = 0.01
    steps: int = 200

    def start(self, graph: csr_array) -> None:
        """Compute the start, and train the prediction of its vectors."""
        super().start(graph)
        matrix, rows = as_weight_matrix(graph), self._vectors.rows
        self._scale = np.float32(np.sqrt(max(float(np.square(rows).sum(axis=1).mean()), 1e-12)))
        self._sums = GrowingVectors(matrix @ rows)
        self._degrees = GrowingVectors(np.asarray(matrix.sum(axis=1)).reshape(-1, 1))
        self._train(matrix)

    def preview(self, neighbors: Sequence[int]) -> Rows:
        """Return the prediction for a vertex with these neighbors."""
        chosen = np.asarray(neighbors, np.int64)
        if not chosen.size or not self._vectors.rows[chosen].any():
            return np.zeros(self.dim, np.float32)
        direct, degree = self._vectors.rows[chosen].sum(axis=0), np.float32(chosen.size)
        return self._predict(direct, self._sums.rows[chosen].sum(axis=0), degree, self._degrees.rows[chosen].sum())

    def add_vertex(self, v: int, neighbors: Sequence[int]) -> Rows:
        """Place a vertex, and add its edges to the sums over neighbors; return its vector."""
        row = super().add_vertex(v, neighbors)
        chosen = np.asarray(neighbors, np.int64)
        own = self._sums.rows[v] if v < len(self._sums) else np.zeros(self.dim, np.float32)
        degree = self._degrees.rows[v] if v < len(self._degrees) else np.zeros(1, np.float32)
        self._sums.set_row(v, own + self._vectors.rows[chosen].sum(axis=0))
        self._degrees.set_row(v, degree + chosen.size)
        self._sums.rows[chosen] += row
        self._degrees.rows[chosen] += 1
        return row

    def _predict(self, direct: Rows, indirect: Rows, degree: Any, indirect_degree: Any) -> Rows:
        eta, zeta, inner, outer = self._parameters
        latent = (eta * direct + zeta * indirect) / (1 + eta * degree + zeta * indirect_degree) / self._scale
        predicted: Rows = ((latent + np.maximum(latent @ inner, 0) @ outer) * self._scale).astype(np.float32)
        return predicted

    def _train(self, matrix: csr_array) -> None:
        """Fit η, ζ and the network on the vertices of the start that have neighbors."""
        torch = import_torch(self, self.seed)
        rows, linked = self._vectors.rows / self._scale, np.diff(matrix.indptr) > 0
        strength, squares = np.asarray(matrix.sum(axis=1)), np.asarray(matrix.power(2).sum(axis=1))
        around = matrix @ rows
        paths, ends = matrix @ around - squares[:, None] * rows, matrix @ strength - squares  # without the way back
        direct, indirect, degree, indirect_degree, wanted = (
            torch.from_numpy(np.ascontiguousarray(part[linked], np.float32))
            for part in (around, paths, strength[:, None], ends[:, None], rows)
        )
        logs = torch.tensor([0.0, -3.0], requires_grad=True)  # logarithms of η and ζ
        inner = (torch.randn(self.dim, self.hidden) * self.dim**-0.5).requires_grad_()
        outer = torch.zeros(self.hidden, self.dim, requires_grad=True)

        def compute() -> Any:
            eta, zeta = logs.exp()
            latent = (eta * direct + zeta * indirect) / (1 + eta * degree + zeta * indirect_degree)
            return (latent + torch.relu(latent @ inner) @ outer - wanted).square().sum(1).mean()

        self.losses = minimize(torch, [logs, inner, outer], self.rate, [compute] * self.steps) if linked.any() else []
        eta, zeta = logs.exp().detach().numpy()
        self._parameters = (eta, zeta, inner.detach().numpy(), outer.detach().numpy())
