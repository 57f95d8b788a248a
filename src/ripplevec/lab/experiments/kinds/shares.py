"""Kind `shares`: classification and clustering with each share of the vertices for training, by any `method`.

A method that is retrained on the final graph is so once, for all `shares`, in `retrain_seconds`. One that streams is
begun anew with each share: the start is the training set. The figure of a share of 30 % ends in @30; `nmi`,
`completeness` and what else has no such ending is the mean over the shares. `arrival_order`: vertices come in `random`
order or by their `index`; `edges`: `together` with a vertex, or `spread` over the time after. All other parameters are
the method's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import check_choice
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.evaluation import ClusterScores, classify, cluster, score_at_end, score_on_arrival, stream
from ripplevec.lab.evaluation.protocols import EDGE_TIMINGS, Arrivals, StreamingModel, start_size
from ripplevec.lab.experiments.kinds.base import (
    Configuration,
    Figures,
    Kind,
    Measured,
    at,
    check_order,
    check_shares,
    data,
    order_seed,
    percent,
    small,
    times,
    without,
)
from ripplevec.lab.experiments.kinds.methods import (
    check_method,
    embedding,
    is_retrained,
    retrained,
    spelt_out,
    streamed,
)

OWN = ("shares", "arrival_order", "edges")


def _check(configuration: Configuration) -> None:
    check_shares(configuration.get("shares"))
    check_order(configuration)
    check_choice("edges", configuration.get("edges", "together"), EDGE_TIMINGS)
    check_method(configuration, *OWN)


def _run(configuration: Configuration) -> Measured:
    name, parameters = configuration["method"], without(configuration, "method", *OWN)
    if is_retrained(name):
        method = retrained(name, parameters)
        method.embed(small().adjacency())
        seconds, vectors = embedding(method, data(configuration))
        figures = _of_one_embedding(configuration, vectors) | {"retrain_seconds": seconds}
        return Measured(figures, spelt_out(method))
    make = streamed(name, parameters)
    stream(make(), small(), 0.9)
    figures = {}
    for share in configuration["shares"]:
        model = make()
        figures |= _of_a_stream(configuration, share, model)
    return Measured(_with_means(figures), spelt_out(model))


KIND = Kind(_check, _run)


def _of_one_embedding(configuration: Configuration, vectors: NDArray[Any]) -> Figures:
    dataset = data(configuration)
    order = Arrivals.from_dataset(dataset, order_seed(configuration)).order
    figures = _agreement("", cluster(vectors, dataset.labels))
    for share in configuration["shares"]:
        begin = start_size(dataset, share)
        if _can_be_told(dataset, order[:begin]):
            scores = classify(vectors, dataset.labels, order[:begin], order[begin:])
            figures |= _ending(at(share), percent("current", scores))
    return figures


def _of_a_stream(configuration: Configuration, share: float, model: StreamingModel) -> Figures:
    dataset, edges = data(configuration), configuration.get("edges", "together")
    result = stream(model, dataset, share, order_seed(configuration), edges=edges)
    figures = _agreement("", cluster(result.final_vectors, result.labels))
    given = np.concatenate([result.start_vectors, result.arrival_vectors])
    figures |= _agreement("arrival_", cluster(given, result.labels))
    if _can_be_told(dataset, result.order[: result.start]):
        figures |= percent("current", score_at_end(result)) | percent("arrival", score_on_arrival(result))
    return _ending(at(share), figures | times(result))


def _agreement(prefix: str, agreement: ClusterScores) -> Figures:
    return {f"{prefix}nmi": 100 * agreement.nmi, f"{prefix}completeness": 100 * agreement.completeness}


def _can_be_told(dataset: Dataset, train: NDArray[np.int64]) -> bool:
    """Whether the training set has two classes: by index it may begin with one alone."""
    return len(np.unique(dataset.labels[train])) > 1


def _ending(end: str, figures: Figures) -> Figures:
    return {f"{name}{end}": value for name, value in figures.items()}


def _with_means(figures: Figures) -> Figures:
    """All figures, and for each the mean over the shares."""
    names: Iterable[str] = dict.fromkeys(name.partition("@")[0] for name in figures)
    means = {
        name: float(np.mean([value for own, value in figures.items() if own.partition("@")[0] == name]))
        for name in names
    }
    return means | figures
