"""Reference optimum: the objective minimized over FᵀF = I by the line search that the paper prints.

The matrices with FᵀF = I form the Stiefel manifold. From an iterate F the search follows a direction Γ of its tangent
space (FᵀΓ + ΓᵀF = 0) and returns to the manifold by the polar decomposition, as in section 4.3 of the paper:

    F ← (F + αΓ) [I + α² ΓᵀΓ]^(−½)

Γ is the direction of steepest descent: the negative gradient G of the loss, projected onto the tangent space,
Γ = −(G − F sym(FᵀG)). The paper does not specify α. Here the first trial is the step of Barzilai and Borwein, the
inverse of the curvature along the last step (its long and its short form alternate), and it is halved until Armijo's
condition holds,

    L(new) < C − σ α ‖Γ‖²

where C is the last loss (`monotone`), or Zhang and Hager's running mean of the losses so far, which allows an
occasional increase and converges sooner.

The loss is convex, but the manifold is not: the result is a stationary point. For homophily alone every local optimum
is a global one (the eigenvectors of the smallest eigenvalues of D − A), and for smoothness alone without new vertices
too (the polar factor of P, while n > k); for the sum there is no guarantee, so compare several starts where it matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import polar

from ripplevec.errors import InvalidValueError, check_choice
from ripplevec.lab.objective.losses import Loss, Matrix, Objective
from ripplevec.util.parallel import limit_blas_to_one_thread
from ripplevec.views.base import Progress

SUFFICIENT_DECREASE = 1e-4  # σ: the share of the predicted descent that a step must achieve
AVERAGING = 0.85  # weight of earlier losses in the running mean of Zhang and Hager
MAX_HALVINGS = 30  # after which any further gain is below rounding
STEP_BOUNDS = (1e-2, 1e4)  # the shortest and the longest first trial, in units of 1 / Lipschitz bound
MAX_DRIFT = 1e-14  # deviation of FᵀF from I above which rounding errors are removed
START_TOLERANCE = 1e-8  # deviation of FᵀF from I that a given start may have
NEW_VERTEX_PLACEMENTS = ("mean", "zero")


@dataclass(frozen=True, slots=True)
class Iterate:
    """One point of the search."""

    vectors: Matrix
    loss: Loss
    gradient_norm: float  # ‖Γ‖, of the gradient in the tangent space
    step: float  # α of the step that led here, 0 at the start


@dataclass(frozen=True, slots=True)
class Optimum:
    """Result of the search: the final vectors, and losses and gradient norms from the start on."""

    vectors: Matrix
    losses: list[Loss]
    gradient_norms: NDArray[np.float64]
    converged: bool

    @property
    def loss(self) -> Loss:
        """Loss of the final vectors."""
        return self.losses[-1]

    @property
    def iterations(self) -> int:
        """Number of steps."""
        return len(self.losses) - 1


def minimize(
    objective: Objective,
    start: Matrix | None = None,
    *,
    tolerance: float = 1e-6,
    iterations: int = 1000,
    monotone: bool = False,
    progress: Progress | None = None,
) -> Optimum:
    """Minimize the objective over FᵀF = I.

    Parameters
    ----------
    objective : Objective
        The losses to minimize.
    start : array of shape (n, k), optional
        Initial vectors with FᵀF = I; by default the previous state (see `warm_start`).
    tolerance : float
        The search has converged when the norm of the tangent gradient is at most this share of its largest possible
        value, about `lipschitz_bound` · √k. The criterion is independent of the graph size, although the weights γ
        shrink as the graph grows.
    iterations : int
        Largest number of steps.
    monotone : bool
        Whether every step must decrease the loss.
    progress : callable, optional
        Called with a description and a share between 0 and 1.

    Returns
    -------
    Optimum
        The vectors, and the losses along the search.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from ripplevec.lab.objective import Objective, minimize, random_start
    >>> path = csr_array(np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    >>> round(minimize(Objective(path), random_start(3, 2)).loss.homophily, 6)
    1.0
    """
    with limit_blas_to_one_thread():  # the same bits with any number of threads
        start = warm_start(objective) if start is None else start
        threshold = tolerance * objective.lipschitz_bound * start.shape[1] ** 0.5
        losses, norms, converged, vectors = [], [], False, start
        for step, now in enumerate(islice(descend(objective, start, monotone=monotone), iterations + 1)):
            vectors, converged = now.vectors, now.gradient_norm <= threshold
            losses.append(now.loss)
            norms.append(now.gradient_norm)
            if progress is not None:
                progress("minimizing the objective", 1.0 if converged else step / max(iterations, 1))
            if converged:
                break
    return Optimum(vectors, losses, np.array(norms), converged)


def descend(objective: Objective, start: Matrix, *, monotone: bool = False) -> Iterator[Iterate]:
    """Yield the iterates of the search, beginning with the start, until no step decreases the loss."""
    _check_start(objective, start)
    averaging = 0.0 if monotone else AVERAGING
    now, gradient = _evaluate(objective, np.array(start, np.float64))
    reference, weight, trial = now.loss.total, 1.0, 1 / max(objective.lipschitz_bound, 1e-300)
    for step in count():
        yield now
        accepted = _line_search(objective, now, gradient, reference, trial)
        if accepted is None:
            return
        before, gradient_before, (now, gradient) = now, gradient, accepted
        trial = _curvature_step(objective, now.vectors - before.vectors, gradient - gradient_before, long=step % 2 == 0)
        weight, earlier_weight = averaging * weight + 1, averaging * weight
        reference = (earlier_weight * reference + now.loss.total) / weight


def _evaluate(objective: Objective, vectors: Matrix, step: float = 0.0) -> tuple[Iterate, Matrix]:
    loss, gradient = objective.loss_and_gradient(vectors)
    tangent_gradient = project_to_tangent(vectors, gradient)
    return Iterate(vectors, loss, float(np.linalg.norm(tangent_gradient)), step), tangent_gradient


def _line_search(
    objective: Objective, now: Iterate, gradient: Matrix, reference: float, step: float
) -> tuple[Iterate, Matrix] | None:
    """Return the first trial point that satisfies Armijo's condition; None if rounding errors hide it."""
    if now.gradient_norm == 0:
        return None
    for _ in range(MAX_HALVINGS):
        trial = _evaluate(objective, retract(now.vectors, -gradient, step), step)
        if trial[0].loss.total < reference - SUFFICIENT_DECREASE * step * now.gradient_norm**2:
            return trial
        step /= 2
    return None


def _curvature_step(objective: Objective, moved: Matrix, change: Matrix, *, long: bool) -> float:
    """Return Barzilai and Borwein's step from the last changes of vectors and gradient, within bounds."""
    inner, unit = abs(float(np.vdot(moved, change))), 1 / objective.lipschitz_bound
    numerator, denominator = (float(np.vdot(moved, moved)), inner) if long else (inner, float(np.vdot(change, change)))
    return min(max(numerator / max(denominator, 1e-300), STEP_BOUNDS[0] * unit), STEP_BOUNDS[1] * unit)


def project_to_tangent(vectors: Matrix, gradient: Matrix) -> Matrix:
    """Project a gradient onto the tangent space of the manifold: G − F sym(FᵀG)."""
    inner = vectors.T @ gradient
    return gradient - vectors @ ((inner + inner.T) / 2)


def retract(vectors: Matrix, direction: Matrix, step: float) -> Matrix:
    """Return (F + αΓ)[I + α² ΓᵀΓ]^(−½), the polar retraction of a tangent step onto the manifold.

    The bracket is (F + αΓ)ᵀ(F + αΓ) because Γ is tangent and FᵀF = I. Rounding violates both slightly, more with every
    step, so a Newton-Schulz step for the polar factor, F(3I − FᵀF)/2, follows if the deviation is visible.
    """
    values, eigenvectors = np.linalg.eigh(direction.T @ direction)
    inverse_root = (eigenvectors / np.sqrt(1 + step**2 * np.maximum(values, 0.0))) @ eigenvectors.T
    moved = (vectors + step * direction) @ inverse_root
    drift = moved.T @ moved - np.eye(moved.shape[1])
    return moved - moved @ (drift / 2) if np.abs(drift).max(initial=0.0) > MAX_DRIFT else moved


def polar_factor(matrix: Matrix) -> Matrix:
    """Return the nearest matrix with FᵀF = I, M(MᵀM)^(−½); one of the nearest if the columns of M are dependent."""
    if matrix.shape[0] < matrix.shape[1]:
        raise InvalidValueError.of("matrix", "at least as many rows as columns", f"shape {matrix.shape}")
    factor: Matrix = polar(matrix)[0]
    return factor


def warm_start(objective: Objective, new: str = "mean", nudge: float = 0.1) -> Matrix:
    """Return the previous state with new vertices at the weighted mean of their neighbors, projected onto FᵀF = I.

    With `new="zero"` new vertices are placed at zero instead. A zero row whose neighbors are zero too has no gradient
    and would stay zero, which is a saddle point and not an optimum: nonzero vectors there would allow the others to be
    shorter. Zero rows are therefore replaced by random ones, `nudge` times as long as the average row (about √(k/n)).
    """
    check_choice("new", new, NEW_VERTEX_PLACEMENTS)
    if objective.before is None:
        raise InvalidValueError.of("start", "a matrix, because there is no previous state to start from", None)
    vectors = np.zeros((objective.vertices, objective.before.shape[1]))
    vectors[objective.rows] = objective.before
    if new == "mean":
        _place_new_vertices(objective, vectors)
    zero = ~vectors.any(axis=1)
    noise = np.random.default_rng(0).standard_normal(vectors.shape)[zero]
    vectors[zero] = noise * (nudge / max(len(vectors), 1) ** 0.5)
    return polar_factor(vectors)


def _place_new_vertices(objective: Objective, vectors: Matrix) -> None:
    """Place every new row at the weighted mean of its neighbors in the previous state."""
    known = np.zeros(objective.vertices)
    known[objective.rows] = 1.0
    new = np.flatnonzero(known == 0)
    edges = objective.adjacency[new]
    strength = edges @ known
    vectors[new] = (edges @ vectors) / np.where(strength > 0, strength, 1.0)[:, None]


def random_start(rows: int, columns: int, seed: int = 0) -> Matrix:
    """Return a uniformly random matrix with FᵀF = I."""
    return polar_factor(np.random.default_rng(seed).standard_normal((rows, columns)))


def _check_start(objective: Objective, start: Matrix) -> None:
    shape = np.shape(start)
    if len(shape) != 2 or shape[0] != objective.vertices:
        raise InvalidValueError.of("start", f"{objective.vertices} rows", f"an array of shape {shape}")
    if np.abs(start.T @ start - np.eye(shape[1])).max(initial=0.0) > START_TOLERANCE:
        raise InvalidValueError.of("start", "a matrix with FᵀF = I (see `polar_factor`)", "one without")
