from __future__ import annotations

import networkx as nx
import pytest

from ripplevec.batch import Batch
from ripplevec.cli.check_run import describe_graph


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("bipartite", [False, True])
def test_describe_graph_equals_networkx(seed, bipartite):
    graph = nx.bipartite.random_graph(8, 9, 0.1, seed) if bipartite else nx.gnp_random_graph(20, 0.07, seed)
    graph.remove_nodes_from(list(nx.isolates(graph)))
    pairs = [*graph.edges, *[(v, u) for u, v in graph.edges][:3]]
    found = describe_graph(Batch.from_any(pairs))
    parts = list(nx.connected_components(graph))
    assert (found["vertices"], found["edges"], found["repeated"]) == (len(graph), graph.number_of_edges(), 3)
    assert (found["components"], found["largest"]) == (len(parts), max(map(len, parts)))
    assert found["bipartite"] == nx.is_bipartite(graph)
