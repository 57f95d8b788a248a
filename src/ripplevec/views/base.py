"""What every kind of view has in common: its own columns, a start, an anchor, how it is refreshed and served."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import InvalidValueError
from ripplevec.views.operator_factory import AdjacencyLike

MIN_EIGENVALUE = 1e-5  # eigenvalues below this are rounding: a refresh, which divides by them, would blow it up

Progress = Callable[[str, float], None]
"""Called during long work with what is being done and the share done so far (0 to 1)."""


@dataclass(frozen=True, slots=True)
class Basis:
    """A view's embedding of one graph: rows in eigen-coordinates and what a refresh needs beside them."""

    rows: NDArray[np.floating]  # (rows of the graph, columns of the view); zero where a vertex has no edges
    mu: NDArray[np.float64]  # per column: its eigenvalue
    tau: float
    center: NDArray[np.float64]  # per column: (1/n) Σ d x
    longest: float  # the length of the longest row; not finite where an entry is not


class View(Protocol):
    """One way of seeing the graph, with columns of its own in every vector."""

    @property
    def share(self) -> float:
        """Its share of the columns, relative to the other views'."""

    @property
    def weight(self) -> float:
        """Of its part in the served vector."""

    @property
    def flatten(self) -> float:
        """How far the lengths of its parts are evened out there: part / |part|^flatten."""

    @property
    def ridge(self) -> float:
        """ρ: how little a refresh from few neighbors is trusted to undo the smoothing."""

    def start(
        self, adjacency: AdjacencyLike, rows: int, columns: int, *, threads: int, progress: Progress | None
    ) -> Basis:
        """The embedding of a graph from nothing."""

    def anchor(
        self,
        adjacency: AdjacencyLike,
        block: NDArray[np.floating],
        mu: NDArray[np.float64] | None,
        *,
        columns: int | None = None,
        seed: int,
        threads: int,
    ) -> Basis:
        """The embedding of a graph from one of an earlier state of it, with as many columns as asked for, or as before.

        The block, a matrix of its own (see `views/aligned_matrix.py`), is overwritten by the result.
        It may have more columns than that, and be another view's: then its values μ are not known.
        """

    def reached(self, adjacency: AdjacencyLike, rows: NDArray[np.floating], *, threads: int) -> float:
        """How much these rows hold of what the view looks for."""

    def best(self, adjacency: AdjacencyLike, rows: int, columns: int, *, threads: int) -> float:
        """The most that as many columns could hold."""


def allocate_columns(dim: int, views: Sequence[View]) -> list[int]:
    """How many columns each view gets: in proportion to the shares, at least one each while there are enough."""
    if not views:
        raise InvalidValueError.of("views", "at least one view", views)
    total = sum(view.share for view in views)
    exact = [dim * view.share / total for view in views]
    least = 1 if dim >= len(views) else 0
    columns = [max(least, int(share)) for share in exact]
    while sum(columns) < dim:
        columns[int(np.argmax([share - have for share, have in zip(exact, columns, strict=True)]))] += 1
    while sum(columns) > dim:
        columns[int(np.argmax(columns))] -= 1
    return columns
