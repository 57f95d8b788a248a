"""The coordinates that the rows of a model are in: the columns of its views between two anchors.

Inside, each view's rows are in eigen-coordinates, where a refresh is diagonal. Outside, they are served turned by an
orthogonal matrix per view that is chosen at each anchor so that vectors served before and after agree best.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplet.errors import FormatError
from ripplet.views import _kernels as kernels
from ripplet.views._kernels import Frame
from ripplet.views.base import Basis, View, share_columns

SMALLEST_MU = 0.02  # a refresh divides by μ/μ₁, but not by less than this
_ARRAYS = ("tau", "mu", "centre", "turns")


class Space:
    """Views, their columns, and per column what a refresh and a reader need."""

    def __init__(self, views: Sequence[View], dim: int, normalize: bool = True) -> None:
        columns = share_columns(dim, views)
        self.views = [view for view, count in zip(views, columns, strict=True) if count]
        self.bounds = np.cumsum([0, *(count for count in columns if count)])
        self.weights = np.array([view.weight for view in self.views], np.float64)
        self.normalize = normalize
        self.dim = dim
        self.ready = False  # until a start or an anchor has set what follows
        self.tau = np.zeros(len(self.views))
        self.mu = np.zeros(dim)
        self.centre = np.zeros(dim)
        self.turns = np.zeros((dim, dim))  # block-diagonal; the identity until the first anchor
        np.fill_diagonal(self.turns, 1.0)
        self.served_turns: list[NDArray[np.float32]] = []  # the blocks of `turns`, empty while they are identities

    def columns(self, view: int) -> slice:
        """The columns of a view."""
        return slice(int(self.bounds[view]), int(self.bounds[view + 1]))

    def settle(self, bases: Sequence[Basis], turns: Sequence[NDArray[np.float64]] | None = None) -> None:
        """Take over what new bases say; with new turns the old ones are replaced."""
        for view, basis in enumerate(bases):
            part = self.columns(view)
            self.tau[view], self.mu[part], self.centre[part] = basis.tau, basis.mu, basis.centre
            if turns is not None:
                self.turns[part, part] = turns[view]
        if turns is not None:
            self.served_turns = [turn.astype(np.float32) for turn in turns]
        self.ready = True

    def frame(self, kind: Any) -> Frame:
        """What a refresh needs, in the precision of the rows."""
        top = np.array([max(self.mu[self.columns(view)].max(initial=0.0), 1e-12) for view in range(len(self.views))])
        relative = self.mu / np.repeat(top, np.diff(self.bounds))
        ridge = np.array([view.ridge for view in self.views], np.float64)
        mu = np.maximum(relative, SMALLEST_MU).astype(kind)
        return Frame(self.bounds, self.tau.copy(), top, ridge, mu, self.centre.astype(kind))

    def serve(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Rows as readers get them; the argument is left as it is."""
        return self.server()(rows)

    def server(self) -> Callable[[NDArray[Any]], NDArray[np.float32]]:
        """`serve` with the turns of now: an anchor replaces the list, it does not alter it."""
        return partial(_serve, self.served_turns, self.bounds, self.weights, self.normalize)

    def inside(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        """Served vectors in inside coordinates (turned back; lengths stay as they are)."""
        turned: NDArray[np.float64] = np.asarray(vectors, np.float64) @ self.turns.T
        return turned

    def state(self) -> dict[str, NDArray[Any]]:
        """What has been learned, as arrays."""
        return {name: getattr(self, name).copy() for name in _ARRAYS} | {"flags": np.array([self.ready, bool(self.served_turns)])}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        for name in _ARRAYS:
            if state[name].shape != getattr(self, name).shape:
                raise FormatError(f"the saved coordinates do not fit the views: {name} has shape {state[name].shape}")
            setattr(self, name, state[name].astype(np.float64))
        self.ready, turned = (bool(flag) for flag in state["flags"])
        parts = [self.columns(view) for view in range(len(self.views))] if turned else []
        self.served_turns = [self.turns[part, part].astype(np.float32) for part in parts]


def _serve(
    turns: list[NDArray[np.float32]],
    bounds: NDArray[np.int64],
    weights: NDArray[np.float64],
    normalize: bool,
    rows: NDArray[Any],
) -> NDArray[np.float32]:
    served = rows.astype(np.float32)
    for view, turn in enumerate(turns):
        part = slice(bounds[view], bounds[view + 1])
        served[:, part] = rows[:, part].astype(np.float32) @ turn
    if normalize:
        kernels.serve(bounds, weights, served)
    return served
