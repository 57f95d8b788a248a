"""GraphSAGE (Hamilton et al., 2017), unsupervised: vertices that share a short walk get similar aggregates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from ripplevec.errors import InvalidValueError
from ripplevec.influence._kernels import draw_key
from ripplevec.lab.baselines import _sampling_kernels as kernels
from ripplevec.lab.baselines.base import as_weight_matrix, check_settings
from ripplevec.lab.baselines.torch_training import as_sparse_tensor, import_torch, minimize

PAIRS_PER_STEP = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSAGE:
    """GraphSAGE with two layers of the mean aggregator, trained on pairs from walks with negative samples.

    A layer maps the row of a vertex and the mean of its neighbors' rows. All neighbors are used: that is the limit of
    large samples. Without attributes the input is a trainable row per vertex, as in the authors' program
    (`identity_dim`).
    """

    dim: int = 128
    walks: int = 10
    length: int = 5
    negatives: int = 5
    rate: float = 0.01
    steps: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self)

    def embed(self, graph: csr_array, attributes: csr_array | None = None) -> NDArray[np.float32]:
        """Train on the graph; return a vector of length one per row, zero for vertices without edges."""
        matrix = as_weight_matrix(graph)
        if attributes is not None and attributes.shape[0] != matrix.shape[0]:
            raise InvalidValueError.of("attributes", f"{matrix.shape[0]:,} rows", f"{attributes.shape[0]:,}")
        linked = np.diff(matrix.indptr) > 0
        if not linked.any():
            return np.zeros((matrix.shape[0], self.dim), np.float32)
        vectors = self._train(matrix, linked, attributes)
        return np.where(linked[:, None], vectors, np.float32(0))

    def _train(self, matrix: csr_array, linked: NDArray[np.bool_], attributes: csr_array | None) -> NDArray[np.float32]:
        torch = import_torch(self, self.seed)
        strength = np.asarray(matrix.sum(axis=1)).ravel()
        means = as_sparse_tensor(torch, diags_array(1 / np.where(linked, strength, 1.0)) @ matrix)
        inputs = matrix.shape[0] if attributes is None else attributes.shape[1]
        table = torch.nn.Embedding(inputs, self.dim)  # rows of vertices, or the first map of attributes
        torch.nn.init.normal_(table.weight, std=self.dim**-0.5)
        layers = [torch.nn.Linear(2 * self.dim, self.dim) for _ in range(2)]
        features = None if attributes is None else as_sparse_tensor(torch, csr_array(attributes))

        def compute_vectors() -> Any:
            rows = table.weight if features is None else torch.sparse.mm(features, table.weight)
            for position, layer in enumerate(layers):
                rows = layer(torch.cat([rows, torch.sparse.mm(means, rows)], dim=1))
                rows = torch.relu(rows) if position == 0 else rows
            return torch.nn.functional.normalize(rows)

        parameters = [*table.parameters(), *(part for layer in layers for part in layer.parameters())]
        minimize(torch, parameters, self.rate, self._losses(torch, matrix, linked, compute_vectors))
        with torch.no_grad():
            vectors: NDArray[np.float32] = compute_vectors().numpy()
        return vectors

    def _losses(
        self, torch: Any, matrix: csr_array, linked: NDArray[np.bool_], compute_vectors: Callable[[], Any]
    ) -> Iterator[Callable[[], Any]]:
        """Yield the loss of every step: walk pairs should be similar, pairs with noise vertices should not."""
        generator = np.random.default_rng(self.seed)
        walks, strength = self._generate_walks(matrix, np.flatnonzero(linked)), np.asarray(matrix.sum(axis=1)).ravel()
        noise = strength**0.75 / (strength**0.75).sum()
        for _ in range(self.steps):
            chosen = walks[generator.integers(len(walks), size=PAIRS_PER_STEP)]
            others = chosen[np.arange(len(chosen)), generator.integers(1, self.length + 1, size=len(chosen))]
            negatives = generator.choice(len(noise), (len(chosen), self.negatives), p=noise)
            sources, targets, apart = map(torch.from_numpy, (chosen[:, 0], others, negatives))

            def compute(sources: Any = sources, targets: Any = targets, apart: Any = apart) -> Any:
                vectors = compute_vectors()
                own = vectors[sources]
                near = (own * vectors[targets]).sum(1)
                far = (own[:, None] * vectors[apart]).sum(2)
                softplus = torch.nn.functional.softplus
                return softplus(-near).mean() + softplus(far).sum(1).mean()

            yield compute

    def _generate_walks(self, matrix: csr_array, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return walks from every linked vertex; each has its start and `length` further vertices."""
        graph = kernels.build_walk_graph(matrix)
        walks = np.empty((self.walks, len(starts), self.length + 1), np.int64)
        for round_number, rows in enumerate(walks):
            kernels.walk_by_weight(*graph, starts, draw_key(self.seed, 0, round_number), rows)
        return walks.reshape(-1, self.length + 1)
