"""Coordinates of a model between two anchors: internal eigen-coordinates and served coordinates.

Internal rows are in the eigen-coordinates of each view, where a refresh is diagonal. Served vectors are scaled view by
view and rotated by one orthogonal matrix, which each anchor chooses so that vectors served before and after agree best.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import FormatError
from ripplevec.views import _kernels as kernels
from ripplevec.views._kernels import RefreshCoefficients, ViewScaling
from ripplevec.views.base import MIN_EIGENVALUE, Basis, View, allocate_columns

MIN_MU_RATIO = 0.02  # lower bound of the ratio μ/μ₁ that a refresh divides by
LENGTH_HEADROOM = 2.0  # length bound of refreshed rows, relative to the longest row at the last start or anchor
MAX_LENGTH = 2.0**15  # length bound in any case: half precision represents numbers up to twice this
_SAVED_ARRAYS = ("tau", "mu", "center", "longest", "lowest")  # names of attributes and of saved arrays


class Coordinates:
    """Views, their columns, and the coefficients needed to refresh and to serve rows."""

    def __init__(self, views: Sequence[View], dim: int, normalize: bool = True) -> None:
        columns = allocate_columns(dim, views)
        self.views = [view for view, count in zip(views, columns, strict=True) if count]
        bounds = np.cumsum([0, *(count for count in columns if count)])
        self.parts = [slice(int(first), int(last)) for first, last in pairwise(bounds)]
        self.dim, self.normalize = dim, normalize
        weights, flatten = ([getattr(view, name) for view in self.views] for name in ("weight", "flatten"))
        self.scaling = ViewScaling(bounds, np.array(weights, np.float64), np.array(flatten, np.float64))
        self.ready = False  # whether a start or an anchor has set the attributes below
        self.tau = np.zeros(len(self.views))  # per view, in the weight unit of new edges
        self.longest = np.zeros(len(self.views))  # per view: length of the longest row at the last start or anchor
        self.lowest = np.full(len(self.views), -1.0)  # per view: lower bound of the spectrum; −1 if it is not known
        self.mu = np.zeros(dim)  # eigenvalue per column
        self.center = np.zeros(dim)  # per column, in the weight unit of new edges
        self.set_rotation(None)  # identity until the first anchor

    def new_like(self) -> Coordinates:
        """Return coordinates with the same views, as they are before a start."""
        return Coordinates(self.views, self.dim, self.normalize)

    def adopt_bases(self, bases: Sequence[Basis]) -> None:
        """Adopt eigenvalues, τ, centers and row lengths of new bases."""
        for view, (part, basis) in enumerate(zip(self.parts, bases, strict=True)):
            self.tau[view], self.mu[part], self.center[part] = basis.tau, basis.mu, basis.center
            self.longest[view], self.lowest[view] = basis.longest, basis.lowest
        self.ready = True

    @property
    def length_bounds(self) -> NDArray[np.float64]:
        """Maximum length of a refreshed row per view; see "The bound" in docs/method.md."""
        return np.clip(LENGTH_HEADROOM * self.longest, 1.0, MAX_LENGTH)

    def set_rotation(self, rotation: NDArray[np.float64] | None) -> None:
        """Set the rotation of served vectors; None is the identity."""
        self.rotation = rotation
        self._serve = partial(
            _serve, self.scaling, self.normalize, None if rotation is None else rotation.astype(np.float32)
        )

    def refresh_coefficients(self, dtype: Any, unit: float = 1.0) -> RefreshCoefficients:
        """Return the coefficients of the local step, in the given precision.

        `unit` is the stored weight of a new edge of weight one, which grows while older weights decay.
        """
        top = np.array([self.mu[part].max(initial=0.0) for part in self.parts])
        # If all eigenvalues are negligible, all rows are zero; dividing small weights by μ₁ would give NaN.
        top[top <= MIN_EIGENVALUE] = 1.0
        bounds, ridge = self.scaling.bounds, [view.ridge for view in self.views]
        mu = np.maximum(self.mu / np.repeat(top, np.diff(bounds)), MIN_MU_RATIO)
        limits = self.length_bounds, self.length_bounds / np.sqrt(np.diff(bounds))
        per_view = np.stack([self.tau, top, np.array(ridge, np.float64), *limits], axis=1)
        coefficients = RefreshCoefficients(bounds, per_view, np.stack([mu, self.center]).astype(dtype))
        self.set_weight_unit(coefficients, unit)
        return coefficients

    def set_weight_unit(self, coefficients: RefreshCoefficients, unit: float) -> None:
        """Adapt coefficients to another unit of weights, in which τ and the center are measured; in place."""
        coefficients.per_view[:, 0] = self.tau * unit
        coefficients.per_column[1] = self.center * unit

    def scale_rows(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Return rows scaled as they are served, but not rotated; cosines are the same."""
        return _scale(self.scaling, self.normalize, rows)

    def to_served(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Return internal rows as served vectors; the argument is not modified."""
        return self._serve(rows)

    def served_transform(self) -> Callable[[NDArray[Any]], NDArray[np.float32]]:
        """Return `to_served` with the current rotation, unaffected by later anchors."""
        return self._serve

    def to_internal(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        """Rotate served vectors back to the axes of internal rows; the scaling of served vectors remains."""
        unrotated = np.asarray(vectors, np.float64)
        return unrotated if self.rotation is None else unrotated @ self.rotation.T

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the coefficients as arrays, for saving."""
        saved: dict[str, NDArray[Any]] = {name: getattr(self, name).copy() for name in _SAVED_ARRAYS}
        if self.rotation is not None:
            saved["turn"] = self.rotation.copy()  # the name in the saved format
        return saved | {"ready": np.array(self.ready)}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays of `state`."""
        state = {"lowest": np.full(len(self.views), -1.0)} | state  # not in files of earlier versions
        for name in _SAVED_ARRAYS:
            if state[name].shape != getattr(self, name).shape:
                expected = getattr(self, name).shape
                raise FormatError(
                    f"The saved coordinates do not fit the views: expected {name} of shape {expected}, "
                    f"got {state[name].shape}. Use the views of the saved model."
                )
            setattr(self, name, state[name].astype(np.float64))
        self.set_rotation(state.get("turn"))
        self.ready = bool(state["ready"])


def identity_scaling(dim: int) -> ViewScaling:
    """Return the scaling that does not change directions: one view of weight one, without flattening."""
    return ViewScaling(np.array([0, dim]), np.ones(1), np.zeros(1))


def _scale(scaling: ViewScaling, normalize: bool, rows: NDArray[Any]) -> NDArray[np.float32]:
    scaled = rows.astype(np.float32)
    if normalize:
        kernels.scale_to_unit(scaled, scaling, scaled)
    return scaled


def _serve(
    scaling: ViewScaling, normalize: bool, rotation: NDArray[np.float32] | None, rows: NDArray[Any]
) -> NDArray[np.float32]:
    scaled = _scale(scaling, normalize, rows)
    return scaled if rotation is None else scaled @ rotation
