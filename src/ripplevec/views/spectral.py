"""The spectral view: leading eigenvectors of the regularized normalized adjacency, diffused by the spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import InvalidValueError, check_choice
from ripplevec.views.base import MIN_EIGENVALUE, Basis, Progress
from ripplevec.views.graph_stats import DENSE_GRAPH, GraphStats
from ripplevec.views.operator_factory import DEVICES, AdjacencyLike, make_operator
from ripplevec.views.operators import Operator
from ripplevec.views.solvers import solve_leading_eigenpairs
from ripplevec.views.subspace import apply_chebyshev_filter, rayleigh_ritz

FLAT, STEEPEST = 0.999, 64.0  # a spectrum that hardly falls has no tail: no power would make one
SHORTEST = 1e-3  # however few edges there are
EXACT = 1e-6  # by how much the sum of the eigenvalues may still change when it is what others are measured by
PASSES, FAR_BELOW = 4, 0.75  # of an anchor at the most, and the share of the bound that makes another one due
FROM_OTHERS = 3  # passes over rows of other views: fewer left something to the next anchor
SMALLEST_GAIN = 1e-4  # the filter's interval must not reach the wanted end of the spectrum


@dataclass(frozen=True, slots=True, kw_only=True)
class SpectralView:
    """Columns from S = (D+τI)^-½ (A + (τ/n) 11ᵀ) (D+τI)^-½, scaled by (μ/μ₁)^q.

    The power q is given as `diffusion`, or by the `tail`: so that the last column weighs that much of the first. How
    fast a spectrum falls differs from graph to graph; how much of its end should count differs less. It grows with the
    mean degree, by `tail_per_degree`: the more edges a vertex has, the less of the end is noise.

    `tau` is given in mean edge weights, or as `tau_per_degree` in mean degrees (weighted): small for communities in
    sparse graphs, many times the mean degree for the hubs of dense ones.
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
    degree: int = 6  # of the anchor's Chebyshev filter
    device: str = "auto"  # where start and anchor are worked out: "cpu", "cuda", or what RIPPLEVEC_DEVICE says

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
        """Leading eigenvectors, to solver tolerance; zero columns where the graph has fewer than asked for.

        On more than 400 vertices the tolerance is that the sum of the eigenvalues has settled.
        """
        operator = self._operator(adjacency, rows, threads)
        mu, vectors = solve_leading_eigenpairs(operator, columns, progress)
        return self._weighed(operator, vectors, mu)

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
        """One Chebyshev-filtered Rayleigh–Ritz step from the current rows.

        The filter damps what lies below the smallest value known. Where the graph has changed so much that wanted
        values lie far below it, they have been damped too: then it is done again with what is known now.
        """
        operator = self._operator(adjacency, len(block), threads)
        rows, low = operator.to_device(block), operator.spectrum_lower_bound()
        operator.clear_unusable_rows(rows)
        ritz, least = (_taken_up(operator, rows, seed), FROM_OTHERS) if mu is None else (mu, 1)
        for turn in range(PASSES):
            high = max(float(ritz.min()), SMALLEST_GAIN)
            _normalize(operator, rows, seed + turn)
            apply_chebyshev_filter(operator, rows, low, high, self.degree)
            operator.deflate(rows)
            ritz = rayleigh_ritz(operator, rows)
            if turn + 1 >= least and (high == SMALLEST_GAIN or ritz.min() >= FAR_BELOW * high):
                break
        return self._weighed(operator, rows[:, :columns], ritz[:columns], block if columns is None else None)

    def reached(self, adjacency: AdjacencyLike, rows: NDArray[Any], *, threads: int) -> float:
        """The sum of the Ritz values of the operator on the span of these rows: what they hold of its spectrum."""
        operator = self._operator(adjacency, len(rows), threads, "cpu")  # in float64
        block = rows.astype(np.float64)
        operator.clear_unusable_rows(block)
        operator.deflate(block)
        return _positive(rayleigh_ritz(operator, block))

    def best(self, adjacency: AdjacencyLike, rows: int, columns: int, *, threads: int) -> float:
        """The sum of the leading eigenvalues: by Rayleigh and Ritz, no span of as many columns reaches more."""
        operator = self._operator(adjacency, rows, threads)
        return _positive(solve_leading_eigenpairs(operator, columns, settled=EXACT)[0])

    def _operator(self, adjacency: AdjacencyLike, rows: int, threads: int, device: str | None = None) -> Operator:
        totals = adjacency.totals(rows)
        if self.tau is not None:
            tau = self.tau * totals.strength / max(1, totals.endpoints)
        else:
            tau = float(self.tau_per_degree or 0) * totals.strength / max(1, totals.active)
        return make_operator(device or self.device, adjacency, rows, tau, threads)

    def _weighed(
        self, operator: Operator, vectors: NDArray[Any], mu: NDArray[np.float64], rows: NDArray[Any] | None = None
    ) -> Basis:
        """Scale the columns by the diffusion, and all of them so that the mean square of a row's length is one."""
        top = mu[0] if mu.size and mu[0] > 0 else 1.0
        norms = np.maximum(operator.column_norms(vectors), 1e-150)
        ratio = np.clip(mu / top, 0.0, 1.0)
        scale = ratio ** self._power(ratio[mu > MIN_EIGENVALUE], operator.mean_degree) * (mu > MIN_EIGENVALUE) / norms
        lengths = float((operator.column_square_sums(vectors) * scale**2).sum())
        operator.scale_columns(vectors, scale * np.sqrt(operator.active_count / max(lengths, 1e-300)))
        center, longest = operator.center(vectors), operator.max_row_length(vectors)
        return Basis(operator.to_host(vectors, rows), mu, operator.tau, center, longest)

    def _power(self, ratio: NDArray[np.float64], mean_degree: float) -> float:
        """q: as given, or such that the smallest of these ratios becomes the tail."""
        tail = self.tail if self.tail_per_degree is None else min(self.tail_per_degree * mean_degree, 1.0)
        if tail is None:
            return self.diffusion or 0.0
        return float(min(np.log(max(tail, SHORTEST)) / np.log(min(ratio.min(initial=1.0), FLAT)), STEEPEST))


