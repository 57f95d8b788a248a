"""Measurements: the kinds of trials a study can consist of, and how to check and run one trial."""

from __future__ import annotations

from ripplevec.errors import InvalidValueError, check_choice
from ripplevec.lab import datasets
from ripplevec.lab.datasets.multilabel import LOCAL_GRAPHS
from ripplevec.lab.experiments.measurements import local_action, method_scores, optimum, stream, timing, whole_graph
from ripplevec.lab.experiments.measurements.base import GENERATORS, Configuration, Measurement, Metrics, TrialResult

__all__ = ["MEASUREMENTS", "Configuration", "Measurement", "Metrics", "TrialResult", "check_trial", "run_trial"]

MEASUREMENTS: dict[str, Measurement] = {
    "checkpoint": method_scores.CHECKPOINT,
    "growth": timing.GROWTH,
    "links": method_scores.LINKS,
    "local_action": local_action.LOCAL_ACTION,
    "optimum": optimum.OPTIMUM,
    "ritz": stream.RITZ,
    "seconds": timing.SECONDS,
    "shares": method_scores.SHARES,
    "stream": stream.STREAM,
    "validation": method_scores.VALIDATION,
    "whole_graph": whole_graph.WHOLE_GRAPH,
}
"""Measurements by the `kind` of a configuration."""


def run_trial(configuration: Configuration) -> TrialResult:
    """Measure one configuration."""
    return MEASUREMENTS[configuration["kind"]].run(configuration)


def check_trial(configuration: Configuration) -> None:
    """Raise if a configuration cannot be measured; no data is read."""
    check_choice("kind", configuration.get("kind"), MEASUREMENTS)
    check_choice("dataset", configuration["dataset"], [*datasets.available(), *LOCAL_GRAPHS, *GENERATORS])
    try:
        MEASUREMENTS[configuration["kind"]].check(configuration)
    except (TypeError, KeyError) as error:  # an unknown or a missing keyword
        raise InvalidValueError.of("parameters", "those of the kind of measurement", str(error)) from error
