"""Where a view's large matrices are worked on: the processor, a GPU if that is asked for, or where the graph is."""

from __future__ import annotations

import os
from typing import Protocol

from ripplevec.errors import check_choice
from ripplevec.graph.adjacency import Adjacency, Totals
from ripplevec.views.operators import Operator

DEVICES = ("auto", "cpu", "cuda")
VARIABLE = "RIPPLEVEC_DEVICE"
"""The environment variable that says what "auto" is; without it, the processor."""


class RemoteAdjacency(Protocol):
    """A graph that is not in this process: it has the operators of views, and the matrices they work on."""

    def totals(self, rows: int) -> Totals:
        """Sums over all rows."""

    def operator(self, tau: float) -> Operator:
        """The operator of a view with this τ."""


AdjacencyLike = Adjacency | RemoteAdjacency
"""What a view looks at."""


def weight_unit(adjacency: AdjacencyLike) -> float:
    """What a weight of one that comes now is written down as; in a graph that lies elsewhere weights do not fade."""
    return adjacency.weight_scale.unit if isinstance(adjacency, Adjacency) else 1.0


def make_operator(device: str, adjacency: AdjacencyLike, rows: int, tau: float, threads: int) -> Operator:
    """The operator of a view on a device; a GPU is never chosen unasked, because its last bits are its own."""
    if not isinstance(adjacency, Adjacency):
        return adjacency.operator(tau)
    chosen = os.environ.get(VARIABLE, "cpu") if device == "auto" else device
    check_choice(VARIABLE, chosen, ("cpu", "cuda"))
    if chosen == "cpu":
        return Operator(adjacency, rows, tau, threads)
    from ripplevec.views.gpu import GpuOperator

    return GpuOperator(adjacency, rows, tau, threads)
