"""Chebyshev filter and Rayleigh–Ritz procedure on a block of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtri

from ripplevec.views.operators import Operator

RANK_TOLERANCE = 1e-9  # squared lengths below this share of the largest count as rank deficiency
CHOLESKY_TOLERANCE = 1e-6  # above this, columns are independent enough to orthonormalize by Cholesky alone


def apply_chebyshev_filter(operator: Operator, block: NDArray[Any], low: float, high: float, degree: int) -> None:
    """Apply to a block, in place, the Chebyshev polynomial of W that is small on [low, high] and grows above it.

    Columns are independent; processing a few at a time bounds the workspace.
    """
    half, middle = (high - low) / 2, (high + low) / 2
    workspace = operator.allocate_workspace(block)
    for part in operator.column_chunks(block):
        columns = block[:, part]
        previous, current = columns, workspace[:, : columns.shape[1]]
        operator.combine(previous, current, (1 / half, -middle / half, 0.0))
        for _ in range(degree - 1):
            operator.combine(current, previous, (2 / half, -2 * middle / half, -1.0))
            previous, current = current, previous
        if current is not columns:
            columns[:] = current


def rayleigh_ritz(operator: Operator, block: NDArray[Any]) -> NDArray[np.float64]:
    """Return the Ritz values of W on the span of a block, largest first; replace the block by the Ritz vectors.

    Beyond the rank of the block, values and vectors are zero.
    """
    columns = block.shape[1]
    whitening = _whitening_matrix(operator.gram(block, block))
    projected = whitening.T @ _project_operator(operator, block) @ whitening
    values, vectors = np.linalg.eigh((projected + projected.T) / 2)
    values, vectors = values[::-1], whitening @ vectors[:, ::-1]
    transform = np.zeros((columns, columns))
    transform[:, : values.size] = fix_signs(vectors)
    operator.transform_columns(block, transform)
    return np.concatenate([values, np.zeros(columns - values.size)])


def _project_operator(operator: Operator, block: NDArray[Any]) -> NDArray[np.float64]:
    """Return the inner products of a block with W times the block; one triangle is computed, the other mirrored."""
    products, workspace = np.zeros((block.shape[1], block.shape[1])), operator.allocate_workspace(block)
    for part in operator.column_chunks(block):
        applied = workspace[:, : part.stop - part.start]
        operator.combine(block[:, part], applied, (1.0, 0.0, 0.0))
        products[: part.stop, part] = operator.gram(block[:, : part.stop], applied)
        products[part, : part.start] = products[: part.start, part].T
    return products


def _whitening_matrix(gram: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the matrix that orthonormalizes a block with this Gram matrix; its column count is the block's rank."""
    scale = 1 / np.sqrt(np.maximum(np.diag(gram), 1e-300))
    cosines = gram * np.outer(scale, scale)
    try:
        lower = np.linalg.cholesky(cosines)
        if np.square(np.diag(lower)).min() > CHOLESKY_TOLERANCE:
            return scale[:, None] * dtrtri(lower, lower=True)[0].T
    except np.linalg.LinAlgError:
        pass
    lengths, directions = np.linalg.eigh(cosines)
    kept = lengths > RANK_TOLERANCE * max(lengths[-1], 1e-300)
    return scale[:, None] * directions[:, kept] / np.sqrt(lengths[kept])


def fix_signs(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Flip columns so that the entry of largest magnitude is positive; the sign of an eigenvector is arbitrary."""
    if not vectors.size:
        return vectors
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return vectors * np.where(largest < 0, -1.0, 1.0)
