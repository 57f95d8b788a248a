"""The objective that the rules approximate: the two losses of the paper, and the optimum of their sum."""

from ripplevec.lab.objective.losses import Loss, LossWeights, Objective, homophily_loss, smoothness_loss
from ripplevec.lab.objective.stiefel import (
    Iterate,
    Optimum,
    descend,
    minimize,
    polar_factor,
    project_to_tangent,
    random_start,
    retract,
    warm_start,
)

__all__ = [
    "Iterate",
    "Loss",
    "LossWeights",
    "Objective",
    "Optimum",
    "descend",
    "homophily_loss",
    "minimize",
    "polar_factor",
    "project_to_tangent",
    "random_start",
    "retract",
    "smoothness_loss",
    "warm_start",
]
