"""The operator of a view for matrices on shards: the steps of `views/operators.py`, with equal results up to rounding.

All shards perform each step on their own rows. A step that depends on all rows needs only a few numbers per column,
which the driver sums; rows of remote neighbors go directly from shard to shard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.views.operators import LANCZOS_STEPS, Operator, lanczos_bounds

if TYPE_CHECKING:
    from ripplevec.cluster.distributed_matrix import DistributedGraph

Block = Any
"""A `MatrixHandle`, where other operators have an array."""


class DistributedOperator(Operator):
    """The operator W for the graph of all shards and one τ; blocks are matrix handles."""

    def __init__(self, graph: DistributedGraph, tau: float) -> None:
        totals = graph.totals()
        self.graph, self.tau, self.rows = graph, tau, graph.rows
        self.active_count, self.total_strength = totals.active, totals.strength
        self.mean_degree = totals.endpoints / max(self.active_count, 1)
        graph.submit_step("set_operator", tau=tau)

    def allocate_workspace(self, block: Block) -> Block:
        """Return zeros as wide as the widest column chunk of a block."""
        return self.graph.zeros(self.column_chunks(block)[0].stop, block.dtype)

    def combine(self, source: Block, target: Block, factors: tuple[float, float, float]) -> None:
        """Compute target ← f₀ · W source + f₁ · source + f₂ · target."""
        transport, columns = self.graph.transport, {"source": source.columns, "target": target.columns}
        lent = self.graph.submit_step("lend_rows", source=source.columns, parts=transport.size + 1)
        center = sum(transport.get([parts[-1] for parts in lent])) / max(self.active_count, 1)
        self.graph.submit_step("combine", *(parts[:-1] for parts in lent), **columns, center=center, factors=factors)

    def apply(self, source: Block) -> Block:
        """Return W source."""
        target = self.graph.zeros(source.shape[1], source.dtype)
        self.combine(source, target, (1.0, 0.0, 0.0))
        return target

    def sum_weighted(self, source: Block, tau: float) -> NDArray[np.float64]:
        """Return Σ (d+τ) x per column; τ may differ from that of the operator."""
        return self.graph.sum_over_shards("sum_weighted", source=source.columns, tau=tau)

    def deflate(self, target: Block) -> None:
        """Remove the trivial eigenvector (the constant), in place."""
        mass = self.total_strength + self.active_count * self.tau
        self.subtract_from_rows(target, self.sum_weighted(target, self.tau) / max(mass, 1e-300))

    def subtract_from_rows(self, target: Block, value: NDArray[np.float64]) -> None:
        """Subtract one value per column from every row that has edges, in place."""
        self.graph.submit_step("subtract", target=target.columns, value=value)

    def clear_unusable_rows(self, target: Block) -> None:
        """Zero the rows without edges, and rows with an entry that is not finite or is too large, in place."""
        self.graph.submit_step("clear", target=target.columns)

    def scale_columns(self, target: Block, factors: NDArray[np.float64], how: np.ufunc = np.multiply) -> None:
        """Multiply (or divide) every column by its factor, in place."""
        self.graph.submit_step("scale", target=target.columns, factors=factors, how=how)

    def gram(self, left: Block, right: Block) -> NDArray[np.float64]:
        """Return Σ (d+τ) left rightᵀ, k×k in float64."""
        return self.graph.sum_over_shards("gram", left=left.columns, right=right.columns)

    def squared_column_norms(self, source: Block) -> NDArray[np.float64]:
        """Return Σ (d+τ) x² per column."""
        return self.graph.sum_over_shards("squared_norms", source=source.columns)

    def column_square_sums(self, source: Block) -> NDArray[np.float64]:
        """Return Σ x² per column."""
        return self.graph.sum_over_shards("square_sums", source=source.columns)

    def max_row_length(self, source: Block) -> float:
        """Return the length of the longest row; NaN if an entry is NaN."""
        lengths = self.graph.submit_step("max_row_length", source=source.columns)
        return float(np.max(self.graph.transport.get(lengths)))

    def transform_columns(self, target: Block, matrix: NDArray[np.float64]) -> None:
        """Compute target ← target · matrix, in place."""
        self.graph.submit_step("transform", target=target.columns, matrix=matrix)

    def make_noise(self, seed: int, columns: int, kind: Any) -> Block:
        """Return pseudorandom columns that depend on the seed and the vertex, not on the number of shards."""
        target = self.graph.zeros(columns, kind)
        self.graph.submit_step("fill_noise", target=target.columns, seed=seed)
        return target

    def spectrum_bounds(self) -> tuple[float, float]:
        """Bound the spectrum without the trivial eigenvalue, by a few Lanczos steps.

        The bounds are those of `Operator.spectrum_bounds`, computed in the inner product Σ (d+τ) x x', which needs no
        square roots. A column transformation makes the last basis column orthogonal to the others, which it leaves
        unchanged.
        """
        if self.active_count < LANCZOS_STEPS + 2:
            return -1.0, 1.0
        basis: Block = self.graph.zeros(LANCZOS_STEPS + 1, np.float64)
        first = basis[:, :1]
        first[:] = self.make_noise(0, 1, np.float64)
        self.graph.submit_step("unscale", target=first.columns)
        self.deflate(first)
        diagonal, off_diagonal, beta = list[float](), list[float](), float(self.column_norms(first)[0])
        for step in range(LANCZOS_STEPS):
            current, following = basis[:, step : step + 1], basis[:, step + 1 : step + 2]
            self.scale_columns(current, np.array([beta]), np.divide)
            self.combine(current, following, (1.0, 0.0, 0.0))
            projections = self.gram(basis[:, : step + 1], following)[:, 0]
            diagonal.append(float(projections[-1]))
            orthogonalization = np.eye(step + 2)
            orthogonalization[:-1, -1] = -projections
            self.transform_columns(basis[:, : step + 2], orthogonalization)
            beta = float(self.column_norms(following)[0])
            if beta < 1e-12:
                break
            off_diagonal.append(beta)
        return lanczos_bounds(diagonal, off_diagonal, beta)
