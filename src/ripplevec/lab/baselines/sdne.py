"""SDNE (Wang et al., 2016): a deep autoencoder of the rows of the adjacency matrix, which keeps neighbors close."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.lab.baselines.base import as_weight_matrix, check_settings, linked_part
from ripplevec.lab.baselines.torch_training import import_torch, minimize


@dataclass(frozen=True, slots=True, kw_only=True)
class SDNE:
    """SDNE: encoder and decoder of two layers with sigmoids, trained on batches of rows.

    The loss of a row is its squared reconstruction error, in which edges count `edge_weight` squared times as much (the
    paper's β). `first_order` (α) weighs the squared distances of the neighbors in a batch. Adam replaces the stochastic
    gradient descent and the pretraining by a deep belief network of the paper.
    """

    dim: int = 128
    hidden: int = 256
    edge_weight: float = 10.0
    first_order: float = 0.1
    decay: float = 1e-5
    rate: float = 0.01
    epochs: int = 60
    batch: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self)

    def embed(self, graph: csr_array) -> NDArray[np.float32]:
        """Train the autoencoder; return a code per row, zero for vertices without edges."""
        matrix = as_weight_matrix(graph)
        vectors = np.zeros((matrix.shape[0], self.dim), np.float32)
        linked, matrix = linked_part(matrix)
        if linked.size:
            matrix.data /= matrix.data.max()
            vectors[linked] = self.train(csr_array(matrix, dtype=np.float32))
        return vectors

    def train(self, matrix: csr_array) -> NDArray[np.float32]:
        """Return the codes of the rows of a matrix with weights up to 1."""
        torch = import_torch(self, self.seed)
        size, hidden = matrix.shape[0], min(self.hidden, matrix.shape[0])
        encoder = _build_layers(torch, size, hidden, self.dim)
        decoder = _build_layers(torch, self.dim, hidden, size)
        parameters = [*encoder.parameters(), *decoder.parameters()]
        minimize(torch, parameters, self.rate, self._losses(torch, encoder, decoder, matrix), self.decay)
        with torch.no_grad():
            codes = [encoder(torch.from_numpy(matrix[rows].toarray())).numpy() for rows in self._split(np.arange(size))]
        return np.concatenate(codes)

    def _losses(self, torch: Any, encoder: Any, decoder: Any, matrix: csr_array) -> Iterator[Callable[[], Any]]:
        """Yield the loss of every batch of every epoch."""
        generator = np.random.default_rng(self.seed)
        for _ in range(self.epochs):
            for rows in self._split(generator.permutation(matrix.shape[0])):
                part = matrix[rows]
                target, inside = (torch.from_numpy(block.toarray()) for block in (part, part[:, rows]))

                def compute(target: Any = target, inside: Any = inside) -> Any:
                    codes = encoder(target)
                    weights = 1 + (self.edge_weight - 1) * (target > 0)
                    error = ((decoder(codes) - target) * weights).square().sum()
                    distances = (inside * torch.cdist(codes, codes).square()).sum()
                    return (error + self.first_order * distances) / len(target)

                yield compute

    def _split(self, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        return np.array_split(rows, -(-len(rows) // self.batch))


def _build_layers(torch: Any, inputs: int, hidden: int, outputs: int) -> Any:
    layers = torch.nn
    return layers.Sequential(
        layers.Linear(inputs, hidden), layers.Sigmoid(), layers.Linear(hidden, outputs), layers.Sigmoid()
    )
