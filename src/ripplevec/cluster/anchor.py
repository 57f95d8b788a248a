"""Anchors and starts on shards: `RippleRule.anchor` and `RippleRule.start` with the rows where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.cluster.distributed_matrix import DistributedGraph, copied
from ripplevec.cluster.transport import Transport
from ripplevec.rules.anchor import CorrectionError, align_to_products, bases_from_scratch
from ripplevec.rules.ripple import RippleRule, export_coordinates
from ripplevec.views.base import Basis, Progress
from ripplevec.views.coordinates import Coordinates
from ripplevec.views.solvers import DENSE

Rows = NDArray[np.int64]


def anchor(transport: Transport, rule: RippleRule, sequence: int, threshold: float) -> list[Rows]:
    """Correct all vectors, turned so that on the whole they are served as before; by shard, which rows moved further.

    The coordinates that the rule has then are to be told to the shards.
    """
    with DistributedGraph(transport, rule.dim, rule.precision) as workspace:
        vectors: Any = workspace.vectors
        traits, space, bases = rule.solve_anchor(workspace, vectors, sequence, copied, _solve)
        pieces = _pieces(bases)
        align_to_products(space, bases, workspace.sum_over_shards("agreement", pieces=pieces, learned=export_coordinates(traits, space)))
        new: dict[str, Any] = {"pieces": pieces, "learned": export_coordinates(traits, space)}
        moved = transport.get(workspace.submit_step("apart", **new, threshold=threshold))
        transport.get(workspace.submit_step("keep", **new))
    rule.set_coordinates(traits, space)
    return moved


class TooSmallError(CorrectionError):
    """A graph is too small to be solved from nothing on shards: it is to be solved in one place."""


def _solve(space: Coordinates, workspace: Any, rows: int, threads: int) -> list[Basis]:
    if workspace.totals().active <= 2 * space.dim + DENSE:
        raise TooSmallError("the graph has too few vertices to be solved from nothing on shards")
    return bases_from_scratch(space, workspace, rows, threads)


def start(transport: Transport, rule: RippleRule, progress: Progress | None) -> None:
    """Embed the graph from nothing; the coordinates that the rule has then are to be told to the shards."""
    with DistributedGraph(transport, rule.dim, rule.precision) as workspace:
        traits, space, bases = rule.solve_start(workspace, workspace.rows, progress)
        transport.get(workspace.submit_step("keep", pieces=_pieces(bases), learned=export_coordinates(traits, space)))
    rule.set_coordinates(traits, space)


def _pieces(bases: list[Basis]) -> list[Any]:
    matrices: list[Any] = [basis.rows for basis in bases]
    return [sheet.piece for sheet in matrices]
