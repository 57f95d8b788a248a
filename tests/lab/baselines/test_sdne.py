from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.sdne import SDNE
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation import classify

pytest.importorskip("torch")

GRAPH = planted_partition(communities=2, size=40, inside=10, elsewhere=1)
HALVES = np.arange(0, 80, 2), np.arange(1, 80, 2)
SMALL = SDNE(dim=8, hidden=32, epochs=200, batch=32)


def test_sdne_codes_separate_communities() -> None:
    assert classify(SMALL.embed(GRAPH.adjacency()), GRAPH.labels, *HALVES).micro > 0.9


def test_sdne_first_order_pulls_neighbors_together() -> None:
    def spread(first_order: float) -> float:
        codes = SDNE(dim=8, hidden=32, epochs=100, batch=80, first_order=first_order).embed(GRAPH.adjacency())
        along = np.linalg.norm(codes[GRAPH.edges[:, 0]] - codes[GRAPH.edges[:, 1]], axis=1).mean()
        return float(along)

    assert spread(5.0) < spread(1e-6)


def test_sdne_same_seed_gives_same_codes() -> None:
    graph = GRAPH.adjacency()
    np.testing.assert_array_equal(SMALL.embed(graph), SMALL.embed(graph))


def test_sdne_isolated_vertices_are_zero() -> None:
    vectors = SDNE(dim=4, hidden=4, epochs=1).embed(csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])))
    assert vectors.any(axis=1).tolist() == [True, True, False]
    assert not SDNE(dim=4).embed(csr_array((3, 3))).any()


def test_sdne_with_invalid_settings_raises() -> None:
    with pytest.raises(InvalidValueError, match=r"SDNE\.epochs: expected an integer"):
        SDNE(epochs=0)
