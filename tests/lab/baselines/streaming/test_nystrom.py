from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.lab.baselines.streaming import Nystrom, nystrom


def test_a_twin_of_a_vertex_is_placed_where_the_vertex_is(monkeypatch: pytest.MonkeyPatch, small_stream: Any) -> None:
    monkeypatch.setattr(nystrom, "SMALLEST", 0.0)
    method = Nystrom(dim=6)
    method.start(small_stream.graph)
    for vertex in (0, 7, 33):
        neighbors = small_stream.graph[[vertex]].indices.tolist()
        np.testing.assert_allclose(method.place(neighbors), method.vectors()[vertex], atol=1e-4)


def test_errors_do_not_grow_along_a_chain_of_newcomers(small_stream: Any) -> None:
    method = Nystrom(dim=40)
    method.start(small_stream.graph)
    method.arrive(80, [0])
    for v in range(81, 100):
        method.arrive(v, [v - 1, 0, 1])
    assert np.linalg.norm(method.vectors()[99]) < 10 * np.linalg.norm(method.vectors()[:2], axis=1).max()
