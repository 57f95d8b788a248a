from __future__ import annotations

from typing import Any

import numpy as np

from ripplevec.lab.baselines.streaming import NeighborMean


def test_a_newcomer_is_in_the_middle_of_its_neighbors(small_stream: Any) -> None:
    method = NeighborMean(dim=8)
    method.start(small_stream.graph)
    first = method.arrive(80, [0, 1, 2])
    np.testing.assert_allclose(first, method.vectors()[:3].mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(method.arrive(81, [80, 3]), (first + method.vectors()[3]) / 2, rtol=1e-6)
