"""Kind `links`: whether the vectors of a streaming `method` foretell the next edges, and how long an arrival takes.

`start` is the share of the vertices that are there from the beginning; `edges` as in `shares`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import cast

from ripplet.errors import InvalidValueError, one_of
from ripplet.evaluation import latency, link_prediction, stream
from ripplet.evaluation.link_prediction import ForetellingModel
from ripplet.evaluation.protocols import EDGES
from ripplet.experiments.kinds.base import Configuration, Kind, Measured, check_share, data, small, without
from ripplet.experiments.kinds.methods import check_method, is_retrained, spelt_out, streamed

OWN = ("start", "edges")


def _check(configuration: Configuration) -> None:
    check_share("start", configuration.get("start"))
    one_of("edges", configuration.get("edges", "together"), EDGES)
    if is_retrained(configuration.get("method", "")):
        raise InvalidValueError.of("method", "one that vertices can arrive at", configuration["method"])
    check_method(configuration, *OWN)


def _run(configuration: Configuration) -> Measured:
    make = streamed(configuration["method"], without(configuration, "method", *OWN))
    dataset, start, seed = data(configuration), configuration["start"], configuration["seed"]
    edges = configuration.get("edges", "together")
    stream(make(), small())
    model = make()
    times = latency(stream(model, dataset, start, seed, edges=edges))
    found = link_prediction(cast(ForetellingModel, make()), dataset, start, seed, edges=edges)
    figures = {"auc": 100 * found.auc, "mrr": 100 * found.mrr, "scored_edges": found.edges}
    return Measured(figures | {f"arrival_{name}_us": value for name, value in asdict(times).items()}, spelt_out(model))


KIND = Kind(_check, _run)
