"""The operator of a view whose matrices lie on shards: the same steps as `views/operators.py`, to rounding.

Every step is taken by all shards on their own rows. What a step needs to know of all rows is a few numbers per column,
which the driver adds up; rows of neighbors on other shards go from shard to shard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.views.operators import LANCZOS_STEPS, Operator, bounds

if TYPE_CHECKING:
    from ripplevec.cluster.distributed_matrix import DistributedGraph

Block = Any
"""A `MatrixHandle`, where other operators have an array."""


class DistributedOperator(Operator):
    """W for the graph of all shards and one τ; blocks are sheets."""

    def __init__(self, workspace: DistributedGraph, tau: float) -> None:
        totals = workspace.totals()
        self.workspace, self.tau, self.rows = workspace, tau, workspace.rows
        self.active_count, self.total_strength = totals.active, totals.strength
        self.mean_degree = totals.endpoints / max(self.active_count, 1)
        workspace.submit_step("operate", tau=tau)

    def allocate_workspace(self, block: Block) -> Block:
        """Zeros beside a block, as wide as its widest part."""
        return self.workspace.zeros(self.column_chunks(block)[0].stop, block.dtype)

    def combine(self, source: Block, target: Block, factors: tuple[float, float, float]) -> None:
        """target ← f₀ · W source + f₁ · source + f₂ · target."""
        transport, pieces = self.workspace.transport, {"source": source.piece, "target": target.piece}
        lent = self.workspace.submit_step("lend", source=source.piece, parts=transport.size + 1)
        center = sum(transport.get([parts[-1] for parts in lent])) / max(self.active_count, 1)
        self.workspace.submit_step("combine", *(parts[:-1] for parts in lent), **pieces, center=center, factors=factors)

    def apply(self, source: Block) -> Block:
        """W source."""
        target = self.workspace.zeros(source.shape[1], source.dtype)
        self.combine(source, target, (1.0, 0.0, 0.0))
        return target

    def sum_weighted(self, source: Block, tau: float) -> NDArray[np.float64]:
        """Σ (d+τ) x, per column, with a τ that need not be the operator's own."""
        return self.workspace.sum_over_shards("weighted", source=source.piece, tau=tau)

    def deflate(self, target: Block) -> None:
        """Take the trivial eigenvector (the constant) out, in place."""
        mass = self.total_strength + self.active_count * self.tau
        self.subtract_from_rows(target, self.sum_weighted(target, self.tau) / max(mass, 1e-300))

    def subtract_from_rows(self, target: Block, value: NDArray[np.float64]) -> None:
        """Take one value per column off every row that has edges, in place."""
        self.workspace.submit_step("subtract", target=target.piece, value=value)

    def clear_unusable_rows(self, target: Block) -> None:
        """Make the rows without edges zero, in place, and rows that no step of this package can have made."""
        self.workspace.submit_step("clear", target=target.piece)

    def scale_columns(self, target: Block, factors: NDArray[np.float64], how: np.ufunc = np.multiply) -> None:
        """Multiply (or divide) every column by its factor, in place."""
        self.workspace.submit_step("scale", target=target.piece, factors=factors, how=how)

    def gram(self, left: Block, right: Block) -> NDArray[np.float64]:
        """Σ (d+τ) left rightᵀ, k×k in float64."""
        return self.workspace.sum_over_shards("gram", left=left.piece, right=right.piece)

    def squared_column_norms(self, source: Block) -> NDArray[np.float64]:
        """Σ (d+τ) x², per column."""
        return self.workspace.sum_over_shards("squared_lengths", source=source.piece)

    def column_square_sums(self, source: Block) -> NDArray[np.float64]:
        """Σ x², per column."""
        return self.workspace.sum_over_shards("squares", source=source.piece)

    def max_row_length(self, source: Block) -> float:
        """The length of the longest row; NaN where an entry is."""
        return float(np.max(self.workspace.transport.get(self.workspace.submit_step("longest", source=source.piece))))

    def transform_columns(self, target: Block, turn: NDArray[np.float64]) -> None:
        """target ← target · turn, in place."""
        self.workspace.submit_step("turn", target=target.piece, turn=turn)

    def make_noise(self, seed: int, columns: int, kind: Any) -> Block:
        """Columns that no graph has seen: the same for the same seed, for any number of shards."""
        target = self.workspace.zeros(columns, kind)
        self.workspace.submit_step("noise", target=target.piece, seed=seed)
        return target

    def spectrum_bounds(self) -> tuple[float, float]:
        """Bounds of the spectrum without the trivial value, from a few steps of Lanczos.

        Those of `Operator.spectrum_bounds`, in the inner product Σ (d+τ) x x' and so without roots. The last column of the basis
        is made a right angle to the others by a turn, which leaves those as they are.
        """
        if self.active_count < LANCZOS_STEPS + 2:
            return -1.0, 1.0
        basis: Block = self.workspace.zeros(LANCZOS_STEPS + 1, np.float64)
        first = basis[:, :1]
        first[:] = self.make_noise(0, 1, np.float64)
        self.workspace.submit_step("straighten", target=first.piece)
        self.deflate(first)
        diagonal, off, beta = list[float](), list[float](), float(self.column_norms(first)[0])
        for step in range(LANCZOS_STEPS):
            now, after = basis[:, step : step + 1], basis[:, step + 1 : step + 2]
            self.scale_columns(now, np.array([beta]), np.divide)
            self.combine(now, after, (1.0, 0.0, 0.0))
            shares = self.gram(basis[:, : step + 1], after)[:, 0]
            diagonal.append(float(shares[-1]))
            turn = np.eye(step + 2)
            turn[:-1, -1] = -shares
            self.transform_columns(basis[:, : step + 2], turn)
            beta = float(self.column_norms(after)[0])
            if beta < 1e-12:
                break
            off.append(beta)
        return bounds(diagonal, off, beta)
