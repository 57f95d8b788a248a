"""How close a model is to the optimum: the paper's losses, their lower bound, and the spectrum each view captures.

The losses are defined for vectors with FᵀF = I. Rule `paper` keeps that constraint. The rows of rule `ripple` are
scaled by degree and spectrum; they are projected onto the constraint by the polar decomposition, which changes them
least. Vertices without edges are left out: they add no loss and would only dilute the rest.

The lower bound of the homophily loss is, by Ky Fan, the sum of the k smallest eigenvalues of D − A: no F with FᵀF = I
and k columns has a smaller tr Fᵀ(D − A)F, and the eigenvectors attain it. As the smoothness loss is not negative, γ_h
times this bound also bounds the whole objective, independently of the previous state.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import connected_components, laplacian
from scipy.sparse.linalg import lobpcg

from ripplevec.engine.reads import LocalReads
from ripplevec.lab.objective import Objective, polar_factor
from ripplevec.rules.base import Rule
from ripplevec.rules.ripple import RippleRule
from ripplevec.util.parallel import limit_blas_to_one_thread
from ripplevec.views.base import View

MAX_DENSE_VERTICES = 3_000  # components up to this size are solved as dense matrices, in seconds
MAX_ITERATIONS, TOLERANCE = 400, 1e-5  # of LOBPCG on larger components; values are far more accurate than vectors
GUARD_COLUMNS = 10  # iterated in addition, because the last columns converge slowly


class SpectrumShare(NamedTuple):
    """The spectrum of its operator that a view captures: sums of Ritz values and of leading eigenvalues."""

    captured: float
    attainable: float

    @property
    def share(self) -> float:
        """Captured over attainable spectrum; 1 at the optimum."""
        return self.captured / self.attainable if self.attainable > 0 else 1.0


class Gatherable(Protocol):
    """A model state that may be distributed, and can be gathered on one machine."""

    def gather(self) -> LocalReads:
        """Return the whole state."""


def evaluate_losses(
    state: Gatherable, since: Gatherable | None = None, *, bound: bool = False
) -> dict[str, float | None]:
    """Return the paper's losses; all values are None if the graph is too small for FᵀF = I.

    The smoothness loss is relative to the earlier state `since`. With `bound`, the lower bounds of the homophily loss
    and of the total are added.
    """
    names = ["smoothness", "homophily", "total"] + ["least_homophily", "least_total"] * bound
    engine = state.gather()
    feasible = _feasible_vectors(engine)
    if feasible is None:
        return dict.fromkeys(names)
    rows, vectors = feasible
    adjacency = engine.graph.adjacency.to_csr()[rows][:, rows] / engine.graph.adjacency.weight_scale.unit
    objective = Objective(adjacency, *_earlier_vectors(engine, rows, None if since is None else since.gather()))
    loss = objective.loss(vectors)
    values: list[float | None] = [loss.smoothness, loss.homophily, loss.total]
    if bound:
        lower_bound = min_homophily_loss(adjacency, vectors.shape[1])
        values += [lower_bound, objective.weights.homophily * lower_bound]
    return dict(zip(names, values, strict=True))


def measure_spectrum_shares(
    state: Gatherable, attainable: dict[tuple[View, int], float] | None = None
) -> list[SpectrumShare]:
    """Return, per view of rule `ripple`, the share of the attainable spectrum that it captures.

    The list is empty before the start and for rule `paper`. `attainable` caches the attainable spectra from one call
    to the next; it is valid as long as the graph does not change.
    """
    attainable = {} if attainable is None else attainable
    engine = state.gather()
    rule = engine.rule
    if not isinstance(rule, RippleRule) or not rule.ready:
        return []
    coordinates, adjacency, rows, threads = (
        rule.coordinates,
        engine.graph.adjacency,
        engine.graph.row_count,
        rule.threads,
    )
    shares = []
    with limit_blas_to_one_thread():
        for view, part in zip(coordinates.views, coordinates.parts, strict=True):
            columns = part.stop - part.start
            if (view, columns) not in attainable:
                attainable[view, columns] = view.attainable_spectrum(adjacency, rows, columns, threads=threads)
            captured = view.captured_spectrum(adjacency, engine.store.vectors[:rows, part], threads=threads)
            shares.append(SpectrumShare(captured, attainable[view, columns]))
    return shares


def orthonormalize(rule: Rule, rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return the nearest rows with FᵀF = I; for rule `ripple`, in the coordinates in which vectors are served."""
    with limit_blas_to_one_thread():
        vectors = polar_factor(rows.astype(np.float64))
    rotation = rule.coordinates.rotation if isinstance(rule, RippleRule) else None
    return vectors if rotation is None else vectors @ rotation