def _positive(values: NDArray[np.float64]) -> float:
    """Their sum, without the negative ones, of which a graph with few vertices has more than others."""
    return float(np.maximum(values, 0.0).sum())


def _taken_up(operator: Operator, block: NDArray[Any], seed: int) -> NDArray[np.float64]:
    """The values in rows that another operator has made; they become Ritz vectors of this one."""
    _normalize(operator, block, seed)
    return rayleigh_ritz(operator, block)


def _normalize(operator: Operator, block: NDArray[Any], seed: int) -> None:
    """Make rows a block to filter, in place: columns of one length, those that say nothing yet filled with noise."""
    operator.deflate(block)
    norms = operator.column_norms(block)
    empty = norms <= 1e-6 * max(norms.max(initial=0.0), 1e-300)
    if empty.any():
        block[:, np.flatnonzero(empty)] = operator.make_noise(seed, int(empty.sum()), block.dtype)
        operator.deflate(block)
        norms = operator.column_norms(block)
    operator.scale_columns(block, np.maximum(norms, np.finfo(block.dtype).tiny), np.divide)


def auto_views(stats: GraphStats) -> tuple[SpectralView, ...]:
    """The views of a graph by its stats alone: communities, and on dense graphs hubs (a large τ) beside them.

    Where all edges lead from one kind of vertices to another, a view of hubs keeps apart whom it should bring together:
    those of the one kind that have many edges, and their neighbors of the other.
    """
    if stats.mean_degree < DENSE_GRAPH:
        return (SpectralView(tau=0.25, tail_per_degree=1 / 40, degree=10),)
    communities = SpectralView(share=3, tau_per_degree=0.25, tail=0.0625)
    if stats.bipartite:
        return (communities,)
    return communities, SpectralView(share=1, tau_per_degree=64, tail=0.35, weight=2.0)
