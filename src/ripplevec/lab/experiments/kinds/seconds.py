"""Kind `seconds`: ours against retraining, one after another in one run: the paper's figure of running times.

Ours is the start and the whole stream, from each of the `shares`, with anchors and without, and by rule `paper`; a
baseline is one retraining on the final graph. `baselines` gives the settings of each, `threads` holds for all; null
stands for all cores. The latencies of single arrivals are those of the stream from the middle one of the `shares`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import asdict, fields

import numpy as np
from threadpoolctl import threadpool_limits

from ripplevec.embedder import Embedder
from ripplevec.lab.baselines import Baseline, get_baseline
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.evaluation import measure_latency, stream
from ripplevec.lab.experiments.kinds.base import (
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
from ripplevec.lab.experiments.kinds.methods import OURS, embedder, embedding, spelt_out
from ripplevec.util.parallel import resolve_threads

WALKERS = ("deepwalk", "node2vec", "struc2vec")
"""Those whose fastest retraining ours is compared with."""

FIRST_SHARES = (0.1, 0.9)
"""Where streams begin that kernels are compiled with: a start that the dense solver takes, and one too large for it."""

STREAMS: dict[str, Configuration] = {
    "ripplevec": OURS["ripplevec"],
    "ripplevec_no_anchor": {"anchor_growth": 0},
    "paper": OURS["paper"],
}


def _check(configuration: Configuration) -> None:
    check_only(configuration, "dim", "threads", "shares", "baselines")
    check_shares(configuration.get("shares"))
    _ours(configuration)
    retrainings(configuration)


def _run(configuration: Configuration) -> Measured:
    dataset, methods = data(configuration), retrainings(configuration)
    with limited_to(configuration["threads"]):
        for share in FIRST_SHARES:
            for model in _ours(configuration).values():
                stream(model, small(), share)
        for method in methods.values():
            method.embed(small().adjacency())
        figures = {name: embedding(method, dataset)[0] for name, method in methods.items()}
        for name in STREAMS:
            figures |= _streams(configuration, dataset, name)
    figures |= _ratios(figures)
    return Measured(figures, {name: spelt_out(own) for name, own in {**_ours(configuration), **methods}.items()})


KIND = Kind(_check, _run, alone=True)


def limited_to(threads: int | None) -> AbstractContextManager[object]:
    """Holds what the linear algebra underneath may use to the same number of threads."""
    limited: AbstractContextManager[object] = threadpool_limits(limits=resolve_threads(threads))
    return limited


def common(configuration: Configuration) -> Configuration:
    """What holds for all methods of a cell: dimension, seed and threads, as a number."""
    return {
        "dim": configuration["dim"],
        "seed": configuration["seed"],
        "threads": resolve_threads(configuration["threads"]),
    }


def _ours(configuration: Configuration) -> dict[str, Embedder]:
    """Fresh models."""
    return {name: _model(configuration, name) for name in STREAMS}


def _model(configuration: Configuration, name: str) -> Embedder:
    return embedder({**common(configuration), **STREAMS[name]})


def retrainings(configuration: Configuration) -> dict[str, Baseline]:
    """The methods to compare with, with the dimension, the seed and the threads of the cell."""
    found = {}
    for name, own in configuration.get("baselines", {}).items():
        kind = get_baseline(name)
        shared = {key: value for key, value in common(configuration).items() if key in _settings(kind)}
        found[name] = kind(**{**shared, **(own or {})})
    return found


def _settings(kind: type[Baseline]) -> set[str]:
    return {field.name for field in fields(kind)}  # type: ignore[arg-type]


def _streams(configuration: Configuration, dataset: Dataset, name: str) -> Figures:
    """Seconds of start and stream from each share, their mean, the mean microseconds of an arrival, and latencies."""
    shares, whole, each, figures = configuration["shares"], {}, [], {}
    for share in shares:
        result = stream(_model(configuration, name), dataset, share, configuration["seed"])
        whole[f"{name}{at(share)}"] = result.start_seconds + result.stream_seconds
        each.append(1e6 * result.stream_seconds / len(result.arrival_seconds))
        if share == shares[len(shares) // 2]:
            figures = {f"{name}_{part}_us": value for part, value in asdict(measure_latency(result)).items()}
    means = {name: float(np.mean(list(whole.values()))), f"{name}_arrival_us": float(np.mean(each))}
    return means | whole | figures


def _ratios(figures: Figures) -> Figures:
    """How many times faster than the fastest retraining by walks; nothing where there was none."""
    walkers = [figures[name] for name in WALKERS if name in figures]
    if not walkers:
        return {}
    fastest = min(walkers)
    ratios = {"fastest_walker": fastest}
    for name in STREAMS:
        ratios[f"{name}_times_faster"] = fastest / figures[name]
        ratios[f"{name}_arrival_times_faster"] = 1e6 * fastest / figures[f"{name}_arrival_us"]
    return ratios
