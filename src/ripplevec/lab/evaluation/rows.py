"""Vectors as the measures see them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def unit_rows(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """Every row with length one; zero rows, of vertices nothing is known about, stay zero."""
    rows = np.asarray(vectors, np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)
