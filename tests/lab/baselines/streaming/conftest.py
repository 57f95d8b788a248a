"""A graph of four communities as a stream of rows for streaming baselines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation import classify
from ripplevec.lab.evaluation.protocols import Arrivals

GRAPH = planted_partition(communities=4, size=40, inside=8, elsewhere=1)
ARRIVALS = Arrivals.from_dataset(GRAPH, 0)
HALF = GRAPH.vertices // 2


class Stream:
    """The initial graph, the arrivals as rows, and the score of the final vectors."""

    graph = ARRIVALS.graph(HALF)
    final = ARRIVALS.graph(GRAPH.vertices)
    labels = GRAPH.labels[ARRIVALS.order]

    @property
    def arrivals(self) -> list[tuple[int, list[int]]]:
        place = np.argsort(ARRIVALS.order)
        return [(v, place[ARRIVALS.neighbors(v)].tolist()) for v in range(HALF, GRAPH.vertices)]

    def run(self, method: Any) -> Any:
        method.start(self.graph)
        for v, neighbors in self.arrivals:
            method.add_vertex(v, neighbors)
        return method

    def score(self, vectors: np.ndarray) -> float:
        rows = np.arange(GRAPH.vertices)
        return classify(vectors, self.labels, rows[:HALF], rows[HALF:]).micro


@pytest.fixture(scope="session")
def small_stream() -> Stream:
    return Stream()
