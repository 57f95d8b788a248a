"""Subspaces of a view's operator: filtering a block of columns, and the eigenpairs it holds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from ripplet.views.operators import Operator

NEGLIGIBLE = 1e-9  # directions of a block shorter than this, squared and relative to the longest, are rounding


def chebyshev(operator: Operator, block: NDArray[Any], low: float, high: float, degree: int) -> NDArray[Any]:
    """The Chebyshev polynomial of W that stays small on [low, high] and grows beyond it, applied to a block."""
    half, middle = (high - low) / 2, (high + low) / 2
    before, now = block, np.zeros_like(block)
    operator.combine(before, now, (1 / half, -middle / half, 0.0))
    for _ in range(degree - 1):
        operator.combine(now, before, (2 / half, -2 * middle / half, -1.0))
        before, now = now, before
    return now


def rayleigh_ritz(operator: Operator, block: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """The Ritz values of W on a block, largest first; the block becomes the Ritz vectors, zero beyond its rank."""
    columns = block.shape[1]
    gram = operator.gram(block, block)
    scale = 1 / np.sqrt(np.maximum(np.diag(gram), 1e-300))
    lengths, directions = eigh(gram * np.outer(scale, scale))
    kept = lengths > NEGLIGIBLE * max(lengths[-1], 1e-300)
    whiten = scale[:, None] * directions[:, kept] / np.sqrt(lengths[kept])
    small = whiten.T @ operator.gram(block, operator.step(block)) @ whiten
    values, turns = eigh((small + small.T) / 2)
    values, turns = values[::-1], whiten @ turns[:, ::-1]
    turn = np.zeros((columns, columns))
    turn[:, : values.size] = fixed_signs(turns)
    operator.turn(block, turn)
    return np.concatenate([values, np.zeros(columns - values.size)]), block


def fixed_signs(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns turned so that the entry of largest magnitude is positive: eigenvectors have no sign of their own."""
    if not vectors.size:
        return vectors
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return vectors * np.where(largest < 0, -1.0, 1.0)
