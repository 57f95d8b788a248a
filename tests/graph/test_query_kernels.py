"""Edges are found in the lists of their ends, whichever is looked at."""

from __future__ import annotations

import numpy as np

from ripplevec.graph import _query_kernels as finding
from ripplevec.graph.adjacency import Adjacency

ROWS = 6
PAIRS = [(0, v) for v in range(1, ROWS)] + [(4, 2)]


def test_slots_and_edges_are_found_from_either_end() -> None:
    adjacency = Adjacency(directed=True)
    adjacency.ensure_rows(ROWS)
    adjacency.apply(np.zeros(len(PAIRS), np.int8), np.array(PAIRS), np.ones(len(PAIRS), np.float32))
    links = adjacency.links
    assert [finding.find_slot(links, 0, v) - links.begin[0] for v in range(1, ROWS)] == [0, 1, 2, 3, 4]
    assert finding.find_slot(links, 0, 0) == -1
    assert finding.find_edge_slots(links, 2, 0) == (finding.find_slot(links, 2, 0), finding.find_slot(links, 0, 2))
    assert finding.find_edge_slots(links, 0, 2) == (finding.find_slot(links, 0, 2), finding.find_slot(links, 2, 0))
    assert finding.find_edge_slots(links, 1, 2) == (-1, -1)
    src, dst = np.divmod(np.arange(ROWS * ROWS), ROWS)
    found = np.empty(ROWS * ROWS, np.bool_)
    finding.has_edges(links, src, dst, found, True)
    assert found.tolist() == [(u, v) in PAIRS for u, v in zip(src, dst, strict=True)]
    finding.has_edges(links, src, dst, found, False)
    assert found.tolist() == [(u, v) in PAIRS or (v, u) in PAIRS for u, v in zip(src, dst, strict=True)]
    assert [finding.has_edge(links, 0, 1, True), finding.has_edge(links, 1, 0, True)] == [True, False]
