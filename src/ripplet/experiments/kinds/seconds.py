"""Kind `seconds`: ours against retraining, one after another in one run: the paper's figure of running times.

Ours is the start and the whole stream, from each of the `shares`, with anchors and without; a baseline is one
retraining on the final graph. `baselines` gives the settings of each, `threads` holds for all.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import fields
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from ripplet.baselines import Baseline, baseline
from ripplet.datasets import Dataset
from ripplet.embedder import Embedder
from ripplet.evaluation import stream
from ripplet.evaluation.protocols import timed
from ripplet.experiments.kinds.base import (
    Configuration,
    Figures,
    Kind,
    Measured,
    at,
    check_only,
    check_shares,
    data,
    small,
)
from ripplet.experiments.kinds.methods import embedder, spelt_out

WALKERS = ("deepwalk", "node2vec", "struc2vec")
"""Those whose fastest retraining ours is compared with."""

WITH_ANCHORS, WITHOUT = "ripplet", "ripplet_no_anchor"
ANCHORS: dict[str, Configuration] = {WITH_ANCHORS: {}, WITHOUT: {"anchor_growth": 0}}


def _check(configuration: Configuration) -> None:
    check_only(configuration, "dim", "threads", "shares", "baselines")
    check_shares(configuration.get("shares"))
    _ours(configuration, {})
    retrainings(configuration)


def _run(configuration: Configuration) -> Measured:
    dataset, methods = data(configuration), retrainings(configuration)
    with one_thread_each(configuration["threads"]):
        for name in ANCHORS:
            stream(_ours(configuration, ANCHORS[name]), small())
        for method in methods.values():
            method.embed(small().adjacency())
        figures = {name: timed(partial(method.embed, dataset.adjacency()))[0] for name, method in methods.items()}
        for name in ANCHORS:
            figures |= _streams(configuration, dataset, name)
    figures |= _ratios(figures)
    return Measured(figures, {name: spelt_out(method) for name, method in methods.items()})


KIND = Kind(_check, _run, alone=True)


def one_thread_each(threads: int) -> AbstractContextManager[object]:
    """Holds what the linear algebra underneath may use to the same number of threads."""
    return threadpool_limits(limits=threads)


def _ours(configuration: Configuration, anchors: Configuration) -> Embedder:
    common = {name: configuration[name] for name in ("dim", "seed", "threads")}
    return embedder({**common, **anchors})


def retrainings(configuration: Configuration) -> dict[str, Baseline]:
    """The methods to compare with, with the dimension, the seed and the threads of the cell."""
    found = {}
    for name, own in configuration.get("baselines", {}).items():
        kind = baseline(name)
        common = {key: configuration[key] for key in ("dim", "seed", "threads") if key in _settings(kind)}
        found[name] = kind(**{**common, **(own or {})})
    return found


def _settings(kind: type[Baseline]) -> set[str]:
    return {field.name for field in fields(kind)}  # type: ignore[arg-type]


def _streams(configuration: Configuration, dataset: Dataset, name: str) -> Figures:
    """Seconds of start and stream from each share, their mean, and the mean microseconds of an arrival."""
    whole, each = {}, []
    for share in configuration["shares"]:
        result = stream(_ours(configuration, ANCHORS[name]), dataset, share, configuration["seed"])
        whole[f"{name}{at(share)}"] = result.start_seconds + result.stream_seconds
        each.append(1e6 * result.stream_seconds / len(result.arrival_seconds))
    return {name: float(np.mean(list(whole.values()))), f"{name}_arrival_us": float(np.mean(each)), **whole}


def _ratios(figures: Figures) -> Figures:
    """How many times faster than the fastest retraining by walks; nothing where there was none."""
    walkers = [figures[name] for name in WALKERS if name in figures]
    if not walkers:
        return {}
    fastest = min(walkers)
    ratios = {"fastest_walker": fastest}
    for name in ANCHORS:
        ratios[f"{name}_times_faster"] = fastest / figures[name]
        ratios[f"{name}_arrival_times_faster"] = 1e6 * fastest / figures[f"{name}_arrival_us"]
    return ratios
