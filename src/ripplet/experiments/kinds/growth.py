"""Kind `growth`: what a start, an arrival and an anchor cost on a generated graph of so many `vertices`.

The last `arrivals` come one at a time, in the order the graph grew. An anchor is shared out over the arrivals that it
comes after. `baselines` gives the settings of those that are retrained on the graph, for comparison.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ripplet.embedder import Embedder
from ripplet.errors import InvalidValueError, one_of
from ripplet.evaluation import stream
from ripplet.evaluation.protocols import timed
from ripplet.experiments.kinds.base import Configuration, Figures, Kind, Measured, check_only, data, small
from ripplet.experiments.kinds.methods import embedder, spelt_out
from ripplet.experiments.kinds.seconds import one_thread_each, retrainings

GROWTH = 0.05
"""The growth between two anchors that an anchor is shared out over: the default of rule `ripple`."""

SIZED = ("preferential_attachment",)
"""The generated graphs that can be of any size."""


def _check(configuration: Configuration) -> None:
    one_of("dataset", configuration["dataset"], SIZED)
    check_only(configuration, "dim", "threads", "vertices", "arrivals", "baselines")
    for name in ("vertices", "arrivals"):
        if not isinstance(configuration.get(name), int) or configuration[name] < 1:
            raise InvalidValueError.of(name, "a whole number ≥ 1", configuration.get(name))
    _model(configuration)
    retrainings(configuration)


def _run(configuration: Configuration) -> Measured:
    size = configuration["vertices"]
    dataset, arrivals = data(configuration, vertices=size), min(configuration["arrivals"], size // 2)
    with one_thread_each(configuration["threads"]):
        stream(_model(configuration), small())
        model = _model(configuration)
        result = stream(model, dataset, 1 - arrivals / size, seed=None)
        anchor_seconds, _ = timed(model.anchor)
        figures: Figures = {
            "start_seconds": result.start_seconds,
            "arrival_us": 1e6 * float(np.mean(result.arrival_seconds)),
            "anchor_seconds": anchor_seconds,
            "anchor_share_us": 1e6 * anchor_seconds / (GROWTH * size),
        }
        for name, method in retrainings(configuration).items():
            method.embed(small().adjacency())
            figures[f"{name}_seconds"] = timed(partial(method.embed, dataset.adjacency()))[0]
    return Measured(figures, spelt_out(model))


KIND = Kind(_check, _run, alone=True)


def _model(configuration: Configuration) -> Embedder:
    return embedder({name: configuration[name] for name in ("dim", "seed", "threads")} | {"anchor_growth": 0})
