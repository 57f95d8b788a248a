"""Anchors and starts on shards: `RippleRule.anchor` and `RippleRule.start` with the rows where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.cluster.distributed_matrix import Ground, copied
from ripplevec.cluster.transport import Crew
from ripplevec.rules.anchor import CorrectionError, from_nothing, settle
from ripplevec.rules.ripple import RippleRule, learned
from ripplevec.views.base import Basis, Progress
from ripplevec.views.coordinates import Space
from ripplevec.views.solvers import DENSE

Rows = NDArray[np.int64]


def anchor(crew: Crew, rule: RippleRule, sequence: int, threshold: float) -> list[Rows]:
    """Correct all vectors, turned so that on the whole they are served as before; by shard, which rows moved further.

    The coordinates that the rule has then are to be told to the shards.
    """
    with Ground(crew, rule.dim, rule.precision) as ground:
        vectors: Any = ground.vectors
        traits, space, bases = rule.next_bases(ground, vectors, sequence, copied, _solve)
        pieces = _pieces(bases)
        settle(space, bases, ground.add_up("agreement", pieces=pieces, learned=learned(traits, space)))
        new: dict[str, Any] = {"pieces": pieces, "learned": learned(traits, space)}
        moved = crew.get(ground.ask("apart", **new, threshold=threshold))
        crew.get(ground.ask("keep", **new))
    rule.take(traits, space)
    return moved


class TooSmallError(CorrectionError):
    """A graph is too small to be solved from nothing on shards: it is to be solved in one place."""


def _solve(space: Space, ground: Any, rows: int, threads: int) -> list[Basis]:
    if ground.totals().active <= 2 * space.dim + DENSE:
        raise TooSmallError("the graph has too few vertices to be solved from nothing on shards")
    return from_nothing(space, ground, rows, threads)


def start(crew: Crew, rule: RippleRule, progress: Progress | None) -> None:
    """Embed the graph from nothing; the coordinates that the rule has then are to be told to the shards."""
    with Ground(crew, rule.dim, rule.precision) as ground:
        traits, space, bases = rule.first_bases(ground, ground.rows, progress)
        crew.get(ground.ask("keep", pieces=_pieces(bases), learned=learned(traits, space)))
    rule.take(traits, space)


def _pieces(bases: list[Basis]) -> list[Any]:
    sheets: list[Any] = [basis.rows for basis in bases]
    return [sheet.piece for sheet in sheets]
