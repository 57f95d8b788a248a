"""What all kinds of cells share: configurations, figures, data.

Every configuration names its `kind`, its `dataset` and its `seed`: of the data where it is generated, of the order of
arrival, and of the method. Scores are in per cent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from ripplevec.errors import InvalidValueError, check_choice
from ripplevec.lab import datasets
from ripplevec.lab.datasets.synthetic import nested_communities, planted_partition, preferential_attachment
from ripplevec.lab.evaluation import Scores, StreamResult

Configuration = dict[str, Any]
Figures = dict[str, float]

GENERATED: dict[str, Callable[..., datasets.Dataset]] = {
    "nested_communities": nested_communities,
    "preferential_attachment": preferential_attachment,
}
ORDERS = ("random", "index")


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of a cell, and the parameters behind them with every default spelt out."""

    figures: Figures
    parameters: Configuration


@dataclass(frozen=True, slots=True)
class Kind:
    """How to check what a kind of cell is given, and how to measure it.

    `alone`: its figures are times, so that nothing else may run beside it.
    """

    check: Callable[[Configuration], object]
    run: Callable[[Configuration], Measured]
    alone: bool = False


def data(configuration: Configuration, **size: int) -> datasets.Dataset:
    """A published data set, or a generated one."""
    name = configuration["dataset"]
    return GENERATED[name](seed=configuration["seed"], **size) if name in GENERATED else _published(name)


@cache
def _published(name: str) -> datasets.Dataset:
    return datasets.load(name)


def order_seed(configuration: Configuration) -> int | None:
    """The seed of the order of arrival; none where vertices come by their index."""
    seed: int = configuration["seed"]
    return None if configuration.get("arrival_order") == "index" else seed


def small() -> datasets.Dataset:
    """A graph to have all kernels compiled with before anything is timed: too large for any solver of small ones."""
    return planted_partition(communities=2, size=500)


def without(configuration: Configuration, *names: str) -> Configuration:
    """The rest of a configuration, besides what every kind has."""
    return {name: value for name, value in configuration.items() if name not in ("kind", "dataset", *names)}


def percent(name: str, scores: Scores) -> Figures:
    """Scores as figures."""
    return {f"{name}_micro": 100 * scores.micro, f"{name}_macro": 100 * scores.macro}


def times(result: StreamResult) -> Figures:
    """What a stream took, as figures."""
    return {"start_seconds": result.start_seconds, "stream_seconds": result.stream_seconds}


def at(share: float) -> str:
    """How the name of a figure ends that belongs to a share."""
    return f"@{round(100 * share)}"


def check_only(configuration: Configuration, *known: str) -> None:
    """Refuse a parameter that would have no effect."""
    for name in without(configuration, "seed", *known):
        raise InvalidValueError.of("parameters", "only seed, " + ", ".join(known), name)


def check_share(name: str, value: object) -> None:
    """Refuse what is no share of the vertices."""
    if not isinstance(value, float) or not 0 < value < 1:
        raise InvalidValueError.of(name, "a share between 0 and 1", value)


def check_shares(values: object) -> None:
    """Refuse what is no list of shares."""
    if not isinstance(values, list) or not values:
        raise InvalidValueError.of("shares", "a list of shares between 0 and 1", values)
    for value in values:
        check_share("shares", value)


def check_order(configuration: Configuration) -> None:
    """Refuse an order that nobody knows."""
    check_choice("arrival_order", configuration.get("arrival_order", "random"), ORDERS)
