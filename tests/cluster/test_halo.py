"""Rows of other shards are here for as long as a step takes, and leave nothing behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ripplet.cluster.halo import Halo, packed
from ripplet.cluster.shard import Shard

KINDS = ["vectors", "and_places", "marks"]


@pytest.fixture(params=["float32", "float16"])
def shards(request: pytest.FixtureRequest, grown: Any) -> list[Shard]:
    return grown(3, storage=request.param)[1].engine.crew.shards


def elsewhere(shard: Shard) -> NDArray[np.int64]:
    slots = shard.graph.adjacency.slots()
    return slots[shard.graph.adjacency.links.neighbour[slots] < 0]


def given(shards: list[Shard], halo: Halo, kind: str) -> list[NDArray[Any]]:
    return [packed(shard.field, rows, kind) for shard, rows in zip(shards, halo.parts, strict=True)]


def known_of(shard: Shard) -> list[NDArray[Any]]:
    """All that a step must leave as it is: of the rows that are here, and that there is nothing behind them."""
    links, rows = shard.graph.adjacency.links, shard.graph.rows
    own = shard.field.cells[:rows], shard.field.seen[:rows], links.count[:rows], links.strength[:rows]
    columns = links.neighbour[shard.graph.adjacency.slots()], *own
    behind = shard.graph.arrival[rows:], shard.field.placed[rows:]
    assert (behind[0] == -1).all()
    assert not behind[1].any()
    return [column.copy() for column in (*columns, shard.graph.arrival[:rows], shard.field.placed[:rows])]


def test_every_row_is_asked_for_once_of_its_shard(shards: list[Shard]) -> None:
    shard, slots = shards[0], elsewhere(shards[0])
    halo = Halo(shard.graph.adjacency.links, slots, 3)
    codes = -1 - shard.graph.adjacency.links.neighbour[slots].astype(np.int64)
    assert halo.parts[0].size == 0
    for number in (1, 2):
        wanted = dict.fromkeys((codes[codes % 3 == number] // 3).tolist())
        assert halo.parts[number].tolist() == list(wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_slots_point_to_what_was_received(shards: list[Shard], kind: str) -> None:
    shard, slots = shards[1], elsewhere(shards[1])
    field, links = shard.field, shard.graph.adjacency.links
    codes = -1 - links.neighbour[slots].astype(np.int64)
    halo = Halo(links, slots, 3)
    with halo.here(field, given(shards, halo, kind)) as first:
        assert first == shard.graph.rows
        rows = shard.graph.adjacency.links.neighbour[slots]  # the arrays may have been replaced
        assert rows.min() >= first
        for row, code in zip(rows.tolist(), codes.tolist(), strict=True):
            there, at = shards[code % 3], code // 3
            if kind != "marks":
                assert np.array_equal(field.cells[row], there.field.cells[at])
            if kind != "vectors":
                assert field.placed[row] == there.field.placed[at]
            if kind == "marks":
                assert shard.graph.arrival[row] == there.graph.arrival[at]
            assert field.seen[row] == (there.field.seen[at] if kind == "marks" else 0)


@pytest.mark.parametrize("kind", KINDS)
def test_all_is_given_back(shards: list[Shard], kind: str) -> None:
    for shard in shards:
        before, slots = known_of(shard), elsewhere(shard)
        halo = Halo(shard.graph.adjacency.links, slots, 3)
        received = given(shards, halo, kind)
        with halo.here(shard.field, received):
            pass
        assert all(map(np.array_equal, before, known_of(shard)))
        with pytest.raises(ZeroDivisionError), halo.here(shard.field, received):
            _ = 1 / 0
        assert all(map(np.array_equal, before, known_of(shard)))
        assert shard.faults() == ""


def test_those_not_needed_are_a_row_of_nobody(shards: list[Shard]) -> None:
    shard, slots = shards[2], elsewhere(shards[2])
    links = shard.graph.adjacency.links
    codes = -1 - links.neighbour[slots].astype(np.int64)
    needed = codes % 2 == 0
    halo = Halo(links, slots, 3, needed)
    assert set(halo.codes.tolist()) == set(codes[needed].tolist())
    before = known_of(shard)
    with halo.here(shard.field, given(shards, halo, "and_places")) as first:
        nobody = shard.graph.adjacency.links.neighbour[slots[~needed]]
        assert (nobody == first + halo.codes.size).all()
        assert not shard.field.placed[nobody].any()
    assert all(map(np.array_equal, before, known_of(shard)))


def test_nothing_is_asked_for_where_nothing_is_elsewhere(grown: Any) -> None:
    shard = grown(1)[1].engine.crew.shards[0]
    halo = Halo(shard.graph.adjacency.links, elsewhere(shard), 1)
    assert [part.size for part in halo.parts] == [0]
    before = known_of(shard)
    with halo.here(shard.field, [packed(shard.field, halo.parts[0], "and_places")]):
        pass
    assert all(map(np.array_equal, before, known_of(shard)))


def test_rows_that_were_lent_are_clean_for_newcomers(grown: Any) -> None:
    """Vectors of a halo stay in memory; whoever gets such a row later begins at zero."""
    one, other = grown(3)
    for model in (one, other):
        model.partial_fit([("stranger", "stranger")] * 2 + [("alone", "alone")])
    assert not other["stranger"].any()
    assert one.digest() == other.digest()
