"""Hash index of a hub compared with a linear search of its list."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph import _hub_kernels as kernels
from ripplevec.graph._block_kernels import HUB_SIZE_CLASS, NO_INDEX
from ripplevec.graph.adjacency import Adjacency


def create_star(leaves: NDArray[np.int64]) -> Adjacency:
    adjacency = Adjacency()
    adjacency.ensure_rows(int(leaves.max()) + 1)
    pairs = np.stack([np.zeros_like(leaves), leaves], axis=1)
    adjacency.apply(np.zeros(leaves.size, np.int8), pairs, np.ones(leaves.size, np.float32))
    return adjacency


def test_index_long_list_is_built() -> None:
    short, long = (
        create_star(np.arange(1, count)).links for count in (2 ** (HUB_SIZE_CLASS - 1), 2 ** (HUB_SIZE_CLASS - 1) + 3)
    )
    assert short.index_begin[0] == NO_INDEX
    assert long.index_begin[0] != NO_INDEX
    assert (long.index_begin[1:] == NO_INDEX).all()


def test_find_in_index_random_list_matches_linear_search() -> None:
    leaves = np.random.default_rng(0).permutation(np.arange(1, 10_000))[:3_000]
    links = create_star(leaves).links
    assert kernels.is_index_consistent(links, 0)
    listed = links.neighbor[links.begin[0] : links.begin[0] + links.degree[0]].tolist()
    for other in range(1, 10_000, 7):
        found = kernels.find_in_index(links, 0, other)
        assert found == (links.begin[0] + listed.index(other) if other in set(listed) else -1)


def test_index_freed_and_rebuilt_is_consistent_until_list_changes() -> None:
    links = create_star(np.arange(1, 3_000)).links
    kernels.free_index(links, 0)
    assert links.index_begin[0] == NO_INDEX
    kernels.ensure_index(links, 0)
    assert kernels.is_index_consistent(links, 0)
    begin = int(links.begin[0])
    links.neighbor[begin], links.neighbor[begin + 1] = links.neighbor[begin + 1], links.neighbor[begin]
    assert not kernels.is_index_consistent(links, 0)
