from __future__ import annotations

import numpy as np
import pytest

from ripplevec import Batch, Embedder
from ripplevec.integrations.export import export_graph


def named(exported):
    ends = ([exported.ids[place] for place in side] for side in (exported.src, exported.dst))
    return sorted(zip(*ends, exported.weight.tolist(), strict=True), key=str)


def test_export_of_an_undirected_graph_has_every_edge_once_from_the_earlier_vertex(model):
    exported = export_graph(model)
    assert exported.ids == model.ids == ["a", "c", "d", 7, "e", "f", "alone"]
    assert np.array_equal(exported.vectors, model.to_numpy())
    assert named(exported) == sorted(
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
    assert len(exported.src) == model.diagnostics()["edges"]


def test_export_of_a_directed_graph_keeps_directions():
    edges = [("a", "b", 1.0), ("b", "a", 2.0), ("c", "a", 3.0)]
    exported = export_graph(Embedder(dim=2, directed=True).fit(edges))
    assert exported.directed
    assert named(exported) == edges


@pytest.mark.parametrize("directed", [False, True])
def test_export_of_a_decaying_graph_has_current_weights(directed):
    model = Embedder(dim=2, half_life=1.0, directed=directed)
    model.fit(Batch.of(["a", "b", "c"], ["b", "c", "d"], time=[0.0, 10.0, 15.0]))
    assert named(export_graph(model)) == [("a", "b", 2.0**-15), ("b", "c", 2.0**-5), ("c", "d", 1.0)]


@pytest.mark.parametrize("directed", [False, True])
def test_export_of_an_empty_model_is_empty(directed):
    exported = export_graph(Embedder(dim=2, directed=directed))
    assert (exported.ids, exported.vectors.shape, len(exported.src)) == ([], (0, 2), 0)
