"""Edge lookup from both endpoints, and bipartiteness compared with NetworkX."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.graph import _query_kernels as kernels
from ripplevec.graph.adjacency import Adjacency

ROWS = 6
PAIRS = [(0, v) for v in range(1, ROWS)] + [(4, 2)]
EDGES = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)).filter(lambda pair: pair[0] != pair[1]), max_size=18)


def create_adjacency(pairs: list[tuple[int, int]], rows: int, *, directed: bool = False) -> Adjacency:
    adjacency = Adjacency(directed=directed)
    adjacency.ensure_rows(rows)
    count = len(pairs)
    adjacency.apply(np.zeros(count, np.int8), np.array(pairs, np.int64).reshape(-1, 2), np.ones(count, np.float32))
    return adjacency


def test_find_slot_returns_position_in_list() -> None:
    links = create_adjacency(PAIRS, ROWS, directed=True).links
    assert [kernels.find_slot(links, 0, v) - links.begin[0] for v in range(1, ROWS)] == [0, 1, 2, 3, 4]
    assert kernels.find_slot(links, 0, 0) == -1


def test_find_edge_slots_returns_slots_of_both_endpoints() -> None:
    links = create_adjacency(PAIRS, ROWS, directed=True).links
    assert kernels.find_edge_slots(links, 2, 0) == (kernels.find_slot(links, 2, 0), kernels.find_slot(links, 0, 2))
    assert kernels.find_edge_slots(links, 0, 2) == (kernels.find_slot(links, 0, 2), kernels.find_slot(links, 2, 0))
    assert kernels.find_edge_slots(links, 1, 2) == (-1, -1)


def test_has_edges_all_pairs_matches_list_of_pairs() -> None:
    links = create_adjacency(PAIRS, ROWS, directed=True).links
    src, dst = np.divmod(np.arange(ROWS * ROWS), ROWS)
    found = np.empty(ROWS * ROWS, np.bool_)
    kernels.has_edges(links, src, dst, found, True)
    assert found.tolist() == [(u, v) in PAIRS for u, v in zip(src, dst, strict=True)]
    kernels.has_edges(links, src, dst, found, False)
    assert found.tolist() == [(u, v) in PAIRS or (v, u) in PAIRS for u, v in zip(src, dst, strict=True)]
    assert [kernels.has_edge(links, 0, 1, True), kernels.has_edge(links, 1, 0, True)] == [True, False]


@given(EDGES, st.booleans())
def test_is_bipartite_random_graph_matches_networkx(edges: list[tuple[int, int]], across: bool) -> None:
    if across:  # every edge joins an even and an odd row
        edges = [(2 * (a // 2), 2 * (b // 2) + 1) for a, b in edges]
    adjacency = create_adjacency(edges, 12)
    assert kernels.is_bipartite(adjacency.links, 12) == nx.is_bipartite(nx.Graph(edges))
    assert not across or kernels.is_bipartite(adjacency.links, 12)
