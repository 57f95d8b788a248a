"""Where a view's large matrices are worked on: the processor, or a GPU if that is asked for."""

from __future__ import annotations

import os

from ripplet.errors import one_of
from ripplet.graph.adjacency import Adjacency
from ripplet.views.operators import Operator

DEVICES = ("auto", "cpu", "cuda")
VARIABLE = "RIPPLET_DEVICE"
"""The environment variable that says what "auto" is; without it, the processor."""


def operator_on(device: str, adjacency: Adjacency, rows: int, tau: float, threads: int) -> Operator:
    """The operator of a view on a device; a GPU is never chosen unasked, because its last bits are its own."""
    chosen = os.environ.get(VARIABLE, "cpu") if device == "auto" else device
    one_of(VARIABLE, chosen, ("cpu", "cuda"))
    if chosen == "cpu":
        return Operator(adjacency, rows, tau, threads)
    from ripplet.views.gpu import GpuOperator

    return GpuOperator(adjacency, rows, tau, threads)
