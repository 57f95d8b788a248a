"""The spectral view: leading eigenvectors of the regularized normalized adjacency, scaled by their eigenvalues."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import InvalidValueError, check_choice
from ripplevec.graph.adjacency import Totals
from ripplevec.views.base import MIN_EIGENVALUE, Basis, Progress
from ripplevec.views.large_start import is_large, solve_large
from ripplevec.views.operators import DEVICES, AdjacencyLike, Operator, make_operator
from ripplevec.views.solvers import apply_chebyshev_filter, normalize_columns, rayleigh_ritz, solve_leading_eigenpairs

MAX_EIGENVALUE_RATIO, MAX_POWER = 0.999, 64.0  # bounds for flat spectra, where no reasonable power gives the tail
MIN_TAIL = 1e-3  # lower bound of tail_per_degree · mean degree
REFERENCE_TOLERANCE = 1e-6  # relative change of the eigenvalue sum at which a reference solution has converged
MAX_ANCHOR_PASSES = 4
REPEAT_RATIO = 0.75  # an anchor repeats if its smallest Ritz value falls below this share of the filter's cutoff
OTHER_VIEW_PASSES = 3  # passes when starting from rows of other views; with fewer, the next anchor had work left
MIN_CUTOFF = 1e-4  # lower bound of the cutoff: the damped interval must not reach the wanted end of the spectrum


@dataclass(frozen=True, slots=True, kw_only=True)
class SpectralView:
    """Columns made of leading eigenvectors of the regularized normalized adjacency.

    The columns are eigenvectors y of S = (D+τI)^-½ (A + (τ/n) 11ᵀ) (D+τI)^-½ without the trivial one, with row
    y · (μ/μ₁)^q / √(d+τ) for eigenvalues μ. Give either `tau` or `tau_per_degree`, and at most one of `diffusion`,
    `tail` and `tail_per_degree`, which determine the power q (0 by default).

    Parameters
    ----------
    share : float, default 1.0
        Share of the model's columns, relative to the shares of the other views.
    tau : float, optional
        Regularization τ in units of the mean edge weight. A small τ suits communities in sparse graphs.
    tau_per_degree : float, optional
        Regularization τ in units of the mean weighted degree. Many times the mean degree suits hubs of dense graphs.
    diffusion : float, optional
        The power q itself.
    tail : float, optional
        Length of the last column relative to the first, above 0 and at most 1; q is computed from it at every start
        and anchor. Spectra decay at very different rates, so one tail suits graphs that no single q suits.
    tail_per_degree : float, optional
        The tail per unit of mean degree: the more edges a vertex has, the less of the end of the spectrum is noise.
    weight : float, default 1.0
        Weight of this view's part in the served vector.
    flatten : float, default 0.5
        Exponent that equalizes the lengths of served parts: part / |part|^flatten.
    ridge : float, default 1.0
        Ridge ρ of the local step: the larger, the less a refresh from few neighbors divides by the eigenvalues.
    degree : int, default 6
        Degree of the anchor's Chebyshev filter.
    device : {"auto", "cpu", "cuda"}, default "auto"
        Where starts and anchors are computed; "auto" uses the environment variable `RIPPLEVEC_DEVICE`, else the CPU.

    Raises
    ------
    InvalidValueError
        If a value is out of range, or if parameters that exclude each other are combined.

    Examples
    --------
    >>> from ripplevec import Embedder, SpectralView
    >>> communities = SpectralView(share=3, tau_per_degree=0.25, tail=0.0625)
    >>> hubs = SpectralView(share=1, tau_per_degree=64, tail=0.35, weight=2.0)
    >>> model = Embedder(dim=4, views=[communities, hubs])
    >>> model.fit([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("a", "c")])["a"].shape
    (4,)
    """

    share: float = 1.0
    tau: float | None = None
    tau_per_degree: float | None = None
    diffusion: float | None = None
    tail: float | None = None
    tail_per_degree: float | None = None
    weight: float = 1.0
    flatten: float = 0.5
    ridge: float = 1.0
    degree: int = 6
    device: Literal["auto", "cpu", "cuda"] = "auto"

    def __post_init__(self) -> None:
        if (self.tau is None) == (self.tau_per_degree is None):
            raise InvalidValueError.of("SpectralView", "either tau or tau_per_degree", self)
        if [self.diffusion, self.tail, self.tail_per_degree].count(None) < 2:
            raise InvalidValueError.of("SpectralView", "at most one of diffusion, tail and tail_per_degree", self)
        if self.tail is not None and (not isinstance(self.tail, Real) or not 0 < float(self.tail) <= 1):
            raise InvalidValueError.of("SpectralView.tail", "a number above 0, at most 1", self.tail)
        for name in ("share", "weight"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0 < float(value) < np.inf:
                raise InvalidValueError.of(f"SpectralView.{name}", "a positive number", value)
        for name in ("tau", "tau_per_degree", "diffusion", "tail_per_degree", "flatten", "ridge"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, Real) or not 0 <= float(value) < np.inf):
                raise InvalidValueError.of(f"SpectralView.{name}", "a number ≥ 0", value)
        if not isinstance(self.degree, Integral) or self.degree < 1:
            raise InvalidValueError.of("SpectralView.degree", "a whole number ≥ 1", self.degree)
        check_choice("SpectralView.device", self.device, DEVICES)

    def start(
        self, adjacency: AdjacencyLike, rows: int, columns: int, *, threads: int, progress: Progress | None = None
    ) -> Basis:
        """Embed a graph from scratch: leading eigenvectors to solver tolerance, zero columns if the graph has fewer.

        Above 400 vertices, the tolerance is on the change of the eigenvalue sum. On large graphs (see
        `views/large_start.py`) it is looser, and a start costs a few anchors.
        """
        operator = self._make_operator(adjacency, rows, threads)
        solve = solve_large if is_large(operator, columns) else solve_leading_eigenpairs
        mu, vectors = solve(operator, columns, progress)
        return self._make_basis(operator, vectors, mu, operator.spectrum_lower_bound())

    def anchor(
        self,
        adjacency: AdjacencyLike,
        block: NDArray[Any],
        mu: NDArray[np.float64] | None,
        *,
        columns: int | None = None,
        seed: int,
        threads: int,
    ) -> Basis:
        """Correct current rows by one Chebyshev-filtered Rayleigh–Ritz step; see `View.anchor`.

        The filter damps eigenvalues below the smallest known Ritz value. If the graph has changed so much that wanted
        eigenvalues lie far below this cutoff, they were damped too; the step is then repeated with the new values.
        """
        operator = self._make_operator(adjacency, len(block), threads)
        rows, low = operator.to_device(block), operator.spectrum_lower_bound()
        operator.clear_unusable_rows(rows)
        ritz, min_passes = (_project_rows(operator, rows, seed), OTHER_VIEW_PASSES) if mu is None else (mu, 1)
        for iteration in range(MAX_ANCHOR_PASSES):
            high = max(float(ritz.min()), MIN_CUTOFF)
            normalize_columns(operator, rows, seed + iteration)
            apply_chebyshev_filter(operator, rows, low, high, self.degree)
            operator.deflate(rows)
            ritz = rayleigh_ritz(operator, rows)
            if iteration + 1 >= min_passes and (high == MIN_CUTOFF or ritz.min() >= REPEAT_RATIO * high):
                break
        return self._make_basis(operator, rows[:, :columns], ritz[:columns], low, block if columns is None else None)

    def captured_spectrum(self, adjacency: AdjacencyLike, rows: NDArray[Any], *, threads: int) -> float:
        """Return the sum of the positive Ritz values of the operator on the span of these rows."""
        operator = self._make_operator(adjacency, len(rows), threads, "cpu")  # in float64
        block = rows.astype(np.float64)
        operator.clear_unusable_rows(block)
        operator.deflate(block)
        return _sum_positive(rayleigh_ritz(operator, block))

    def attainable_spectrum(self, adjacency: AdjacencyLike, rows: int, columns: int, *, threads: int) -> float:
        """Return the sum of the leading positive eigenvalues, the Rayleigh–Ritz maximum for this number of columns."""
        operator = self._make_operator(adjacency, rows, threads)
        return _sum_positive(solve_leading_eigenpairs(operator, columns, tolerance=REFERENCE_TOLERANCE)[0])

    def regularization(self, totals: Totals) -> float:
        """Return τ for a graph with these totals, in the unit of its weights."""
        if self.tau is not None:
            return self.tau * totals.strength / max(1, totals.endpoints)
        return float(self.tau_per_degree or 0) * totals.strength / max(1, totals.active)

    def column_lengths(self, mu: NDArray[np.float64], mean_degree: float) -> NDArray[np.float64]:
        """Return (μ/μ₁)^q for each column; 0 for a negligible eigenvalue."""
        top = mu[0] if mu.size and mu[0] > 0 else 1.0
        ratio = np.clip(mu / top, 0.0, 1.0)
        return np.asarray(ratio ** self._power(ratio[mu > MIN_EIGENVALUE], mean_degree) * (mu > MIN_EIGENVALUE))

    def _make_operator(self, adjacency: AdjacencyLike, rows: int, threads: int, device: str | None = None) -> Operator:
        tau = self.regularization(adjacency.totals(rows))
        return make_operator(device or self.device, adjacency, rows, tau, threads)

    def _make_basis(
        self,
        operator: Operator,
        vectors: NDArray[Any],
        mu: NDArray[np.float64],
        lowest: float,
        rows: NDArray[Any] | None = None,
    ) -> Basis:
        """Scale columns by (μ/μ₁)^q, then all of them so that the mean squared length of active rows is one."""
        norms = np.maximum(operator.column_norms(vectors), 1e-150)
        scale = self.column_lengths(mu, operator.mean_degree) / norms
        lengths = float((operator.column_square_sums(vectors) * scale**2).sum())
        operator.scale_columns(vectors, scale * np.sqrt(operator.active_count / max(lengths, 1e-300)))
        center, longest = operator.center(vectors), operator.max_row_length(vectors)
        return Basis(operator.to_host(vectors, rows), mu, operator.tau, center, longest, lowest)

    def _power(self, ratio: NDArray[np.float64], mean_degree: float) -> float:
        """Return q: `diffusion`, or the power that turns the smallest of these eigenvalue ratios into the tail."""
        tail = self.tail if self.tail_per_degree is None else min(self.tail_per_degree * mean_degree, 1.0)
        if tail is None:
            return self.diffusion or 0.0
        return float(
            min(np.log(max(tail, MIN_TAIL)) / np.log(min(ratio.min(initial=1.0), MAX_EIGENVALUE_RATIO)), MAX_POWER)
        )


def _sum_positive(values: NDArray[np.float64]) -> float:
    """Return the sum of the positive values; small graphs have many negative eigenvalues."""
    return float(np.maximum(values, 0.0).sum())


def _project_rows(operator: Operator, block: NDArray[Any], seed: int) -> NDArray[np.float64]:
    """Turn rows of other views into Ritz vectors of this operator, in place; return the Ritz values."""
    normalize_columns(operator, block, seed)
    return rayleigh_ritz(operator, block)
