"""Kind `checkpoint`: what a careful user would do without a stream: retrain a `method` after `every` share of it.

Each arrival is judged by the first embedding that knows it. `start` is the share of the vertices that are there from
the beginning, and the training set. `ripplevec` and `paper` here are our embeddings computed from nothing each time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.errors import check_choice
from ripplevec.lab.baselines import BASELINES
from ripplevec.lab.evaluation import score_at_checkpoints
from ripplevec.lab.experiments.kinds.base import (
    Configuration,
    Kind,
    Measured,
    check_order,
    check_share,
    data,
    order_seed,
    percent,
    small,
    without,
)
from ripplevec.lab.experiments.kinds.methods import OURS, check_method, is_retrained, ours, retrained, spelt_out

OWN = ("start", "every", "arrival_order")


def _check(configuration: Configuration) -> None:
    check_share("start", configuration.get("start"))
    check_share("every", configuration.get("every", 0.05))
    check_order(configuration)
    check_choice("method", configuration.get("method"), [*OURS, *BASELINES])
    check_method(configuration, *OWN)


def _run(configuration: Configuration) -> Measured:
    method, embed = _embedding(configuration["method"], without(configuration, "method", *OWN))
    embed(small().adjacency())
    every = configuration.get("every", 0.05)
    result = score_at_checkpoints(embed, data(configuration), configuration["start"], order_seed(configuration), every)
    figures = percent("checkpoint", result.scores)
    figures["retrain_seconds"] = float(np.mean(result.retrain_seconds))
    return Measured(figures | {"retrainings": len(result.retrain_seconds)}, spelt_out(method))


KIND = Kind(_check, _run)


def _embedding(name: str, parameters: Configuration) -> tuple[Any, Callable[[csr_array], NDArray[Any]]]:
    if is_retrained(name):
        method = retrained(name, parameters)
        return method, method.embed
    model = ours(name, parameters)
    return model, lambda graph: model.fit(graph).vectors(np.arange(graph.shape[0]))
