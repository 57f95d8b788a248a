from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from ripplevec import Embedder, InvalidValueError
from ripplevec.integrations.networkx import read_node_attributes, to_networkx


def test_to_networkx_has_vectors_and_weights(model):
    graph = to_networkx(model)
    assert list(graph) == model.ids
    assert graph.degree("d") == model.degree(["d"])[0]
    assert graph["d"][7]["weight"] == 3
    assert graph.degree("alone") == 0
    for name, vector in graph.nodes(data="vector"):
        # On some processors BLAS rounds a row differently if others are served with it.
        np.testing.assert_allclose(vector, model[name], atol=1e-6)


@pytest.mark.parametrize("directed", [False, True])
def test_networkx_round_trip_keeps_the_graph(directed):
    karate = nx.karate_club_graph()
    sent = karate.to_directed() if directed else karate
    back = to_networkx(Embedder(dim=4, directed=directed).fit(sent))
    assert back.is_directed() is directed
    assert nx.utils.edges_equal(sent.edges(data="weight"), back.edges(data="weight"), directed=directed)
    assert Embedder(dim=4, directed=directed).fit(back).ids == list(karate)


def test_node_attributes_of_texts_and_numbers_are_read():
    graph = nx.path_graph(4)
    nx.set_node_attributes(graph, {0: "red", 1: ["red", "blue", "red"]}, "color")
    nx.set_node_attributes(graph, {2: 0.5, 3: 2}, "age")
    nx.set_node_attributes(graph, {2: [1.0, 2.0], 3: np.array([3.0, 4.0])}, "place")
    assert read_node_attributes(graph, "color") == {0: {"color=red": 1.0}, 1: {"color=red": 2.0, "color=blue": 1.0}}
    assert read_node_attributes(graph, "age", "place") == {2: [0.5, 1.0, 2.0], 3: [2.0, 3.0, 4.0]}
    model = Embedder(dim=4).fit(graph, attributes=read_node_attributes(graph, "color"))
    assert model.nearest_by_attributes({"color=blue": 1}, 1)[0][0] == 1


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (("color", "age"), "both for color, age"),
        (("age", "place"), "none for place in node 0"),
        (("odd",), "in node 1, attribute odd"),
    ],
)
def test_node_attributes_that_cannot_be_used_are_refused(names, reason):
    graph = nx.Graph()
    graph.add_node(0, color="red", age=3)
    graph.add_node(1, age=4, place=[1.0], odd=object())
    with pytest.raises(InvalidValueError, match=reason):
        read_node_attributes(graph, *names)
