"""Methods by name, and the measurements that score any of them: `shares`, `checkpoint`, `validation` and `links`.

- `shares`: classification and clustering with each of the `shares` of the vertices for training. A static `method` is
  trained once on the final graph, in `retrain_seconds`, for all shares. A streaming method starts anew for each share,
  and its start is the training set. The metric of a share of 30 % ends in @30; `nmi`, `completeness` and other metrics
  without such a suffix are means over the shares.
- `checkpoint`: the alternative to streaming, which retrains a static `method` after `every` share of the stream. Each
  arrival is scored by the first embedding that includes it. `ripplevec` and `paper` are Ripplevec embeddings that are
  recomputed each time.
- `validation`: a setting of a `method`, scored on a part of the training vertices, so that tuning sees no test label.
  For a static method, the last fifth of the training set is held out and a classifier is trained on the rest. A
  streaming method sees the training vertices and the edges between them only: it starts with the first half, and the
  others arrive. Its score is the mean of those on arrival and at the end.
- `links`: link prediction by a streaming `method`.

`start` is the share of the vertices present from the beginning, and the training set. `arrival_order`: vertices arrive
in `random` order or by `index`. `edges`: `together` with a vertex, or `spread` over the time after. All other
parameters are those of the method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.embedder import Embedder
from ripplevec.errors import InvalidValueError, check_choice
from ripplevec.lab import datasets
from ripplevec.lab.baselines import BASELINES, Baseline, get_baseline
from ripplevec.lab.baselines.streaming import (
    STREAMING_BASELINES,
    StreamingBaselineAdapter,
    get_streaming_baseline,
)
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.evaluation import (
    ClusterScores,
    classify,
    cluster,
    score_at_checkpoints,
    score_at_end,
    score_link_prediction,
    score_on_arrival,
    stream,
)
from ripplevec.lab.evaluation.link_prediction import PreviewingModel
from ripplevec.lab.evaluation.protocols import EDGE_TIMINGS, Arrivals, StreamingModel, start_size, time_call
from ripplevec.lab.experiments.measurements.base import (
    Configuration,
    Measurement,
    Metrics,
    TrialResult,
    arrival_seed,
    check_arrival_order,
    check_share,
    check_shares,
    load_data,
    remaining_parameters,
    score_metrics,
    share_suffix,
    time_metrics,
    warm_up_graph,
)
from ripplevec.parameters import Parameters
from ripplevec.views.spectral import SpectralView

RIPPLEVEC_METHODS: dict[str, Configuration] = {"ripplevec": {}, "paper": {"rule": "paper"}}


def build_embedder(parameters: Configuration) -> Embedder:
    """Build an Embedder; `views` may be a list of mappings."""
    arguments = dict(parameters)
    if isinstance(arguments.get("views"), list):
        arguments["views"] = [SpectralView(**view) if isinstance(view, dict) else view for view in arguments["views"]]
    return Embedder(**arguments)


def build_ripplevec_method(name: str, parameters: Configuration) -> Embedder:
    """Build the Embedder of a Ripplevec method by its name."""
    return build_embedder({**RIPPLEVEC_METHODS[name], **parameters})


def is_static(name: str) -> bool:
    """Tell whether a method embeds the final graph only; raise if the name is unknown."""
    check_choice("method", name, [*RIPPLEVEC_METHODS, *BASELINES, *STREAMING_BASELINES])
    return name in BASELINES


def build_static_method(name: str, parameters: Configuration) -> Baseline:
    """Build a method that embeds a whole graph."""
    return get_baseline(name)(**parameters)


def streaming_model_factory(name: str, parameters: Configuration) -> Callable[[], StreamingModel]:
    """Return a function that builds a new streaming model; the parameters are checked immediately."""

    def build() -> Any:
        if name in RIPPLEVEC_METHODS:
            return build_ripplevec_method(name, parameters)
        return StreamingBaselineAdapter(get_streaming_baseline(name)(**parameters))

    build()
    return build


def full_parameters(method: Any) -> Configuration:
    """Return the parameters of a method with all defaults."""
    if isinstance(method, Embedder):
        return Parameters(**method.get_params()).to_json()
    baseline: Any = method.method if isinstance(method, StreamingBaselineAdapter) else method
    return asdict(baseline)


def check_method(configuration: Configuration, *measurement_parameters: str) -> None:
    """Raise if the method is unknown or does not take the remaining parameters."""
    name = configuration.get("method", "")
    parameters = remaining_parameters(configuration, "method", *measurement_parameters)
    if is_static(name):
        build_static_method(name, parameters)
    else:
        streaming_model_factory(name, parameters)


def time_embedding(method: Baseline, dataset: datasets.Dataset) -> tuple[float, NDArray[np.float32]]:
    """Embed a data set; return the seconds, without the conversion to a matrix, and the vectors."""
    graph = dataset.adjacency()
    return time_call(lambda: method.embed(graph))


SHARES_PARAMETERS = ("shares", "arrival_order", "edges")
CHECKPOINT_PARAMETERS = ("start", "every", "arrival_order")
LINKS_PARAMETERS = ("start", "edges")
HELD_OUT_SHARE = 0.2
VALIDATION_START = 0.5
"""Share of the training vertices that a streaming method starts with when a setting is validated."""


def _check_shares(configuration: Configuration) -> None:
    check_shares(configuration.get("shares"))
    check_arrival_order(configuration)
    check_choice("edges", configuration.get("edges", "together"), EDGE_TIMINGS)
    check_method(configuration, *SHARES_PARAMETERS)


def _measure_shares(configuration: Configuration) -> TrialResult:
    name, parameters = configuration["method"], remaining_parameters(configuration, "method", *SHARES_PARAMETERS)
    if is_static(name):
        method = build_static_method(name, parameters)
        method.embed(warm_up_graph().adjacency())
        seconds, vectors = time_embedding(method, load_data(configuration))
        metrics = _score_static_vectors(configuration, vectors) | {"retrain_seconds": seconds}
        return TrialResult(metrics, full_parameters(method))
    build_model = streaming_model_factory(name, parameters)
    stream(build_model(), warm_up_graph(), 0.9)
    metrics = {}
    for share in configuration["shares"]:
        model = build_model()
        metrics |= _score_stream(configuration, share, model)
    return TrialResult(_add_means(metrics), full_parameters(model))


def _score_static_vectors(configuration: Configuration, vectors: NDArray[Any]) -> Metrics:
    dataset = load_data(configuration)
    order = Arrivals.from_dataset(dataset, arrival_seed(configuration)).order
    metrics = _cluster_metrics("", cluster(vectors, dataset.labels))
    for share in configuration["shares"]:
        begin = start_size(dataset, share)
        if _has_two_classes(dataset, order[:begin]):
            scores = classify(vectors, dataset.labels, order[:begin], order[begin:])
            metrics |= _add_suffix(share_suffix(share), score_metrics("current", scores))
    return metrics


def _score_stream(configuration: Configuration, share: float, model: StreamingModel) -> Metrics:
    dataset, edges = load_data(configuration), configuration.get("edges", "together")
    result = stream(model, dataset, share, arrival_seed(configuration), edges=edges)
    metrics = _cluster_metrics("", cluster(result.final_vectors, result.labels))
    first_vectors = np.concatenate([result.start_vectors, result.arrival_vectors])
    metrics |= _cluster_metrics("arrival_", cluster(first_vectors, result.labels))
    if _has_two_classes(dataset, result.order[: result.start]):
        metrics |= score_metrics("current", score_at_end(result))
        metrics |= score_metrics("arrival", score_on_arrival(result))
    return _add_suffix(share_suffix(share), metrics | time_metrics(result))


def _cluster_metrics(prefix: str, scores: ClusterScores) -> Metrics:
    return {f"{prefix}nmi": 100 * scores.nmi, f"{prefix}completeness": 100 * scores.completeness}


def _has_two_classes(dataset: Dataset, train: NDArray[np.int64]) -> bool:
    """Tell whether a training set has at least two classes; in index order it may begin with a single one."""
    return len(np.unique(dataset.labels[train])) > 1


def _add_suffix(suffix: str, metrics: Metrics) -> Metrics:
    return {f"{name}{suffix}": value for name, value in metrics.items()}


def _add_means(metrics: Metrics) -> Metrics:
    """Add the mean over the shares of every metric."""
    names: Iterable[str] = dict.fromkeys(name.partition("@")[0] for name in metrics)
    means = {
        name: float(np.mean([value for full_name, value in metrics.items() if full_name.partition("@")[0] == name]))
        for name in names
    }
    return means | metrics


def _check_checkpoint(configuration: Configuration) -> None:
    check_share("start", configuration.get("start"))
    check_share("every", configuration.get("every", 0.05))
    check_arrival_order(configuration)
    check_choice("method", configuration.get("method"), [*RIPPLEVEC_METHODS, *BASELINES])
    check_method(configuration, *CHECKPOINT_PARAMETERS)


def _measure_checkpoint(configuration: Configuration) -> TrialResult:
    parameters = remaining_parameters(configuration, "method", *CHECKPOINT_PARAMETERS)
    method, embed = embed_function(configuration["method"], parameters)
    embed(warm_up_graph().adjacency())
    every, start, seed = configuration.get("every", 0.05), configuration["start"], arrival_seed(configuration)
    result = score_at_checkpoints(embed, load_data(configuration), start, seed, every)
    metrics = score_metrics("checkpoint", result.scores)
    metrics["retrain_seconds"] = float(np.mean(result.retrain_seconds))
    return TrialResult(metrics | {"retrainings": len(result.retrain_seconds)}, full_parameters(method))


def embed_function(name: str, parameters: Configuration) -> tuple[Any, Callable[[csr_array], NDArray[Any]]]:
    """Return a method and its function from a graph to vectors."""
    if is_static(name):
        method = build_static_method(name, parameters)
        return method, method.embed
    model = build_ripplevec_method(name, parameters)
    return model, lambda graph: model.fit(graph).vectors(np.arange(graph.shape[0]))


def _check_validation(configuration: Configuration) -> None:
    check_share("start", configuration.get("start"))
    check_method(configuration, "start")


def _measure_validation(configuration: Configuration) -> TrialResult:
    name, parameters = configuration["method"], remaining_parameters(configuration, "method", "start")
    dataset = load_data(configuration)
    order = Arrivals.from_dataset(dataset, configuration["seed"]).order
    train = order[: start_size(dataset, configuration["start"])]
    if not is_static(name):
        return _validate_stream(name, parameters, _training_part(dataset, train))
    method = build_static_method(name, parameters)
    seconds, vectors = time_embedding(method, dataset)
    cut = round(len(train) * (1 - HELD_OUT_SHARE))
    scores = classify(vectors, dataset.labels, train[:cut], train[cut:])
    return TrialResult(score_metrics("validation", scores) | {"retrain_seconds": seconds}, full_parameters(method))


def _training_part(dataset: Dataset, train: NDArray[np.int64]) -> Dataset:
    """Return the graph of the training vertices alone, numbered in their order."""
    number = np.full(dataset.vertices, -1)
    number[train] = np.arange(len(train))
    pairs = number[dataset.edges]
    return Dataset.from_pairs(dataset.name, pairs[(pairs >= 0).all(axis=1)], dataset.labels[train])


def _validate_stream(name: str, parameters: Configuration, part: Dataset) -> TrialResult:
    model = streaming_model_factory(name, parameters)()
    result = stream(model, part, VALIDATION_START, None)
    arrival, current = score_on_arrival(result), score_at_end(result)
    metrics = {
        "validation_micro": 50 * (arrival.micro + current.micro),
        "validation_macro": 50 * (arrival.macro + current.macro),
        **score_metrics("validation_arrival", arrival),
        **score_metrics("validation_current", current),
    }
    return TrialResult(metrics | time_metrics(result), full_parameters(model))


def _check_links(configuration: Configuration) -> None:
    check_share("start", configuration.get("start"))
    check_choice("edges", configuration.get("edges", "together"), EDGE_TIMINGS)
    if is_static(configuration.get("method", "")):
        raise InvalidValueError.of("method", "a streaming method", configuration["method"])
    check_method(configuration, *LINKS_PARAMETERS)


def _measure_links(configuration: Configuration) -> TrialResult:
    parameters = remaining_parameters(configuration, "method", *LINKS_PARAMETERS)
    model = cast(PreviewingModel, streaming_model_factory(configuration["method"], parameters)())
    dataset, start, seed = load_data(configuration), configuration["start"], configuration["seed"]
    edges = configuration.get("edges", "together")
    scores = score_link_prediction(model, dataset, start, seed, edges=edges)
    metrics: Metrics = {"auc": 100 * scores.auc, "mrr": 100 * scores.mrr, "scored_edges": scores.edges}
    return TrialResult(metrics, full_parameters(model))


SHARES = Measurement(_check_shares, _measure_shares)
CHECKPOINT = Measurement(_check_checkpoint, _measure_checkpoint)
VALIDATION = Measurement(_check_validation, _measure_validation)
LINKS = Measurement(_check_links, _measure_links)
