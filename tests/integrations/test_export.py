from __future__ import annotations

import numpy as np
import pytest

from ripplevec import Batch, Embedder
from ripplevec.integrations.export import whole


def named(held):
    ends = ([held.ids[place] for place in side] for side in (held.src, held.dst))
    return sorted(zip(*ends, held.weight.tolist(), strict=True), key=str)


def test_every_edge_once_the_earlier_vertex_first(model):
    held = whole(model)
    assert held.ids == model.ids == ["a", "c", "d", 7, "e", "f", "alone"]
    assert np.array_equal(held.vectors, model.to_numpy())
    assert named(held) == sorted(
        [
            ("a", "c", 0.5),
            ("c", "d", 1.0),
            ("a", 7, 1.0),
            ("d", 7, 3.0),
            ("d", "e", 1.0),
            ("a", "f", 1.0),
            (7, "f", 1.0),
            ("e", "f", 1.0),
        ],
        key=str,
    )
    assert len(held.src) == model.diagnostics()["edges"]


def test_directions_are_kept():
    edges = [("a", "b", 1.0), ("b", "a", 2.0), ("c", "a", 3.0)]
    held = whole(Embedder(dim=2, directed=True).fit(edges))
    assert held.directed
    assert named(held) == edges


@pytest.mark.parametrize("directed", [False, True])
def test_weights_are_what_they_are_by_now(directed):
    model = Embedder(dim=2, half_life=1.0, directed=directed)
    model.fit(Batch.of(["a", "b", "c"], ["b", "c", "d"], time=[0.0, 10.0, 15.0]))
    assert named(whole(model)) == [("a", "b", 2.0**-15), ("b", "c", 2.0**-5), ("c", "d", 1.0)]


@pytest.mark.parametrize("directed", [False, True])
def test_nothing_yet(directed):
    held = whole(Embedder(dim=2, directed=directed))
    assert (held.ids, held.vectors.shape, len(held.src)) == ([], (0, 2), 0)
