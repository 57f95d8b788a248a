"""The index of a hub against a plain search of its list."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph import _hub_kernels as kernels
from ripplevec.graph._block_kernels import HUB_SIZE_CLASS, NO_INDEX
from ripplevec.graph.adjacency import Adjacency


def star(leaves: NDArray[np.int64]) -> Adjacency:
    adjacency = Adjacency()
    adjacency.ensure_rows(int(leaves.max()) + 1)
    pairs = np.stack([np.zeros_like(leaves), leaves], axis=1)
    adjacency.apply(np.zeros(leaves.size, np.int8), pairs, np.ones(leaves.size, np.float32))
    return adjacency


def test_a_list_gets_an_index_once_it_is_long() -> None:
    few, many = (star(np.arange(1, count)).links for count in (2 ** (HUB_SIZE_CLASS - 1), 2 ** (HUB_SIZE_CLASS - 1) + 3))
    assert few.index_begin[0] == NO_INDEX
    assert many.index_begin[0] != NO_INDEX
    assert (many.index_begin[1:] == NO_INDEX).all()


def test_it_finds_what_a_search_finds() -> None:
    leaves = np.random.default_rng(0).permutation(np.arange(1, 10_000))[:3_000]
    links = star(leaves).links
    assert kernels.is_index_consistent(links, 0)
    listed = links.neighbor[links.begin[0] : links.begin[0] + links.degree[0]].tolist()
    for other in range(1, 10_000, 7):
        found = kernels.find_in_index(links, 0, other)
        assert found == (links.begin[0] + listed.index(other) if other in set(listed) else -1)


def test_it_is_forgotten_made_anew_and_found_out_where_it_is_wrong() -> None:
    links = star(np.arange(1, 3_000)).links
    kernels.free_index(links, 0)
    assert links.index_begin[0] == NO_INDEX
    kernels.ensure_index(links, 0)
    assert kernels.is_index_consistent(links, 0)
    begin = int(links.begin[0])
    links.neighbor[begin], links.neighbor[begin + 1] = links.neighbor[begin + 1], links.neighbor[begin]
    assert not kernels.is_index_consistent(links, 0)
