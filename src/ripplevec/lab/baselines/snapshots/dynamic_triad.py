"""DynamicTriad (Zhou et al., 2018): neighbors are close, and open triads that are about to close are recognized."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.lab.baselines.base import as_weight_matrix, check_settings
from ripplevec.lab.baselines.snapshots.base import extend_matrix
from ripplevec.lab.baselines.torch_training import import_torch, minimize

MARGIN = 1.0  # an edge should be this much shorter than a pair without an edge, in squared distance


@dataclass(kw_only=True)
class DynamicTriad:
    """DynamicTriad, snapshot by snapshot: each training begins at the vectors of the last one.

    The loss has three parts: a margin between the squared lengths of edges and of sampled pairs without an edge; the
    logistic loss of the closing of open triads of the last snapshot, weighted by `closure` (β₀); and the squared
    movement since then, weighted by `smoothness` (β₁). The closing of (i, j) with the common neighbor k is predicted
    from |x_k − x_i + x_k − x_j|. The authors train all snapshots together and estimate future closings; here only the
    past is known.
    """

    dim: int = 128
    closure: float = 0.1
    smoothness: float = 0.1
    rate: float = 0.05
    steps: int = 100
    batch: int = 4_096
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self)
        self._before: csr_array | None = None
        self._vectors = np.zeros((0, self.dim), np.float32)
        self._updates = 0

    def update(self, graph: csr_array) -> NDArray[np.float32]:
        """Train on the next snapshot; return a vector per row, zero for vertices without edges."""
        matrix = as_weight_matrix(graph)
        torch = import_torch(self, self.seed + self._updates)
        before = extend_matrix(self._before, matrix.shape[0])
        vectors = np.random.default_rng([self.seed, self._updates]).normal(
            scale=self.dim**-0.5, size=(len(before.indptr) - 1, self.dim)
        )
        vectors[: len(self._vectors)] = self._vectors
        settled = torch.from_numpy((np.diff(before.indptr) > 0).astype(np.float32))
        rows = torch.from_numpy(vectors.astype(np.float32)).requires_grad_()
        weights = torch.zeros(self.dim + 1, requires_grad=True)
        losses = self._losses(torch, matrix, before, rows, weights, settled)
        if matrix.nnz:
            minimize(torch, [rows, weights], self.rate, losses)
        self._vectors, self._before = rows.detach().numpy(), matrix
        self._updates += 1
        return np.where(np.diff(matrix.indptr)[:, None] > 0, self._vectors, np.float32(0))

    def _losses(
        self, torch: Any, matrix: csr_array, before: csr_array, rows: Any, weights: Any, settled: Any
    ) -> Iterator[Callable[[], Any]]:
        """Yield the loss of every step, on sampled edges and triads."""
        generator = np.random.default_rng([self.seed, self._updates, 1])
        edges, origin = matrix.tocoo(), rows.detach().clone()
        for _ in range(self.steps):
            chosen = generator.choice(matrix.nnz, min(self.batch, matrix.nnz), p=matrix.data / matrix.data.sum())
            source, target = edges.row[chosen].astype(np.int64), edges.col[chosen].astype(np.int64)
            apart = generator.integers(matrix.shape[0], size=len(chosen))
            triads, closes = sample_triads(before, matrix, self.batch, generator)
            arrays = map(torch.from_numpy, (source, target, apart, triads, closes))

            def compute(arrays: Any = tuple(arrays)) -> Any:
                source, target, apart, triads, closes = arrays
                near = (rows[source] - rows[target]).square().sum(1)
                far = (rows[source] - rows[apart]).square().sum(1)
                loss = torch.relu(MARGIN + near - far).mean()
                if len(triads):
                    ends, center = rows[triads[:, 0]] + rows[triads[:, 1]], rows[triads[:, 2]]
                    logits = (2 * center - ends).abs() @ weights[1:] + weights[0]
                    loss = loss + self.closure * torch.nn.functional.binary_cross_entropy_with_logits(logits, closes)
                movement = ((rows - origin).square().sum(1) * settled).mean()
                return loss + self.smoothness * movement

            yield compute


def sample_triads(
    before: csr_array, after: csr_array, count: int, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Sample open triads (i, j, common neighbor k) of a snapshot; return them, and whether (i, j) is an edge later."""
    degrees = np.diff(before.indptr)
    if not before.nnz:
        return np.zeros((0, 3), np.int64), np.zeros(0, np.float32)
    centers = generator.choice(len(degrees), count, p=degrees / degrees.sum())
    first, second = (
        before.indices[before.indptr[centers] + (generator.random(count) * degrees[centers]).astype(np.int64)]
        for _ in range(2)
    )
    triads = np.column_stack([first, second, centers]).astype(np.int64)
    triads = triads[first != second]
    triads = triads[~_are_linked(before, triads)]
    return triads, _are_linked(after, triads).astype(np.float32)


def _are_linked(matrix: csr_array, triads: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell for each triad whether its ends are linked."""
    size, entries = matrix.shape[0], matrix.tocoo()
    return np.isin(triads[:, 0] * size + triads[:, 1], entries.row.astype(np.int64) * size + entries.col)
