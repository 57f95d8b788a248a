"""Kind `growth`: what a start, an arrival and an anchor cost on a generated graph of so many `vertices`.

The last `arrivals` come one at a time, in the order the graph grew. An anchor is shared out over the arrivals that it
comes after. `threads` holds for all, null stands for all cores; start and anchor are measured once more with all.
`baselines` gives the settings of those that are retrained on the graph, for comparison.
"""

from __future__ import annotations

import numpy as np

from ripplevec.embedder import Embedder
from ripplevec.errors import InvalidValueError, check_choice
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.evaluation import stream
from ripplevec.lab.evaluation.protocols import time_call
from ripplevec.lab.experiments.kinds.base import Configuration, Figures, Kind, Measured, check_only, data, small
from ripplevec.lab.experiments.kinds.methods import embedder, embedding, spelt_out
from ripplevec.lab.experiments.kinds.seconds import common, limited_to, retrainings
from ripplevec.parameters import DEFAULT_ANCHOR_GROWTH

SIZED = ("preferential_attachment",)
"""The generated graphs that can be of any size."""


def _check(configuration: Configuration) -> None:
    check_choice("dataset", configuration["dataset"], SIZED)
    check_only(configuration, "dim", "threads", "vertices", "arrivals", "baselines")
    for name in ("vertices", "arrivals"):
        if not isinstance(configuration.get(name), int) or configuration[name] < 1:
            raise InvalidValueError.of(name, "a whole number ≥ 1", configuration.get(name))
    _model(configuration)
    retrainings(configuration)


def _run(configuration: Configuration) -> Measured:
    size = configuration["vertices"]
    dataset, arrivals = data(configuration, vertices=size), min(configuration["arrivals"], size // 2)
    methods, start = retrainings(configuration), 1 - arrivals / size
    _streamed(configuration, small(), 0.5)
    figures = _streamed(configuration, dataset, start)
    figures["anchor_share_us"] = 1e6 * figures["anchor_seconds"] / (DEFAULT_ANCHOR_GROWTH * size)
    all_threads = _streamed(configuration | {"threads": None}, dataset, start)
    for name in ("start", "anchor"):
        figures[f"{name}_all_threads_seconds"] = all_threads[f"{name}_seconds"]
    with limited_to(configuration["threads"]):
        for name, method in methods.items():
            method.embed(small().adjacency())
            figures[f"{name}_seconds"] = embedding(method, dataset)[0]
    ours = {"ripplevec": _model(configuration)}
    return Measured(figures, {name: spelt_out(own) for name, own in {**ours, **methods}.items()})


KIND = Kind(_check, _run, alone=True)


def _model(configuration: Configuration) -> Embedder:
    return embedder(common(configuration) | {"anchor_growth": 0})


def _streamed(configuration: Configuration, dataset: Dataset, start: float) -> Figures:
    """The seconds of a start, the mean microseconds of an arrival, and the seconds of an anchor after all of them."""
    model = _model(configuration)
    with limited_to(configuration["threads"]):
        result = stream(model, dataset, start, seed=None)
        anchor_seconds, _ = time_call(model.anchor)
    return {
        "start_seconds": result.start_seconds,
        "arrival_us": 1e6 * float(np.mean(result.arrival_seconds)),
        "anchor_seconds": anchor_seconds,
    }
