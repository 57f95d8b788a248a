from __future__ import annotations

from typing import Any

import numpy as np

from ripplevec import Embedder
from ripplevec.lab.baselines.streaming import NeighborMean


def test_the_start_is_the_exact_view_of_an_embedder(small_stream: Any) -> None:
    method, exact = NeighborMean(dim=8), Embedder(dim=8, normalize=False)
    method.start(small_stream.graph)
    exact.fit(small_stream.graph)
    np.testing.assert_allclose(method.vectors(), exact.to_numpy(), atol=1e-5)


def test_placed_vertices_never_move(small_stream: Any) -> None:
    method = NeighborMean(dim=8)
    method.start(small_stream.graph)
    before = method.vectors().copy()
    given = method.arrive(80, [0, 1, 2])
    method.arrive(81, [80, 3])
    np.testing.assert_array_equal(method.arrive(80, [5]), given)
    np.testing.assert_array_equal(method.vectors()[:80], before)
