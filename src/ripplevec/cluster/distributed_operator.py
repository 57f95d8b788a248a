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
    from ripplevec.cluster.distributed_matrix import Ground

Block = Any
"""A `Sheet`, where other operators have an array."""


class ClusterOperator(Operator):
    """W for the graph of all shards and one τ; blocks are sheets."""

    def __init__(self, ground: Ground, tau: float) -> None:
        totals = ground.totals()
        self.ground, self.tau, self.rows = ground, tau, ground.rows
        self.size, self.strength = totals.active, totals.strength
        self.degree = totals.ends / max(self.size, 1)
        ground.ask("operate", tau=tau)

    def spare(self, block: Block) -> Block:
        """Zeros beside a block, as wide as its widest part."""
        return self.ground.zeros(self.parts(block)[0].stop, block.dtype)

    def combine(self, source: Block, target: Block, factors: tuple[float, float, float]) -> None:
        """target ← f₀ · W source + f₁ · source + f₂ · target."""
        crew, pieces = self.ground.crew, {"source": source.piece, "target": target.piece}
        lent = self.ground.ask("lend", source=source.piece, parts=crew.size + 1)
        center = sum(crew.get([parts[-1] for parts in lent])) / max(self.size, 1)
        self.ground.ask("combine", *(parts[:-1] for parts in lent), **pieces, center=center, factors=factors)

    def step(self, source: Block) -> Block:
        """W source."""
        target = self.ground.zeros(source.shape[1], source.dtype)
        self.combine(source, target, (1.0, 0.0, 0.0))
        return target

    def weighted(self, source: Block, tau: float) -> NDArray[np.float64]:
        """Σ (d+τ) x, per column, with a τ that need not be the operator's own."""
        return self.ground.add_up("weighted", source=source.piece, tau=tau)

    def deflate(self, target: Block) -> None:
        """Take the trivial eigenvector (the constant) out, in place."""
        mass = self.strength + self.size * self.tau
        self.subtract(target, self.weighted(target, self.tau) / max(mass, 1e-300))

    def subtract(self, target: Block, value: NDArray[np.float64]) -> None:
        """Take one value per column off every row that has edges, in place."""
        self.ground.ask("subtract", target=target.piece, value=value)

    def clear(self, target: Block) -> None:
        """Make the rows without edges zero, in place, and rows that no step of this package can have made."""
        self.ground.ask("clear", target=target.piece)

    def scale(self, target: Block, factors: NDArray[np.float64], how: np.ufunc = np.multiply) -> None:
        """Multiply (or divide) every column by its factor, in place."""
        self.ground.ask("scale", target=target.piece, factors=factors, how=how)

    def gram(self, left: Block, right: Block) -> NDArray[np.float64]:
        """Σ (d+τ) left rightᵀ, k×k in float64."""
        return self.ground.add_up("gram", left=left.piece, right=right.piece)

    def squared_lengths(self, source: Block) -> NDArray[np.float64]:
        """Σ (d+τ) x², per column."""
        return self.ground.add_up("squared_lengths", source=source.piece)

    def squares(self, source: Block) -> NDArray[np.float64]:
        """Σ x², per column."""
        return self.ground.add_up("squares", source=source.piece)

    def longest(self, source: Block) -> float:
        """The length of the longest row; NaN where an entry is."""
        return float(np.max(self.ground.crew.get(self.ground.ask("longest", source=source.piece))))

    def turn(self, target: Block, turn: NDArray[np.float64]) -> None:
        """target ← target · turn, in place."""
        self.ground.ask("turn", target=target.piece, turn=turn)

    def noise(self, seed: int, columns: int, kind: Any) -> Block:
        """Columns that no graph has seen: the same for the same seed, for any number of shards."""
        target = self.ground.zeros(columns, kind)
        self.ground.ask("noise", target=target.piece, seed=seed)
        return target

    def ends(self) -> tuple[float, float]:
        """Bounds of the spectrum without the trivial value, from a few steps of Lanczos.

        Those of `Operator.ends`, in the inner product Σ (d+τ) x x' and so without roots. The last column of the basis
        is made a right angle to the others by a turn, which leaves those as they are.
        """
        if self.size < LANCZOS_STEPS + 2:
            return -1.0, 1.0
        basis: Block = self.ground.zeros(LANCZOS_STEPS + 1, np.float64)
        first = basis[:, :1]
        first[:] = self.noise(0, 1, np.float64)
        self.ground.ask("straighten", target=first.piece)
        self.deflate(first)
        diagonal, off, beta = list[float](), list[float](), float(self.lengths(first)[0])
        for step in range(LANCZOS_STEPS):
            now, after = basis[:, step : step + 1], basis[:, step + 1 : step + 2]
            self.scale(now, np.array([beta]), np.divide)
            self.combine(now, after, (1.0, 0.0, 0.0))
            shares = self.gram(basis[:, : step + 1], after)[:, 0]
            diagonal.append(float(shares[-1]))
            turn = np.eye(step + 2)
            turn[:-1, -1] = -shares
            self.turn(basis[:, : step + 2], turn)
            beta = float(self.lengths(after)[0])
            if beta < 1e-12:
                break
            off.append(beta)
        return bounds(diagonal, off, beta)
