"""Allocation and reuse of blocks in both arenas."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ripplevec.graph import _block_kernels as blocks
from ripplevec.graph._block_kernels import ARENA_TOP, INDEX_ARENA_TOP, INDEX_FREE_LISTS
from ripplevec.graph.adjacency import Adjacency

Arena = tuple[NDArray[np.int64], int, int, NDArray[np.int32]]


@pytest.fixture(params=[(0, ARENA_TOP), (INDEX_FREE_LISTS, INDEX_ARENA_TOP)], ids=["slots", "indices"])
def arena(request: pytest.FixtureRequest) -> Arena:
    free_lists, top = request.param
    return blocks.create_allocator(), free_lists, top, np.zeros(64, np.int32)


def allocate(arena: Arena, size_class: int) -> int:
    allocator, free_lists, top, cells = arena
    return blocks.allocate_block(allocator, free_lists, top, cells, size_class)


def free(arena: Arena, at: int, size_class: int) -> None:
    allocator, free_lists, _, cells = arena
    blocks.free_block(allocator, free_lists, cells, at, size_class)


def test_allocate_block_reuses_latest_freed_block_first(arena: Arena) -> None:
    first, second, other = (allocate(arena, size_class) for size_class in (2, 2, 3))
    assert (first, second, other, arena[0][arena[2]]) == (0, 4, 8, 16)
    free(arena, first, 2)
    free(arena, second, 2)
    assert [allocate(arena, 2) for _ in range(3)] == [second, first, 16]


@pytest.mark.parametrize("address", [-1, 0, 2**31 - 2, 2**31 - 1, 2**31, 2**45 + 12345])
def test_free_list_addresses_beyond_two_to_the_31_are_kept(arena: Arena, address: int) -> None:
    allocator, free_lists, _, _ = arena
    allocator[free_lists + 1] = address
    free(arena, 4, 1)
    assert allocate(arena, 1) == 4
    assert allocator[free_lists + 1] == address


def test_can_allocate_free_block_or_space_at_top_returns_true() -> None:
    adjacency = Adjacency()
    adjacency.ensure_rows(4)
    adjacency.apply(np.zeros(1, np.int8), np.array([[0, 1]]), np.ones(1, np.float32))
    links = adjacency.links
    links.allocator[ARENA_TOP] = links.neighbor.size - 4
    assert blocks.can_allocate(links, 2)
    assert not blocks.can_allocate(links, 3)
    links.allocator[3] = 0
    assert blocks.can_allocate(links, 3)
