"""Blocks are given out and taken back in either arena, by lists of their own."""

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
    lists, top = request.param
    return blocks.create_allocator(), lists, top, np.zeros(64, np.int32)


def take(arena: Arena, room: int) -> int:
    heads, lists, top, cells = arena
    return blocks.allocate_block(heads, lists, top, cells, room)


def give(arena: Arena, at: int, room: int) -> None:
    heads, lists, _, cells = arena
    blocks.free_block(heads, lists, cells, at, room)


def test_free_blocks_come_back_last_first_then_fresh_from_the_top(arena: Arena) -> None:
    first, second, other = (take(arena, room) for room in (2, 2, 3))
    assert (first, second, other, arena[0][arena[2]]) == (0, 4, 8, 16)
    give(arena, first, 2)
    give(arena, second, 2)
    assert [take(arena, 2) for _ in range(3)] == [second, first, 16]


@pytest.mark.parametrize("address", [-1, 0, 2**31 - 2, 2**31 - 1, 2**31, 2**45 + 12345])
def test_free_lists_reach_beyond_two_to_the_31_cells(arena: Arena, address: int) -> None:
    heads, lists, _, _ = arena
    heads[lists + 1] = address
    give(arena, 4, 1)
    assert take(arena, 1) == 4
    assert heads[lists + 1] == address


def test_there_is_a_block_where_one_is_free_or_fits_above() -> None:
    adjacency = Adjacency()
    adjacency.ensure_rows(4)
    adjacency.apply(np.zeros(1, np.int8), np.array([[0, 1]]), np.ones(1, np.float32))
    links = adjacency.links
    links.allocator[ARENA_TOP] = links.neighbor.size - 4
    assert blocks.can_allocate(links, 2)
    assert not blocks.can_allocate(links, 3)
    links.allocator[3] = 0
    assert blocks.can_allocate(links, 3)
