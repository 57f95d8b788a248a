"""Choice of the operator implementation of a view: CPU, GPU, or the shards of a distributed graph."""

from __future__ import annotations

import os
from typing import Protocol

from ripplevec.errors import check_choice
from ripplevec.graph.adjacency import Adjacency, Totals
from ripplevec.views.operators import Operator

DEVICES = ("auto", "cpu", "cuda")
DEVICE_VARIABLE = "RIPPLEVEC_DEVICE"
"""Environment variable that sets the device of views with `device="auto"`; the CPU by default."""


class RemoteAdjacency(Protocol):
    """A graph outside this process that supplies operators and the matrices they work on."""

    def totals(self, rows: int) -> Totals:
        """Return sums over all rows."""

    def operator(self, tau: float) -> Operator:
        """Return the operator of a view with this τ."""


AdjacencyLike = Adjacency | RemoteAdjacency
"""A graph that a view can embed."""


def weight_unit(adjacency: AdjacencyLike) -> float:
    """Return the stored weight of a new edge of weight one; 1.0 for remote graphs, whose weights do not decay."""
    return adjacency.weight_scale.unit if isinstance(adjacency, Adjacency) else 1.0


def make_operator(device: str, adjacency: AdjacencyLike, rows: int, tau: float, threads: int) -> Operator:
    """Create the operator of a view. A GPU is used only on request, because its results differ in the last bits."""
    if not isinstance(adjacency, Adjacency):
        return adjacency.operator(tau)
    chosen = os.environ.get(DEVICE_VARIABLE, "cpu") if device == "auto" else device
    check_choice(DEVICE_VARIABLE, chosen, ("cpu", "cuda"))
    if chosen == "cpu":
        return Operator(adjacency, rows, tau, threads)
    from ripplevec.views.gpu import GpuOperator

    return GpuOperator(adjacency, rows, tau, threads)