def _feasible_vectors(engine: LocalReads) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
    """Return the rows with edges in order of arrival, and their vectors with FᵀF = I in served coordinates."""
    order = engine.graph.rows_by_arrival()
    rows = order[engine.graph.adjacency.links.degree[order] > 0]
    if rows.size < engine.store.vectors.shape[1]:
        return None
    return rows, orthonormalize(engine.rule, engine.store.vectors[rows])


def _earlier_vectors(engine: LocalReads, rows: NDArray[np.int64], since: LocalReads | None) -> tuple[Any, Any]:
    """Return the vectors of an earlier state and the current positions of their vertices, without removed vertices."""
    if since is None or (before := _feasible_vectors(since)) is None:
        return None, None
    position = np.full(engine.graph.row_count + 1, -1)  # the last entry is for removed vertices, whose row is −1
    position[rows] = np.arange(rows.size)
    current = position[engine.graph.ids.find_rows(since.graph.ids.to_column(before[0]))]
    return before[1][current >= 0], current[current >= 0]


def min_homophily_loss(adjacency: csr_array, columns: int) -> float:
    """Return the least homophily loss with FᵀF = I: the sum of the `columns` smallest eigenvalues of D − A."""
    return float(smallest_eigenvalues(adjacency, columns).sum())


def smallest_eigenvalues(adjacency: csr_array, count: int) -> NDArray[np.float64]:
    """Return the smallest eigenvalues of D − A in ascending order; fewer if the graph has fewer vertices.

    The eigenvalues of a graph are those of its components. Components are solved one by one, because an iteration on
    the whole graph may miss multiplicities of values that many small components share.
    """
    number, component = connected_components(adjacency, directed=False)
    order = np.argsort(component, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(component, minlength=number))[:-1])
    values = [_component_eigenvalues(csr_array(adjacency[part][:, part]), count) for part in parts if part.size > 1]
    isolated = np.zeros(sum(part.size == 1 for part in parts))
    return np.sort(np.concatenate([isolated, *values]))[:count]


def _component_eigenvalues(adjacency: csr_array, count: int) -> NDArray[np.float64]:
    size = adjacency.shape[0]
    count = min(count, size)
    matrix = csr_array(laplacian(adjacency.astype(np.float64)))
    if size <= max(MAX_DENSE_VERTICES, 5 * (count + GUARD_COLUMNS)):
        values = eigh(matrix.toarray(), eigvals_only=True, subset_by_index=[0, count - 1])
    else:
        values = np.concatenate([[0.0], _iterate_eigenvalues(matrix, count - 1)])
    return np.maximum(values, 0.0)  # negative values are rounding errors


def _iterate_eigenvalues(matrix: csr_array, count: int) -> NDArray[np.float64]:
    """Return the smallest eigenvalues of a large component except the first, by LOBPCG preconditioned with degrees."""
    if not count:
        return np.empty(0)
    size = matrix.shape[0]
    start = np.random.default_rng(0).standard_normal((size, count + GUARD_COLUMNS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the guard columns need not converge
        values, _ = lobpcg(
            matrix,
            start,
            M=diags_array(1 / matrix.diagonal()),
            Y=np.full((size, 1), size**-0.5),
            largest=False,
            maxiter=MAX_ITERATIONS,
            tol=TOLERANCE * float(matrix.diagonal().max()),
        )
    return np.sort(values)[:count]
