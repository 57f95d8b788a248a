"""A growing graph of four communities, as snapshots."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec.lab.datasets.synthetic import planted_partition

GRAPH = planted_partition(communities=4, size=40, inside=8, elsewhere=1)


class Snapshots:
    """Snapshots of the first vertices in random order, and the labels in this order."""

    order = np.random.default_rng(0).permutation(GRAPH.vertices)
    labels = GRAPH.labels[order]
    matrix = csr_array(GRAPH.adjacency()[order][:, order])

    def __iter__(self) -> Iterator[csr_array]:
        for size in (80, 100, 120, 140, 160):
            yield csr_array(self.matrix[:size, :size])


@pytest.fixture(scope="session")
def snapshots() -> Snapshots:
    return Snapshots()
