"""What the rules approximate: the paper's two losses, and the optimum of their sum."""

from ripplevec.lab.objective.losses import Loss, Objective, Weights, homophily, smoothness
from ripplevec.lab.objective.stiefel import (
    Iterate,
    Optimum,
    descend,
    minimize,
    polar,
    random_start,
    retract,
    tangent,
    warm_start,
)

__all__ = [
    "Iterate",
    "Loss",
    "Objective",
    "Optimum",
    "Weights",
    "descend",
    "homophily",
    "minimize",
    "polar",
    "random_start",
    "retract",
    "smoothness",
    "tangent",
    "warm_start",
]
