"""Whether a graph has two sides, against NetworkX."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.graph._query_kernels import is_bipartite
from ripplevec.graph.adjacency import Adjacency

EDGES = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)).filter(lambda pair: pair[0] != pair[1]), max_size=18)


@given(EDGES, st.booleans())
def test_as_networkx_says(edges: list[tuple[int, int]], across: bool) -> None:
    if across:
        edges = [(2 * (a // 2), 2 * (b // 2) + 1) for a, b in edges]
    adjacency = Adjacency()
    adjacency.ensure_rows(12)
    count = len(edges)
    adjacency.apply(np.zeros(count, np.int8), np.array(edges, np.int64).reshape(-1, 2), np.ones(count, np.float32))
    assert is_bipartite(adjacency.links, 12) == nx.is_bipartite(nx.Graph(edges))
    assert not across or is_bipartite(adjacency.links, 12)
