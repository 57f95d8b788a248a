from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.map_plot import project

mpl.use("Agg")


def test_project_keeps_the_distances_of_points_in_a_plane() -> None:
    rng = np.random.default_rng(0)
    plane = rng.normal(size=(20, 2))
    points = project((plane @ np.linalg.qr(rng.normal(size=(5, 2)))[0].T).astype(np.float32))
    distances = [np.linalg.norm(each[:, None] - each, axis=2) for each in (plane, points)]
    np.testing.assert_allclose(*distances, atol=1e-5)


def test_plot_draws_a_point_per_vertex_and_a_legend() -> None:
    model = Embedder(dim=2).fit([("a", "b"), ("b", "c"), ("c", "d")])
    axes = model.plot({"a": "x", "b": "x", "c": "y"})
    assert [len(group.get_offsets()) for group in axes.collections] == [2, 1, 1]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["x", "y"]
    again = model.plot(ax=axes)
    assert again is axes


@pytest.mark.parametrize("dim", [1, 3])
def test_plot_works_for_any_dimension_and_without_labels(dim: int) -> None:
    assert Embedder(dim=dim).fit([("a", "b"), ("b", "c")]).plot().get_legend() is None
