"""Subspaces of a view's operator: filtering a block of columns, and the eigenpairs it holds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtri

from ripplevec.views.operators import Operator

NEGLIGIBLE = 1e-9  # directions of a block shorter than this, squared and relative to the longest, are rounding
INDEPENDENT = 1e-6  # and where none is shorter than this, the columns need no eigenvectors to be made orthonormal


def apply_chebyshev_filter(operator: Operator, block: NDArray[Any], low: float, high: float, degree: int) -> None:
    """Apply the Chebyshev polynomial of W that stays small on [low, high] and grows beyond it to a block, in place.

    A column needs none of the others, so that a few at a time need little memory beside the block.
    """
    half, middle = (high - low) / 2, (high + low) / 2
    spare = operator.allocate_workspace(block)
    for part in operator.column_chunks(block):
        own = block[:, part]
        before, now = own, spare[:, : own.shape[1]]
        operator.combine(before, now, (1 / half, -middle / half, 0.0))
        for _ in range(degree - 1):
            operator.combine(now, before, (2 / half, -2 * middle / half, -1.0))
            before, now = now, before
        if now is not own:
            own[:] = now


def rayleigh_ritz(operator: Operator, block: NDArray[Any]) -> NDArray[np.float64]:
    """The Ritz values of W on a block, largest first; the block becomes the Ritz vectors, zero beyond its rank."""
    columns = block.shape[1]
    whiten = _whitening(operator.gram(block, block))
    small = whiten.T @ _quotients(operator, block) @ whiten
    values, turns = np.linalg.eigh((small + small.T) / 2)
    values, turns = values[::-1], whiten @ turns[:, ::-1]
    turn = np.zeros((columns, columns))
    turn[:, : values.size] = fix_signs(turns)
    operator.transform_columns(block, turn)
    return np.concatenate([values, np.zeros(columns - values.size)])


def _quotients(operator: Operator, block: NDArray[Any]) -> NDArray[np.float64]:
    """The inner products of a block with W times itself: those with later columns are known from earlier ones."""
    products, spare = np.zeros((block.shape[1], block.shape[1])), operator.allocate_workspace(block)
    for part in operator.column_chunks(block):
        step = spare[:, : part.stop - part.start]
        operator.combine(block[:, part], step, (1.0, 0.0, 0.0))
        products[: part.stop, part] = operator.gram(block[:, : part.stop], step)
        products[part, : part.start] = products[: part.start, part].T
    return products


def _whitening(gram: NDArray[np.float64]) -> NDArray[np.float64]:
    """What makes a block with these inner products orthonormal; fewer columns where some depend on the others."""
    scale = 1 / np.sqrt(np.maximum(np.diag(gram), 1e-300))
    cosines = gram * np.outer(scale, scale)
    try:
        lower = np.linalg.cholesky(cosines)
        if np.square(np.diag(lower)).min() > INDEPENDENT:
            return scale[:, None] * dtrtri(lower, lower=True)[0].T
    except np.linalg.LinAlgError:
        pass
    lengths, directions = np.linalg.eigh(cosines)
    kept = lengths > NEGLIGIBLE * max(lengths[-1], 1e-300)
    return scale[:, None] * directions[:, kept] / np.sqrt(lengths[kept])


def fix_signs(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns turned so that the entry of largest magnitude is positive: eigenvectors have no sign of their own."""
    if not vectors.size:
        return vectors
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return vectors * np.where(largest < 0, -1.0, 1.0)
