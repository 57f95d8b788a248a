"""Shared parts of the measurements: configurations, metrics, data, and checks of parameters.

A trial is one configuration that is measured once. Every configuration names its `kind` of measurement, its `dataset`
and its `seed`: of the data if it is generated, of the order of arrival, and of the method. Scores are in percent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from ripplevec.errors import InvalidValueError, check_choice
from ripplevec.lab import datasets
from ripplevec.lab.datasets.synthetic import nested_communities, planted_partition, preferential_attachment
from ripplevec.lab.evaluation import Scores, StreamResult

Configuration = dict[str, Any]
Metrics = dict[str, float]

GENERATORS: dict[str, Callable[..., datasets.Dataset]] = {
    "nested_communities": nested_communities,
    "preferential_attachment": preferential_attachment,
}
ARRIVAL_ORDERS = ("random", "index")


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The metrics of a trial, and the parameters of its methods with every default made explicit."""

    metrics: Metrics
    parameters: Configuration


@dataclass(frozen=True, slots=True)
class Measurement:
    """A kind of measurement: how to check a configuration, and how to measure it.

    An `exclusive` measurement measures time, so no other trial may run at the same time.
    """

    check: Callable[[Configuration], object]
    run: Callable[[Configuration], TrialResult]
    exclusive: bool = False


def load_data(configuration: Configuration, **size: int) -> datasets.Dataset:
    """Load the published data set of a configuration, or generate it."""
    name = configuration["dataset"]
    return GENERATORS[name](seed=configuration["seed"], **size) if name in GENERATORS else _load_published(name)


@cache
def _load_published(name: str) -> datasets.Dataset:
    return datasets.load(name)


def arrival_seed(configuration: Configuration) -> int | None:
    """Return the seed of the order of arrival; None if vertices arrive by index."""
    seed: int = configuration["seed"]
    return None if configuration.get("arrival_order") == "index" else seed


def warm_up_graph() -> datasets.Dataset:
    """Return a graph to compile all kernels with before anything is timed; too large for the dense solvers."""
    return planted_partition(communities=2, size=500)


def remaining_parameters(configuration: Configuration, *names: str) -> Configuration:
    """Return a configuration without `kind`, `dataset` and the given names."""
    return {name: value for name, value in configuration.items() if name not in ("kind", "dataset", *names)}


def score_metrics(name: str, scores: Scores) -> Metrics:
    """Return scores as metrics in percent."""
    return {f"{name}_micro": 100 * scores.micro, f"{name}_macro": 100 * scores.macro}


def time_metrics(result: StreamResult) -> Metrics:
    """Return the seconds of a stream as metrics."""
    return {"start_seconds": result.start_seconds, "stream_seconds": result.stream_seconds}


def share_suffix(share: float) -> str:
    """Return the suffix of a metric that belongs to a share: `@30` for 0.3."""
    return f"@{round(100 * share)}"


def check_known_parameters(configuration: Configuration, *known: str) -> None:
    """Raise if a configuration has a parameter that would have no effect."""
    for name in remaining_parameters(configuration, "seed", *known):
        raise InvalidValueError.of("parameters", "only seed, " + ", ".join(known), name)


def check_share(name: str, value: object) -> None:
    """Raise if a value is not a share of the vertices."""
    if not isinstance(value, float) or not 0 < value < 1:
        raise InvalidValueError.of(name, "a share between 0 and 1", value)


def check_shares(values: object) -> None:
    """Raise if a value is not a list of shares."""
    if not isinstance(values, list) or not values:
        raise InvalidValueError.of("shares", "a list of shares between 0 and 1", values)
    for value in values:
        check_share("shares", value)


def check_arrival_order(configuration: Configuration) -> None:
    """Raise if the order of arrival is unknown."""
    check_choice("arrival_order", configuration.get("arrival_order", "random"), ARRIVAL_ORDERS)


def check_marks(configuration: Configuration) -> None:
    """Check the `marks` of a configuration: shares of the vertices at which a stream is measured, after the start."""
    start, marks = configuration.get("start"), configuration.get("marks")
    check_share("start", start)
    shares = [start, *marks] if isinstance(marks, list) and marks else [1, 0]
    if shares[-1] > 1 or any(later <= earlier for earlier, later in pairwise(shares)):
        raise InvalidValueError.of("marks", "a list of increasing shares above the start and at most 1", marks)


def mark_sizes(configuration: Configuration, dataset: datasets.Dataset) -> dict[float, int]:
    """Return the number of vertices present at each mark; at least one of them has arrived."""
    first = int(dataset.vertices * configuration["start"]) + 1
    return {mark: max(first, round(mark * dataset.vertices)) for mark in configuration["marks"]}
