from __future__ import annotations

import numpy as np

from ripplevec.graph.adjacency import Adjacency
from ripplevec.graph.adjacency import WeightScale


def a_path() -> Adjacency:
    adjacency = Adjacency()
    adjacency.ensure_rows(4)
    adjacency.apply(np.zeros(3, np.int8), np.array([[0, 1], [1, 2], [2, 3]]), np.ones(3, np.float32))
    return adjacency


def test_where_nothing_fades_weights_mean_what_they_say() -> None:
    adjacency = a_path()
    assert adjacency.weight_scale == WeightScale(1.0, np.inf)
    assert adjacency.totals(4) == (6, 6.0, 4)
    assert adjacency.totals(4).mean_degree == 1.5


def test_edges_that_have_faded_are_not_counted_and_copies_know() -> None:
    adjacency = a_path()
    adjacency.weight_scale = WeightScale(4.0, 2.0)
    assert adjacency.totals(4) == (4, 6.0, 4)
    assert adjacency.copy().scale == adjacency.weight_scale
    assert adjacency.reorder(np.array([2, 1, 0, 3])).weight_scale == adjacency.weight_scale
