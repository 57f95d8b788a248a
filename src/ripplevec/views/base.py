"""The protocol that every view implements, and the result of embedding a graph with one view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import InvalidValueError
from ripplevec.graph.adjacency import Totals
from ripplevec.views.operators import AdjacencyLike

MIN_EIGENVALUE = 1e-5  # smaller eigenvalues are rounding errors, which a refresh would amplify by dividing by them

Progress = Callable[[str, float], None]
"""Callback of long computations: called with the name of the step and the completed fraction (0 to 1)."""


@dataclass(frozen=True, slots=True)
class Basis:
    """A view's embedding of one graph: rows in eigen-coordinates, and the coefficients of a refresh."""

    rows: NDArray[np.floating]  # (rows of the graph, columns of the view); zero for vertices without edges
    mu: NDArray[np.float64]  # eigenvalue per column
    tau: float  # regularization τ of the operator
    center: NDArray[np.float64]  # c = (1/n) Σ d x per column
    longest: float  # length of the longest row; not finite if an entry is not
    lowest: float  # lower bound of the operator's spectrum


class View(Protocol):
    """One kind of embedding of the graph, which owns some columns of every vector."""

    @property
    def share(self) -> float:
        """Share of the columns, relative to the shares of the other views."""

    @property
    def weight(self) -> float:
        """Weight of its part in the served vector."""

    @property
    def flatten(self) -> float:
        """How far the lengths of served parts are equalized: part / |part|^flatten."""

    @property
    def ridge(self) -> float:
        """Ridge ρ of the local step: the larger, the less a refresh from few neighbors divides by the eigenvalues."""

    @property
    def degree(self) -> int:
        """Degree of the filter of an anchor."""

    def regularization(self, totals: Totals) -> float:
        """Return τ for a graph with these totals, in the unit of its weights."""

    def column_lengths(self, mu: NDArray[np.float64], mean_degree: float) -> NDArray[np.float64]:
        """Return the relative lengths of columns with these eigenvalues; 0 for a negligible eigenvalue."""

    def start(
        self, adjacency: AdjacencyLike, rows: int, columns: int, *, threads: int, progress: Progress | None
    ) -> Basis:
        """Embed a graph from scratch."""

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
        """Correct an embedding of an earlier state of the graph.

        `block` is a copy of the current rows and is overwritten by the result; `mu` are the eigenvalues of its columns.
        To start from the rows of other views, pass all of their columns and `mu=None`. `columns` is the number of
        columns of the result; by default it does not change.
        """

    def captured_spectrum(self, adjacency: AdjacencyLike, rows: NDArray[np.floating], *, threads: int) -> float:
        """Return how much of the spectrum these rows capture: the sum of their Ritz values."""

    def attainable_spectrum(self, adjacency: AdjacencyLike, rows: int, columns: int, *, threads: int) -> float:
        """Return the largest sum that this number of columns can capture."""


def allocate_columns(dim: int, views: Sequence[View]) -> list[int]:
    """Allocate columns to views in proportion to their shares, at least one each if there are enough."""
    if not views:
        raise InvalidValueError.of("views", "at least one view", views)
    total = sum(view.share for view in views)
    exact = [dim * view.share / total for view in views]
    minimum = 1 if dim >= len(views) else 0
    columns = [max(minimum, int(share)) for share in exact]
    while sum(columns) < dim:
        columns[int(np.argmax([share - allocated for share, allocated in zip(exact, columns, strict=True)]))] += 1
    while sum(columns) > dim:
        columns[int(np.argmax(columns))] -= 1
    return columns
