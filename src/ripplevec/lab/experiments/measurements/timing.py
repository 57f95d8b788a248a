"""Measurements of time: `seconds` against retraining, and `growth` with the size of the graph.

- `seconds`: Ripplevec against retraining, one after the other in one process, as in the paper's figure of running
  times. Ripplevec's time is the start and the whole stream from each of the `shares`, with anchors, without anchors,
  and by rule `paper`; a baseline's time is one training on the final graph. The latencies of single arrivals are those
  of the stream from the middle one of the `shares`.
- `growth`: the cost of a start, an arrival and an anchor on a generated graph of `vertices` vertices, whose last
  `arrivals` vertices arrive one at a time in the order the graph grew. The cost of an anchor is divided among the
  arrivals before it. Start and anchor are also measured with all threads.

`baselines` gives the settings of the baselines; `threads` applies to all methods, null stands for all cores.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import asdict, fields

import numpy as np
from threadpoolctl import threadpool_limits

from ripplevec.embedder import Embedder
from ripplevec.errors import InvalidValueError, check_choice
from ripplevec.lab.baselines import Baseline, get_baseline
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.evaluation import measure_latency, stream
from ripplevec.lab.evaluation.protocols import time_call
from ripplevec.lab.experiments.measurements.base import (
    Configuration,
    Measurement,
    Metrics,
    TrialResult,
    check_known_parameters,
    check_shares,
    load_data,
    share_suffix,
    warm_up_graph,
)
from ripplevec.lab.experiments.measurements.method_scores import (
    RIPPLEVEC_METHODS,
    build_embedder,
    full_parameters,
    time_embedding,
)
from ripplevec.parameters import DEFAULT_ANCHOR_GROWTH
from ripplevec.util.parallel import resolve_threads

WALK_METHODS = ("deepwalk", "node2vec", "struc2vec")
"""Baselines by random walks; Ripplevec is compared with the fastest of them."""

WARM_UP_SHARES = (0.1, 0.9)
"""Starts of the warm-up streams: one for the dense solver, and one that is too large for it."""

STREAMS: dict[str, Configuration] = {
    "ripplevec": RIPPLEVEC_METHODS["ripplevec"],
    "ripplevec_no_anchor": {"anchor_growth": 0},
    "paper": RIPPLEVEC_METHODS["paper"],
}

SCALABLE_GENERATORS = ("preferential_attachment",)
"""Generated graphs that can have any size."""


def _check_seconds(configuration: Configuration) -> None:
    check_known_parameters(configuration, "dim", "threads", "shares", "baselines")
    check_shares(configuration.get("shares"))
    _build_stream_models(configuration)
    _build_baselines(configuration)


def _measure_seconds(configuration: Configuration) -> TrialResult:
    dataset, baselines = load_data(configuration), _build_baselines(configuration)
    with _limit_threads(configuration["threads"]):
        for share in WARM_UP_SHARES:
            for model in _build_stream_models(configuration).values():
                stream(model, warm_up_graph(), share)
        for method in baselines.values():
            method.embed(warm_up_graph().adjacency())
        metrics = {name: time_embedding(method, dataset)[0] for name, method in baselines.items()}
        for name in STREAMS:
            metrics |= _time_streams(configuration, dataset, name)
    metrics |= _speedups(metrics)
    methods = {**_build_stream_models(configuration), **baselines}
    return TrialResult(metrics, {name: full_parameters(method) for name, method in methods.items()})


def _build_stream_models(configuration: Configuration) -> dict[str, Embedder]:
    return {name: _build_stream_model(configuration, name) for name in STREAMS}


def _build_stream_model(configuration: Configuration, name: str) -> Embedder:
    return build_embedder({**_common_parameters(configuration), **STREAMS[name]})


def _time_streams(configuration: Configuration, dataset: Dataset, name: str) -> Metrics:
    """Return the seconds of start and stream from each share, their mean, the time per arrival, and latencies."""
    shares, seconds, arrival_us, latencies = configuration["shares"], {}, [], {}
    for share in shares:
        result = stream(_build_stream_model(configuration, name), dataset, share, configuration["seed"])
        seconds[f"{name}{share_suffix(share)}"] = result.start_seconds + result.stream_seconds
        arrival_us.append(1e6 * result.stream_seconds / len(result.arrival_seconds))
        if share == shares[len(shares) // 2]:
            latencies = {f"{name}_{part}_us": value for part, value in asdict(measure_latency(result)).items()}
    means = {name: float(np.mean(list(seconds.values()))), f"{name}_arrival_us": float(np.mean(arrival_us))}
    return means | seconds | latencies


def _speedups(metrics: Metrics) -> Metrics:
    """Return how many times faster the streams are than the fastest walk baseline; empty if there was none."""
    seconds = [metrics[name] for name in WALK_METHODS if name in metrics]
    if not seconds:
        return {}
    fastest = min(seconds)
    speedups = {"fastest_walker": fastest}
    for name in STREAMS:
        speedups[f"{name}_times_faster"] = fastest / metrics[name]
        speedups[f"{name}_arrival_times_faster"] = 1e6 * fastest / metrics[f"{name}_arrival_us"]
    return speedups


def _check_growth(configuration: Configuration) -> None:
    check_choice("dataset", configuration["dataset"], SCALABLE_GENERATORS)
    check_known_parameters(configuration, "dim", "threads", "vertices", "arrivals", "baselines")
    for name in ("vertices", "arrivals"):
        if not isinstance(configuration.get(name), int) or configuration[name] < 1:
            raise InvalidValueError.of(name, "an integer ≥ 1", configuration.get(name))
    _build_growth_model(configuration)
    _build_baselines(configuration)


def _measure_growth(configuration: Configuration) -> TrialResult:
    size = configuration["vertices"]
    dataset, arrivals = load_data(configuration, vertices=size), min(configuration["arrivals"], size // 2)
    baselines, start = _build_baselines(configuration), 1 - arrivals / size
    _time_growth(configuration, warm_up_graph(), 0.9)  # enough edges for the kernels of large batches
    metrics = _time_growth(configuration, dataset, start)
    metrics["anchor_share_us"] = 1e6 * metrics["anchor_seconds"] / (DEFAULT_ANCHOR_GROWTH * size)
    all_threads = _time_growth(configuration | {"threads": None}, dataset, start)
    for name in ("start", "anchor"):
        metrics[f"{name}_all_threads_seconds"] = all_threads[f"{name}_seconds"]
    with _limit_threads(configuration["threads"]):
        for name, method in baselines.items():
            method.embed(warm_up_graph().adjacency())
            metrics[f"{name}_seconds"] = time_embedding(method, dataset)[0]
    methods = {"ripplevec": _build_growth_model(configuration), **baselines}
    return TrialResult(metrics, {name: full_parameters(method) for name, method in methods.items()})


def _build_growth_model(configuration: Configuration) -> Embedder:
    return build_embedder(_common_parameters(configuration) | {"anchor_growth": 0})


def _time_growth(configuration: Configuration, dataset: Dataset, start: float) -> Metrics:
    """Return the seconds of the start, the mean microseconds of an arrival, and the seconds of an anchor at the end."""
    model = _build_growth_model(configuration)
    with _limit_threads(configuration["threads"]):
        result = stream(model, dataset, start, seed=None)
        anchor_seconds, _ = time_call(model.anchor)
    return {
        "start_seconds": result.start_seconds,
        "arrival_us": 1e6 * float(np.mean(result.arrival_seconds)),
        "anchor_seconds": anchor_seconds,
    }


def _limit_threads(threads: int | None) -> AbstractContextManager[object]:
    """Limit the linear algebra libraries to this number of threads."""
    limits: AbstractContextManager[object] = threadpool_limits(limits=resolve_threads(threads))
    return limits


def _common_parameters(configuration: Configuration) -> Configuration:
    """Return the parameters that all methods of a trial share: dimension, seed and number of threads."""
    return {
        "dim": configuration["dim"],
        "seed": configuration["seed"],
        "threads": resolve_threads(configuration["threads"]),
    }


def _build_baselines(configuration: Configuration) -> dict[str, Baseline]:
    """Build the baselines with their settings, and with the dimension, seed and threads of the trial."""
    baselines = {}
    for name, settings in configuration.get("baselines", {}).items():
        method = get_baseline(name)
        accepted = {field.name for field in fields(method)}  # type: ignore[arg-type]
        shared = {key: value for key, value in _common_parameters(configuration).items() if key in accepted}
        baselines[name] = method(**{**shared, **(settings or {})})
    return baselines


SECONDS = Measurement(_check_seconds, _measure_seconds, exclusive=True)
GROWTH = Measurement(_check_growth, _measure_growth, exclusive=True)
