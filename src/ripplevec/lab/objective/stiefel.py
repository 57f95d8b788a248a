"""The reference optimum: the weighted sum minimized over FᵀF = I, by the line search that the paper prints.

The matrices with FᵀF = I are the Stiefel manifold. From an iterate F the search goes along a direction Γ of its
tangent space (FᵀΓ + ΓᵀF = 0) and back onto the manifold by the polar decomposition, as in section 4.3 of the paper:

    F ← (F + αΓ) [I + α² ΓᵀΓ]^(−½)

Γ is the steepest descent: minus the gradient G of the loss, less what leaves the manifold, Γ = −(G − F sym(FᵀG)).
The paper leaves α open. Here the first trial is the step of Barzilai and Borwein, the inverse of the curvature met on
the last step (its long and its short form in turn), and it is halved until Armijo's condition holds,

    L(new) < C − σ α ‖Γ‖²

with C the last loss (`monotone`), else Zhang and Hager's running mean of the losses so far, which lets one rise now and
then and arrives sooner.

The loss is convex, the manifold is not: what is found is a stationary point. For homophily alone every local optimum
is a global one (the eigenvectors of the smallest eigenvalues of D − A), for smoothness alone without newcomers too
(the polar factor of P, while n > k); for the sum nothing is promised, so compare starts where it matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import InvalidValueError, check_choice
from ripplevec.lab.objective.losses import Loss, Matrix, Objective
from ripplevec.util.parallel import limit_blas_to_one_thread
from ripplevec.views.base import Progress

SUFFICIENT = 1e-4  # σ: the share of the promised descent that a step must bring
MEMORY = 0.85  # of the running mean, by Zhang and Hager
HALVINGS = 30  # after which rounding hides what is left to gain
STEPS = (1e-2, 1e4)  # the shortest and the longest first trial, in inverse steepness of the objective
DRIFT = 1e-14  # by which FᵀF may be off before rounding is undone
FEASIBLE = 1e-8  # and by which that of a given start may be
NEW = ("mean", "zero")


@dataclass(frozen=True, slots=True)
class Iterate:
    """One point of the search."""

    vectors: Matrix
    loss: Loss
    gradient_norm: float  # of the gradient in the tangent space, ‖Γ‖
    step: float  # α of the step that led here, 0 at the start


@dataclass(frozen=True, slots=True)
class Optimum:
    """Where the search ended, and the way there; the start is the first entry of both lists."""

    vectors: Matrix
    losses: list[Loss]
    gradient_norms: NDArray[np.float64]
    converged: bool

    @property
    def loss(self) -> Loss:
        """That of the vectors found."""
        return self.losses[-1]

    @property
    def iterations(self) -> int:
        """How many steps were taken."""
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
    """The vectors with FᵀF = I of least loss near a start: the state before (`warm_start`) if none is given.

    Converged when the gradient in the tangent space is at most `tolerance` times the largest a gradient can be, which
    is about steepness · √k: the weights γ shrink as the graph grows, and this does not feel it.
    """
    with limit_blas_to_one_thread():  # the same bits however many threads there are
        start = warm_start(objective) if start is None else start
        enough = tolerance * objective.steepness * start.shape[1] ** 0.5
        losses, norms, converged, vectors = [], [], False, start
        for step, now in enumerate(islice(descend(objective, start, monotone=monotone), iterations + 1)):
            vectors, converged = now.vectors, now.gradient_norm <= enough
            losses.append(now.loss)
            norms.append(now.gradient_norm)
            if progress is not None:
                progress("minimizing the objective", 1.0 if converged else step / max(iterations, 1))
            if converged:
                break
    return Optimum(vectors, losses, np.array(norms), converged)


def descend(objective: Objective, start: Matrix, *, monotone: bool = False) -> Iterator[Iterate]:
    """The iterates of the search, the start first, for as long as a step brings the loss down."""
    _check_start(objective, start)
    memory = 0.0 if monotone else MEMORY
    now, gradient = _evaluate(objective, np.array(start, np.float64))
    reference, seen, trial = now.loss.total, 1.0, 1 / max(objective.steepness, 1e-300)
    for step in count():
        yield now
        found = _search(objective, now, gradient, reference, trial)
        if found is None:
            return
        before, gradient_before, (now, gradient) = now, gradient, found
        trial = _curvature_step(objective, now.vectors - before.vectors, gradient - gradient_before, long=step % 2 == 0)
        seen, share = memory * seen + 1, memory * seen
        reference = (share * reference + now.loss.total) / seen


def _evaluate(objective: Objective, vectors: Matrix, step: float = 0.0) -> tuple[Iterate, Matrix]:
    loss, gradient = objective.loss_and_gradient(vectors)
    inside = tangent(vectors, gradient)
    return Iterate(vectors, loss, float(np.linalg.norm(inside)), step), inside


def _search(
    objective: Objective, now: Iterate, gradient: Matrix, reference: float, step: float
) -> tuple[Iterate, Matrix] | None:
    """The first point along the descent that satisfies Armijo's condition; None where rounding hides it."""
    if now.gradient_norm == 0:
        return None
    for _ in range(HALVINGS):
        found = _evaluate(objective, retract(now.vectors, -gradient, step), step)
        if found[0].loss.total < reference - SUFFICIENT * step * now.gradient_norm**2:
            return found
        step /= 2
    return None


