"""What the weights of a graph mean where they fade: written down once, they are worth less as time goes by."""

from __future__ import annotations

from typing import NamedTuple

FAINTEST = 2.0**-100
"""No weight is written down as less: it weighs nothing, but is there, and far from the end of single precision."""


class Scale(NamedTuple):
    """What weights are measured by. Where nothing fades they mean what they say."""

    unit: float = 1.0  # what a weight of one that comes now is written down as
    live: float = float("inf")  # how many edges have not faded: the effective number of them, at most all
