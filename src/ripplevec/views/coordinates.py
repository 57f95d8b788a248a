"""The coordinates that the rows of a model are in: the columns of its views between two anchors.

Inside, each view's rows are in eigen-coordinates, where a refresh is diagonal. Outside, they are scaled view by view
and turned by one orthogonal matrix, chosen at each anchor so that vectors served before and after agree best.
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

SMALLEST_MU = 0.02  # a refresh divides by μ/μ₁, but not by less than this
HEADROOM = 2.0  # how much longer a refreshed row may be than the longest row at the last start or anchor
LONGEST = 2.0**15  # the longest row in any case: half precision holds numbers up to twice this
_ARRAYS = ("tau", "mu", "center", "longest")


class Coordinates:
    """Views, their columns, and per column what a refresh and a reader need."""

    def __init__(self, views: Sequence[View], dim: int, normalize: bool = True) -> None:
        columns = allocate_columns(dim, views)
        self.views = [view for view, count in zip(views, columns, strict=True) if count]
        bounds = np.cumsum([0, *(count for count in columns if count)])
        self.parts = [slice(int(first), int(last)) for first, last in pairwise(bounds)]
        self.dim, self.normalize = dim, normalize
        weights, flatten = ([getattr(view, name) for view in self.views] for name in ("weight", "flatten"))
        self.scaling = ViewScaling(bounds, np.array(weights, np.float64), np.array(flatten, np.float64))
        self.ready = False  # until a start or an anchor has set what follows
        self.tau = np.zeros(len(self.views))
        self.longest = np.zeros(len(self.views))
        self.mu = np.zeros(dim)
        self.center = np.zeros(dim)
        self.set_rotation(None)  # until the first anchor

    def new_like(self) -> Coordinates:
        """The same views, with nothing learned."""
        return Coordinates(self.views, self.dim, self.normalize)

    def adopt_bases(self, bases: Sequence[Basis]) -> None:
        """Take over what new bases say."""
        for view, (part, basis) in enumerate(zip(self.parts, bases, strict=True)):
            self.tau[view], self.mu[part], self.center[part] = basis.tau, basis.mu, basis.center
            self.longest[view] = basis.longest
        self.ready = True

    @property
    def length_bounds(self) -> NDArray[np.float64]:
        """The length that a refreshed row may have, per view; see "The bound" in docs/method.md."""
        return np.clip(HEADROOM * self.longest, 1.0, LONGEST)

    def set_rotation(self, turn: NDArray[np.float64] | None) -> None:
        """Serve in these coordinates from now on."""
        self.rotation = turn
        self._serve = partial(_serve, self.scaling, self.normalize, None if turn is None else turn.astype(np.float32))

    def refresh_coefficients(self, kind: Any, unit: float = 1.0) -> RefreshCoefficients:
        """What a refresh needs, in the precision of the rows, where a weight of one is written down as this."""
        top = np.array([self.mu[part].max(initial=0.0) for part in self.parts])
        top[top <= MIN_EIGENVALUE] = (
            1.0  # all rows are zero: to divide faint weights by next to nothing makes them no number
        )
        bounds, ridge = self.scaling.bounds, [view.ridge for view in self.views]
        mu = np.maximum(self.mu / np.repeat(top, np.diff(bounds)), SMALLEST_MU)
        limits = self.length_bounds, self.length_bounds / np.sqrt(np.diff(bounds))
        views = np.stack([self.tau, top, np.array(ridge, np.float64), *limits], axis=1)
        frame = RefreshCoefficients(bounds, views, np.stack([mu, self.center]).astype(kind))
        self.set_weight_unit(frame, unit)
        return frame

    def set_weight_unit(self, frame: RefreshCoefficients, unit: float) -> None:
        """Have a frame of these coordinates for another unit of weights: τ and the center are in it."""
        frame.views[:, 0] = self.tau * unit
        frame.columns[1] = self.center * unit

    def scale_rows(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Rows as readers get them, but for the turn; what is compared when neighbors are sought."""
        return _scale(self.scaling, self.normalize, rows)

    def to_served(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Rows as readers get them; the argument is left as it is."""
        return self._serve(rows)

    def served_transform(self) -> Callable[[NDArray[Any]], NDArray[np.float32]]:
        """`serve` with the turn of now, whatever anchors come later."""
        return self._serve

    def to_internal(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        """Served vectors turned back."""
        exact = np.asarray(vectors, np.float64)
        return exact if self.rotation is None else exact @ self.rotation.T

    def state(self) -> dict[str, NDArray[Any]]:
        """What has been learned, as arrays."""
        learned: dict[str, NDArray[Any]] = {name: getattr(self, name).copy() for name in _ARRAYS}
        if self.rotation is not None:
            learned["turn"] = self.rotation.copy()
        return learned | {"ready": np.array(self.ready)}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        for name in _ARRAYS:
            if state[name].shape != getattr(self, name).shape:
                raise FormatError(f"the saved coordinates do not fit the views: {name} has shape {state[name].shape}")
            setattr(self, name, state[name].astype(np.float64))
        self.set_rotation(state.get("turn"))
        self.ready = bool(state["ready"])


def identity_scaling(dim: int) -> ViewScaling:
    """Scaling that changes no direction: one view, its lengths kept."""
    return ViewScaling(np.array([0, dim]), np.ones(1), np.zeros(1))


def _scale(scaling: ViewScaling, normalize: bool, rows: NDArray[Any]) -> NDArray[np.float32]:
    scaled = rows.astype(np.float32)
    if normalize:
        kernels.scale_to_unit(scaled, scaling, scaled)
    return scaled


def _serve(
    scaling: ViewScaling, normalize: bool, turn: NDArray[np.float32] | None, rows: NDArray[Any]
) -> NDArray[np.float32]:
    scaled = _scale(scaling, normalize, rows)
    return scaled if turn is None else scaled @ turn
