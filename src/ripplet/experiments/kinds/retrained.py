"""Kind `retrained`: the method named by `baseline` sees the final graph; `start` is the share of the training set."""

from __future__ import annotations

from ripplet.evaluation import classify, cluster
from ripplet.evaluation.protocols import Arrivals, start_size
from ripplet.experiments.kinds.base import Configuration, Kind, Measured, check_share, data, percent, small, without
from ripplet.experiments.kinds.methods import embedding, retrained, spelt_out


def _check(configuration: Configuration) -> None:
    check_share("start", configuration.get("start"))
    retrained(configuration["baseline"], without(configuration, "start", "baseline"))


def _run(configuration: Configuration) -> Measured:
    dataset = data(configuration)
    method = retrained(configuration["baseline"], without(configuration, "start", "baseline"))
    method.embed(small().adjacency())
    seconds, vectors = embedding(method, dataset)
    order, begin = Arrivals.of(dataset, configuration["seed"]).order, start_size(dataset, configuration["start"])
    figures = {
        **percent("current", classify(vectors, dataset.labels, order[:begin], order[begin:])),
        "nmi": 100 * cluster(vectors, dataset.labels).nmi,
        "retrain_seconds": seconds,
    }
    return Measured(figures, spelt_out(method))


KIND = Kind(_check, _run)
