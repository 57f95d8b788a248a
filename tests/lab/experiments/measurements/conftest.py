"""A small labeled graph under the name `planted`, and a count of what is embedded."""

from __future__ import annotations

import numpy as np
import pytest

from ripplevec.lab.baselines import DeepWalk, Spectral
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.experiments.measurements import base


@pytest.fixture(autouse=True)
def graph(monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """Four communities."""
    planted = planted_partition(communities=4, size=60, inside=6, elsewhere=1)
    monkeypatch.setitem(base.GENERATORS, "planted", lambda seed: planted)
    return planted


@pytest.fixture
def by_class(monkeypatch: pytest.MonkeyPatch, graph: Dataset) -> Dataset:
    """The same graph with the vertices of a class next to each other, under the name `by_class`."""
    place = np.argsort(np.argsort(graph.labels, kind="stable"))
    ordered = Dataset.from_pairs("by class", place[graph.edges], np.sort(graph.labels))
    monkeypatch.setitem(base.GENERATORS, "by_class", lambda seed: ordered)
    return ordered


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many vertices the graphs had that Spectral and DeepWalk were run on, in order."""
    sizes: list[int] = []

    def counted(kind: type) -> None:
        embed = kind.embed

        def noted(self, adjacency):
            sizes.append(adjacency.shape[0])
            return embed(self, adjacency)

        monkeypatch.setattr(kind, "embed", noted)

    counted(Spectral)
    counted(DeepWalk)
    return sizes
