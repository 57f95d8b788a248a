"""A small labeled graph under the name `planted`, and the sizes of embedded graphs."""

from __future__ import annotations

import numpy as np
import pytest

from ripplevec.lab.baselines import DeepWalk, Spectral
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.experiments.measurements import base


@pytest.fixture(autouse=True)
def graph(monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """Return a graph of four communities."""
    planted = planted_partition(communities=4, size=60, inside=6, elsewhere=1)
    monkeypatch.setitem(base.GENERATORS, "planted", lambda seed: planted)
    return planted


@pytest.fixture
def by_class(monkeypatch: pytest.MonkeyPatch, graph: Dataset) -> Dataset:
    """Return the same graph sorted by class, under the name `by_class`."""
    place = np.argsort(np.argsort(graph.labels, kind="stable"))
    ordered = Dataset.from_pairs("by class", place[graph.edges], np.sort(graph.labels))
    monkeypatch.setitem(base.GENERATORS, "by_class", lambda seed: ordered)
    return ordered


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the sizes of the graphs that Spectral and DeepWalk embed, in order."""
    sizes: list[int] = []

    def record_sizes(method: type) -> None:
        embed = method.embed

        def recording_embed(self, adjacency):
            sizes.append(adjacency.shape[0])
            return embed(self, adjacency)

        monkeypatch.setattr(method, "embed", recording_embed)

    record_sizes(Spectral)
    record_sizes(DeepWalk)
    return sizes
