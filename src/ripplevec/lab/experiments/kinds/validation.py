"""Kind `validation`: a setting of a retrained `method`, judged on a part of the training vertices.

Of the training set (the share `start` of the vertices) the last fifth is held back, a classifier is trained on the
rest: no test label is seen when settings are chosen.
"""

from __future__ import annotations

from ripplevec.errors import InvalidValueError
from ripplevec.lab.evaluation import classify
from ripplevec.lab.evaluation.protocols import Arrivals, start_size
from ripplevec.lab.experiments.kinds.base import Configuration, Kind, Measured, check_share, data, percent, without
from ripplevec.lab.experiments.kinds.methods import check_method, embedding, is_retrained, retrained, spelt_out

HELD_BACK = 0.2


def _check(configuration: Configuration) -> None:
    check_share("start", configuration.get("start"))
    if not is_retrained(configuration.get("method", "")):
        raise InvalidValueError.of("method", "one that is retrained", configuration["method"])
    check_method(configuration, "start")


def _run(configuration: Configuration) -> Measured:
    dataset = data(configuration)
    method = retrained(configuration["method"], without(configuration, "method", "start"))
    seconds, vectors = embedding(method, dataset)
    train = Arrivals.from_dataset(dataset, configuration["seed"]).order[: start_size(dataset, configuration["start"])]
    cut = round(len(train) * (1 - HELD_BACK))
    scores = classify(vectors, dataset.labels, train[:cut], train[cut:])
    return Measured(percent("validation", scores) | {"retrain_seconds": seconds}, spelt_out(method))


KIND = Kind(_check, _run)