def _curvature_step(objective: Objective, moved: Matrix, change: Matrix, *, long: bool) -> float:
    """Barzilai and Borwein's step from what the last one changed, kept within bounds."""
    along, unit = abs(float(np.vdot(moved, change))), 1 / objective.steepness
    above, below = (float(np.vdot(moved, moved)), along) if long else (along, float(np.vdot(change, change)))
    return min(max(above / max(below, 1e-300), STEPS[0] * unit), STEPS[1] * unit)


def tangent(vectors: Matrix, gradient: Matrix) -> Matrix:
    """The part of a gradient that stays on the manifold: G − F sym(FᵀG)."""
    inner = vectors.T @ gradient
    return gradient - vectors @ ((inner + inner.T) / 2)


def retract(vectors: Matrix, direction: Matrix, step: float) -> Matrix:
    """(F + αΓ)[I + α² ΓᵀΓ]^(−½): from the tangent space back onto the manifold by the polar decomposition.

    The bracket is (F + αΓ)ᵀ(F + αΓ) because Γ is tangent and FᵀF = I. Rounding breaks both a little, more with every
    step, so one step of Newton and Schulz for the polar factor, F(3I − FᵀF)/2, follows where it can be seen.
    """
    values, turn = np.linalg.eigh(direction.T @ direction)
    back = (turn / np.sqrt(1 + step**2 * np.maximum(values, 0.0))) @ turn.T
    moved = (vectors + step * direction) @ back
    drift = moved.T @ moved - np.eye(moved.shape[1])
    return moved - moved @ (drift / 2) if np.abs(drift).max(initial=0.0) > DRIFT else moved


def polar(matrix: Matrix) -> Matrix:
    """The nearest matrix with FᵀF = I, M(MᵀM)^(−½); one of the nearest where the columns of M are dependent."""
    if matrix.shape[0] < matrix.shape[1]:
        raise InvalidValueError.of("matrix", "at least as many rows as columns", f"one of shape {matrix.shape}")
    left, _, right = np.linalg.svd(matrix, full_matrices=False)
    return left @ right


def warm_start(objective: Objective, new: str = "mean", nudge: float = 0.1) -> Matrix:
    """The state before, newcomers at the weighted mean of their neighbors in it (or at zero), made to have FᵀF = I.

    A row of zeros whose neighbors are zero too has no gradient and would stay zero for ever, which is a saddle and not
    an optimum: vectors there would let the others be shorter. Rows of zeros get a random one, `nudge` times as long
    as the rows are on average (about √(k/n)).
    """
    check_choice("new", new, NEW)
    if objective.before is None:
        raise InvalidValueError.of("start", "a matrix, as there is no state before to start from", None)
    vectors = np.zeros((objective.vertices, objective.before.shape[1]))
    vectors[objective.rows] = objective.before
    if new == "mean":
        _place_newcomers(objective, vectors)
    still = ~vectors.any(axis=1)
    draw = np.random.default_rng(0).standard_normal(vectors.shape)[still]
    vectors[still] = draw * (nudge / max(len(vectors), 1) ** 0.5)
    return polar(vectors)


def _place_newcomers(objective: Objective, vectors: Matrix) -> None:
    """Put every new row at the mean of its neighbors that were there before."""
    known = np.zeros(objective.vertices)
    known[objective.rows] = 1.0
    fresh = np.flatnonzero(known == 0)
    edges = objective.adjacency[fresh]
    strength = edges @ known
    vectors[fresh] = (edges @ vectors) / np.where(strength > 0, strength, 1.0)[:, None]


def random_start(rows: int, columns: int, seed: int = 0) -> Matrix:
    """A matrix with FᵀF = I in which no direction is preferred."""
    return polar(np.random.default_rng(seed).standard_normal((rows, columns)))


def _check_start(objective: Objective, start: Matrix) -> None:
    shape = np.shape(start)
    if len(shape) != 2 or shape[0] != objective.vertices:
        raise InvalidValueError.of("start", f"{objective.vertices} rows", f"an array of shape {shape}")
    if np.abs(start.T @ start - np.eye(shape[1])).max(initial=0.0) > FEASIBLE:
        raise InvalidValueError.of("start", "a matrix with FᵀF = I; `polar` makes one", "another")
