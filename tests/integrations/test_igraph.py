from __future__ import annotations

import igraph
import numpy as np
import pytest

from ripplevec import Embedder, InvalidValueError
from ripplevec.integrations.igraph import to_igraph


def edges(graph):
    return sorted((e.source, e.target, e["weight"]) for e in graph.es)


def test_to_igraph_has_names_vectors_and_weights(model):
    graph = to_igraph(model)
    assert graph.vs["name"] == model.ids
    assert np.array_equal(np.stack(graph.vs["vector"]), model.to_numpy())
    assert graph.degree() == model.degree(model.ids).tolist()
    d, seven = (graph.vs["name"].index(name) for name in ("d", 7))
    assert graph.es[graph.get_eid(d, seven)]["weight"] == 3


@pytest.mark.parametrize("directed", [False, True])
def test_igraph_round_trip_keeps_the_graph(directed):
    sent = igraph.Graph.Erdos_Renyi(n=30, m=60, directed=directed)
    sent.es["weight"] = [1.0 + number for number in range(60)]
    model = Embedder(dim=4, directed=directed).fit(sent)
    assert model.ids == list(range(30))
    back = to_igraph(model)
    assert back.is_directed() is directed
    assert edges(back) == edges(sent)


def test_igraph_vertices_with_names_use_them_as_ids():
    graph = igraph.Graph.TupleList([("x", "y"), ("y", "z")])
    model = Embedder(dim=2).fit(graph)
    assert model.ids == ["x", "y", "z"]
    model.remove_edges(igraph.Graph.TupleList([("x", "y")]))
    assert model.degree(["x", "y", "z"]).tolist() == [0, 1, 1]


def test_igraph_vertex_with_unsupported_name_is_refused():
    graph = igraph.Graph.TupleList([("x", "y")])
    graph.add_vertex()
    with pytest.raises(InvalidValueError, match="ids that are int or str, got 'None of type"):
        Embedder(dim=2).fit(graph)
