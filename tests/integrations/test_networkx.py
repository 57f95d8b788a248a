from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.integrations.networkx import to_networkx


def test_to_networkx_has_vectors_and_weights(model):
    graph = to_networkx(model)
    assert list(graph) == model.ids
    assert graph.degree("d") == model.degree(["d"])[0]
    assert graph["d"][7]["weight"] == 3
    assert graph.degree("alone") == 0
    for name, vector in graph.nodes(data="vector"):
        assert np.array_equal(vector, model[name])


@pytest.mark.parametrize("directed", [False, True])
def test_networkx_round_trip_keeps_the_graph(directed):
    karate = nx.karate_club_graph()
    sent = karate.to_directed() if directed else karate
    back = to_networkx(Embedder(dim=4, directed=directed).fit(sent))
    assert back.is_directed() is directed
    assert nx.utils.edges_equal(sent.edges(data="weight"), back.edges(data="weight"), directed=directed)
    assert Embedder(dim=4, directed=directed).fit(back).ids == list(karate)
