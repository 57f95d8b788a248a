"""What can be measured: a function per kind of cell, from its configuration to its figures.

Every kind takes `dataset`, `seed` (of the data where it is generated, of the order of arrival, and of the method) and
`start`, the share of the vertices that is the start and the training set. Scores are in per cent. Kinds:

- `stream`: vertices arrive at an Embedder, one at a time or `batch` together. All other parameters are the
  Embedder's; `views` may be a list of mappings, and `each_view` changes fields of the views it would choose by itself.
- `retrained`: the method named by `baseline` sees the final graph; all other parameters are its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ripplet import datasets
from ripplet.baselines import Baseline, baseline
from ripplet.datasets.synthetic import nested_communities, planted_partition
from ripplet.embedder import Embedder
from ripplet.errors import InvalidValueError, one_of
from ripplet.evaluation import AnchorWatch, StreamResult, ageing, arrival, classify, cluster, current, stream
from ripplet.evaluation.protocols import Arrivals, start_size, timed
from ripplet.events import Op
from ripplet.parameters import Parameters
from ripplet.rules.ripple import RippleRule
from ripplet.views.spectral import SpectralView, auto_views

Configuration = dict[str, Any]
Figures = dict[str, float]

GENERATED: dict[str, Callable[..., datasets.Dataset]] = {"nested_communities": nested_communities}


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of a cell, and the parameters behind them with every default spelt out."""

    figures: Figures
    parameters: Configuration


def measure(configuration: Configuration) -> Measured:
    """Run a cell."""
    return KINDS[configuration["kind"]].run(configuration)


def check(configuration: Configuration) -> None:
    """Refuse a configuration that could not be run, without reading any data."""
    one_of("kind", configuration.get("kind"), KINDS)
    one_of("dataset", configuration["dataset"], [*datasets.available(), *GENERATED])
    start = configuration.get("start")
    if not isinstance(start, float) or not 0 < start < 1:
        raise InvalidValueError.of("start", "a share between 0 and 1", start)
    try:
        KINDS[configuration["kind"]].build(configuration)
    except TypeError as error:  # a keyword that nobody knows
        raise InvalidValueError.of("parameters", "those of the kind of cell", str(error)) from error


def load(name: str, seed: int) -> datasets.Dataset:
    """A published data set, or a generated one."""
    return GENERATED[name](seed=seed) if name in GENERATED else datasets.load(name)


# ---------------------------------------------------------------------- stream


def _embedder(configuration: Configuration, start_degree: float = 0.0) -> Embedder:
    own = _without(configuration, "kind", "dataset", "start", "batch", "each_view")
    if isinstance(own.get("views"), list):
        own["views"] = [SpectralView(**view) for view in own["views"]]
    if "each_view" in configuration:
        own["views"] = [replace(view, **configuration["each_view"]) for view in auto_views(start_degree)]
    return Embedder(**own)


def _stream(configuration: Configuration) -> Measured:
    dataset, start, seed = _data(configuration)
    arrivals = Arrivals.of(dataset, seed)
    model = _embedder(configuration, _mean_degree(arrivals, start_size(dataset, start)))
    watch = AnchorWatch()
    stream(_embedder(configuration), _small())
    result = stream(model, dataset, start, seed, configuration.get("batch", 1), watch=watch)
    exact = _same_views(model)
    exact_seconds, _ = timed(lambda: exact.fit(arrivals.batch(0, dataset.vertices)))
    figures = _scores(result) | _stability(result, watch.cosines)
    figures["exact_micro"] = 100 * current(replace(result, final_vectors=exact.vectors(result.order))).micro
    figures["short_of_exact"] = figures["exact_micro"] - figures["current_micro"]
    figures["exact_seconds"] = exact_seconds
    return Measured(figures, Parameters(**exact.get_params()).to_json())


def _same_views(model: Embedder) -> Embedder:
    """An embedder yet to be fitted, with the views that this one has come to."""
    parameters, rule = model.get_params(), model._engine.rule
    if isinstance(rule, RippleRule):
        parameters["views"] = rule.space.views
    return Embedder(**parameters)


def _scores(result: StreamResult) -> Figures:
    at_end, on_arrival = current(result), arrival(result)
    return {
        "current_micro": 100 * at_end.micro,
        "current_macro": 100 * at_end.macro,
        "arrival_micro": 100 * on_arrival.micro,
        "arrival_macro": 100 * on_arrival.macro,
        "nmi": 100 * cluster(result.final_vectors, result.labels).nmi,
        "start_seconds": result.start_seconds,
        "stream_seconds": result.stream_seconds,
    }


def _stability(result: StreamResult, cosines: list[float]) -> Figures:
    age = ageing(result)
    figures = {
        "anchors": len(cosines),
        "ageing_begin": 100 * age.beginning.micro,
        "ageing_end": 100 * age.end.micro,
        "ageing_gain": 100 * (age.end.micro - age.beginning.micro),
    }
    if cosines:
        figures |= {"anchor_cosine_min": min(cosines), "anchor_cosine_mean": float(np.mean(cosines))}
    return figures


def _mean_degree(arrivals: Arrivals, begin: int) -> float:
    """The mean degree at the start, of those that have edges: what views are chosen by."""
    batch = arrivals.batch(0, begin)
    ends = np.column_stack([batch.src, batch.dst])[batch.op == Op.ADD]
    return float(ends.size / max(1, len(np.unique(ends))))


# ---------------------------------------------------------------------- retrained


def _baseline(configuration: Configuration) -> Baseline:
    return baseline(configuration["baseline"])(**_without(configuration, "kind", "dataset", "start", "baseline"))


def _retrained(configuration: Configuration) -> Measured:
    dataset, start, seed = _data(configuration)
    method = _baseline(configuration)
    method.embed(_small().adjacency())
    seconds, vectors = timed(lambda: method.embed(dataset.adjacency()))
    order, begin = Arrivals.of(dataset, seed).order, start_size(dataset, start)
    scores = classify(vectors, dataset.labels, order[:begin], order[begin:])
    figures = {
        "current_micro": 100 * scores.micro,
        "current_macro": 100 * scores.macro,
        "nmi": 100 * cluster(vectors, dataset.labels).nmi,
        "retrain_seconds": seconds,
    }
    return Measured(figures, asdict(method))  # type: ignore[call-overload]


# ---------------------------------------------------------------------- both


@dataclass(frozen=True, slots=True)
class Kind:
    """How to build what a kind of cell measures, which checks its parameters, and how to measure it."""

    build: Callable[[Configuration], object]
    run: Callable[[Configuration], Measured]


KINDS = {"stream": Kind(_embedder, _stream), "retrained": Kind(_baseline, _retrained)}


def _data(configuration: Configuration) -> tuple[datasets.Dataset, float, int]:
    seed = configuration["seed"]
    return load(configuration["dataset"], seed), configuration["start"], seed


def _small() -> datasets.Dataset:
    """A graph to have all kernels compiled with before anything is timed."""
    return planted_partition(communities=2, size=50)


def _without(configuration: Configuration, *names: str) -> Configuration:
    return {name: value for name, value in configuration.items() if name not in names}
