"""A map of vectors: a scatter plot of their two principal components, drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import MissingExtraError


def project(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the two principal components of vectors, the second one zero if there is only one."""
    centered = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64) if len(vectors) else vectors
    _, axes = np.linalg.eigh(centered.T @ centered)
    points = centered @ axes[:, ::-1][:, :2]
    return np.pad(points, ((0, 0), (0, 2 - points.shape[1])))


def draw_map(vectors: NDArray[np.float32], labels: Sequence[Any], ax: Any = None) -> Any:
    """Draw one point per vector, colored by label, and a legend; return the axes."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingExtraError("Embedder.plot", "demo") from error
    if ax is None:
        _, ax = pyplot.subplots()
    points = project(vectors)
    groups: dict[Any, list[int]] = {}
    for row, label in enumerate(labels):
        groups.setdefault(label, []).append(row)
    for label, rows in groups.items():
        color = {"color": "gray"} if label is None and len(groups) > 1 else {}
        ax.scatter(*points[rows].T, s=8, label=None if label is None else str(label), **color)
    if any(label is not None for label in groups):
        ax.legend()
    ax.set_axis_off()
    return ax
