"""Kind `links`: whether the vectors of a streaming `method` foretell the next edges.

`start` is the share of the vertices that are there from the beginning; `edges` as in `shares`.
"""

from __future__ import annotations

from typing import cast

from ripplevec.errors import InvalidValueError, check_choice
from ripplevec.lab.evaluation import score_link_prediction
from ripplevec.lab.evaluation.link_prediction import PreviewingModel
from ripplevec.lab.evaluation.protocols import EDGE_TIMINGS
from ripplevec.lab.experiments.kinds.base import Configuration, Kind, Measured, check_share, data, without
from ripplevec.lab.experiments.kinds.methods import check_method, is_retrained, spelt_out, streamed

OWN = ("start", "edges")


def _check(configuration: Configuration) -> None:
    check_share("start", configuration.get("start"))
    check_choice("edges", configuration.get("edges", "together"), EDGE_TIMINGS)
    if is_retrained(configuration.get("method", "")):
        raise InvalidValueError.of("method", "one that vertices can arrive at", configuration["method"])
    check_method(configuration, *OWN)


def _run(configuration: Configuration) -> Measured:
    make = streamed(configuration["method"], without(configuration, "method", *OWN))
    dataset, start, seed = data(configuration), configuration["start"], configuration["seed"]
    edges = configuration.get("edges", "together")
    model = cast(PreviewingModel, make())
    found = score_link_prediction(model, dataset, start, seed, edges=edges)
    return Measured({"auc": 100 * found.auc, "mrr": 100 * found.mrr, "scored_edges": found.edges}, spelt_out(model))


KIND = Kind(_check, _run)
