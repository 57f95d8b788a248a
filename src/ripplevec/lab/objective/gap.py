"""How close a model is to what its rule approximates: the losses of the paper, and each view's part of its spectrum.

The losses are defined for vectors with FᵀF = I. Rule `paper` keeps that; the rows of rule `ripple` are scaled by degree
and spectrum and are brought there by the polar decomposition, which changes them least. Vertices without an edge are
left out: they cost nothing and would only dilute the rest.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ripplevec.engine.reads import EngineReads
from ripplevec.lab.objective import Objective, polar
from ripplevec.lab.objective.bound import least_homophily
from ripplevec.rules.base import Rule
from ripplevec.rules.ripple import RippleRule
from ripplevec.util.parallel import limit_blas_to_one_thread
from ripplevec.views.base import View


class Gap(NamedTuple):
    """How much of its operator's spectrum a view holds: the sums of Ritz values and of leading eigenvalues."""

    reached: float
    best: float

    @property
    def share(self) -> float:
        """1 at the optimum."""
        return self.reached / self.best if self.best > 0 else 1.0


class Gatherable(Protocol):
    """A state that can be had in one place, if it is not there already."""

    def gather(self) -> EngineReads:
        """All of it in one place."""


def losses(held: Gatherable, since: Gatherable | None = None, *, bound: bool = False) -> dict[str, float | None]:
    """The paper's losses, smoothness since an earlier state; None throughout where FᵀF = I cannot hold.

    `bound` adds what no vectors can go below: the least homophily loss, and γ_h times it for the total.
    """
    names = ["smoothness", "homophily", "total"] + ["least_homophily", "least_total"] * bound
    engine = held.gather()
    now = _feasible(engine)
    if now is None:
        return dict.fromkeys(names)
    rows, vectors = now
    adjacency = engine.graph.adjacency.to_csr()[rows][:, rows] / engine.graph.adjacency.weight_scale.unit
    objective = Objective(adjacency, *_earlier(engine, rows, None if since is None else since.gather()))
    loss = objective.loss(vectors)
    values: list[float | None] = [loss.smoothness, loss.homophily, loss.total]
    if bound:
        least = least_homophily(adjacency, vectors.shape[1])
        values += [least, objective.weights.homophily * least]
    return dict(zip(names, values, strict=True))


def gaps(held: Gatherable, best: dict[tuple[View, int], float] | None = None) -> list[Gap]:
    """Per view of rule `ripple`, how much of the best it holds; nothing before the start, nor for rule `paper`.

    `best` keeps the best of the views from one call to the next, for as long as the graph stays as it is.
    """
    best = {} if best is None else best
    engine = held.gather()
    rule = engine.rule
    if not isinstance(rule, RippleRule) or not rule.ready:
        return []
    space, adjacency, rows, threads = rule.coordinates, engine.graph.adjacency, engine.graph.row_count, rule.threads
    found = []
    with limit_blas_to_one_thread():
        for view, part in zip(space.views, space.parts, strict=True):
            columns = part.stop - part.start
            if (view, columns) not in best:
                best[view, columns] = view.attainable_spectrum(adjacency, rows, columns, threads=threads)
            reached = view.captured_spectrum(adjacency, engine.store.vectors[:rows, part], threads=threads)
            found.append(Gap(reached, best[view, columns]))
    return found


def orthonormal(rule: Rule, rows: NDArray[Any]) -> NDArray[np.float64]:
    """The nearest rows with FᵀF = I; those of rule `ripple` in the coordinates they are served in."""
    with limit_blas_to_one_thread():
        vectors = polar(rows.astype(np.float64))
    turn = rule.coordinates.rotation if isinstance(rule, RippleRule) else None
    return vectors if turn is None else vectors @ turn


def _feasible(engine: EngineReads) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
    """The rows with edges, in order of arrival, and their vectors with FᵀF = I, turned as they are served."""
    order = engine.graph.rows_by_arrival()
    rows = order[engine.graph.adjacency.links.degree[order] > 0]
    if rows.size < engine.store.vectors.shape[1]:
        return None
    return rows, orthonormal(engine.rule, engine.store.vectors[rows])


def _earlier(engine: EngineReads, rows: NDArray[np.int64], since: EngineReads | None) -> tuple[Any, Any]:
    """The vectors of an earlier state and where their vertices are now; those that are gone are left out."""
    if since is None or (before := _feasible(since)) is None:
        return None, None
    place = np.full(engine.graph.row_count + 1, -1)  # the last is for those that are gone, whose row is −1
    place[rows] = np.arange(rows.size)
    now = place[engine.graph.ids.find_rows(since.graph.ids.to_column(before[0]))]
    return before[1][now >= 0], now[now >= 0]
