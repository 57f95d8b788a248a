from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.embedder import Embedder
from ripplevec.views.laplacian import laplacian_vectors


@pytest.fixture
def mean_model(contributing: Any) -> Any:
    contributing.run("Add a rule")
    return lambda **parameters: Embedder(**{"dim": 3, "rule": "mean", **parameters})


RING = [(i, (i + 1) % 9) for i in range(9)] + [(0, 4), (2, 7)]


def test_start_gives_laplacian_vectors(mean_model: Any) -> None:
    model = mean_model().fit(RING)
    adjacency = model.engine.graph.adjacency
    expected = laplacian_vectors(adjacency, 9, 3, "symmetric")
    np.testing.assert_allclose(model.to_numpy(), expected, atol=1e-6)
    assert model.diagnostics()["orthogonality_error"] < 1e-9


def test_empty_model_starts_at_the_start_size(mean_model: Any) -> None:
    model = mean_model(start_size=6)
    for number, edge in enumerate(RING[:8], 1):
        model.partial_fit([edge])
        assert model.diagnostics()["ready"] == (number >= 5), number
    assert model.to_numpy().any(axis=1).all()


def test_reset_without_edges_waits_for_a_new_start(mean_model: Any) -> None:
    model = mean_model().fit(RING)
    for vertex in range(9):
        model.remove_vertex(vertex)
    assert not model.diagnostics()["ready"]


def test_anchor_moves_no_vertex(mean_model: Any) -> None:
    model = mean_model(anchor_growth=0.1).fit(RING)
    before = model.to_numpy()
    assert len(model.anchor()) == 0
    np.testing.assert_array_equal(model.to_numpy(), before)


def test_preview_is_the_mean_of_placed_neighbors(mean_model: Any) -> None:
    model = mean_model().fit(RING)
    model.add_vertex("alone")
    np.testing.assert_allclose(model.preview([1, 5, "alone"]), model.vectors([1, 5]).mean(axis=0), atol=1e-6)
    assert not model.preview(["alone"]).any()
