"""A cell: one configuration, checked before anything runs, and measured."""

from __future__ import annotations

from ripplevec.errors import InvalidValueError, check_choice
from ripplevec.lab import datasets
from ripplevec.lab.experiments.kinds import KINDS
from ripplevec.lab.experiments.kinds.base import GENERATED, Configuration, Figures, Measured

__all__ = ["Configuration", "Figures", "Measured", "check", "measure"]


def measure(configuration: Configuration) -> Measured:
    """Run a cell."""
    return KINDS[configuration["kind"]].run(configuration)


def check(configuration: Configuration) -> None:
    """Refuse a configuration that could not be run, without reading any data."""
    check_choice("kind", configuration.get("kind"), KINDS)
    check_choice("dataset", configuration["dataset"], [*datasets.available(), *GENERATED])
    try:
        KINDS[configuration["kind"]].check(configuration)
    except (TypeError, KeyError) as error:  # a keyword that nobody knows, or one that is missing
        raise InvalidValueError.of("parameters", "those of the kind of cell", str(error)) from error
