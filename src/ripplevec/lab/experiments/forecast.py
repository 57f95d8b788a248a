"""How long the cells that are left will take.

Every cell is expected to cost as much, for each edge of its data, as the recorded cells that are most like it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from statistics import fmean
from time import monotonic
from typing import NamedTuple

from ripplevec.lab.datasets import available
from ripplevec.lab.experiments.kinds import KINDS
from ripplevec.lab.experiments.record import Record, key_of
from ripplevec.lab.experiments.run import Cell
from ripplevec.lab.experiments.trial import Configuration


class Forecast:
    """The cells that are left and their time, foretold from records and from every cell that is done."""

    def __init__(self, records: Iterable[Record], jobs: int = 1) -> None:
        self._jobs = jobs
        self._seconds: dict[Hashable, float] = defaultdict(float)
        self._edges: dict[Hashable, float] = defaultdict(float)
        self._left: Counter[_Traits] = Counter()
        for record in records:
            for cell in record.cells.values():
                self._learn(_Traits.of(cell["configuration"]), cell["seconds"])

    def plan(self, cells: Iterable[Cell]) -> None:
        """Say which cells are left, in place of what was said before."""
        self._left = Counter(_Traits.of(configuration) for _, configuration in cells)

    def done(self, configuration: Configuration, seconds: float) -> None:
        """Say that a cell is done, and how long it took."""
        cell = _Traits.of(configuration)
        self._left -= Counter([cell])
        self._learn(cell, seconds)

    def cells(self) -> int:
        """How many cells are left."""
        return self._left.total()

    def seconds(self) -> float | None:
        """How long they will take, side by side but for those that run alone; unknown before any cell was ever run."""
        if not self._seconds:
            return None
        return sum(self._expected(cell) * many / (1 if cell.alone else self._jobs) for cell, many in self._left.items())

    def ends(self) -> float | None:
        """When they will be done, on the monotonic clock."""
        seconds = self.seconds()
        return None if seconds is None else monotonic() + seconds

    def _learn(self, cell: _Traits, seconds: float) -> None:
        for group in cell.groups:
            self._seconds[group] += seconds
            self._edges[group] += cell.edges

    def _expected(self, cell: _Traits) -> float:
        closest = next(group for group in cell.groups if group in self._seconds)
        return cell.edges * self._seconds[closest] / self._edges[closest]


class _Traits(NamedTuple):
    """What the time of a cell depends on: the groups it belongs to, closest first and all cells last, and its size."""

    groups: tuple[Hashable, ...]
    edges: float
    alone: bool

    @classmethod
    def of(cls, configuration: Configuration) -> _Traits:
        kind, method, dataset = (configuration.get(name) for name in ("kind", "method", "dataset"))
        but_for_the_seed = key_of({name: value for name, value in configuration.items() if name != "seed"})
        groups = (but_for_the_seed, (kind, method, dataset), (kind, method), (kind,), ())
        return cls(groups, _edges(configuration), kind in KINDS and KINDS[kind].alone)


def _edges(configuration: Configuration) -> float:
    """How large the data is: generated data as it is asked for, or like the published where it is not."""
    published = {name: float(info.edges) for name, info in available().items()}
    return published.get(configuration["dataset"]) or configuration.get("vertices") or fmean(published.values())
