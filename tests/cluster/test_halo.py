"""Rows of other shards are here for as long as they are read, and leave nothing behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ripplevec.cluster.halo import Halo, PrefetchedHalo, pack_rows, pack_pushed_rows
from ripplevec.cluster.shard import Shard

KINDS = ["vectors", "and_places"]


@pytest.fixture(params=["float32", "float16"])
def shards(request: pytest.FixtureRequest, grown: Any) -> list[Shard]:
    return grown(3, storage=request.param)[1].engine.transport.shards


def elsewhere(shard: Shard) -> NDArray[np.int64]:
    slots = shard.graph.adjacency.slots()
    return slots[shard.graph.adjacency.links.neighbor[slots] < 0]


def halo_of(shard: Shard, kind: type[Halo] = Halo) -> Any:
    return kind(shard.store, elsewhere(shard), shard.shards, shard.graph.row_count)


def given(shards: list[Shard], halo: Halo, kind: str) -> list[NDArray[Any]]:
    return [pack_rows(shard.store, rows, kind) for shard, rows in zip(shards, halo.requested, strict=True)]


def known_of(shard: Shard) -> list[NDArray[Any]]:
    """All that must be left as it is: of the rows that are here, and that there is nothing behind them."""
    links, rows = shard.graph.adjacency.links, shard.graph.row_count
    own = shard.store.kernel_array[:rows], shard.store.seen[:rows], links.degree[:rows], links.strength[:rows]
    columns = links.neighbor[shard.graph.adjacency.slots()], *own
    behind = shard.graph.arrival[rows:], shard.store.placed[rows:]
    assert (behind[0] == -1).all()
    assert not behind[1].any()
    return [column.copy() for column in (*columns, shard.graph.arrival[:rows], shard.store.placed[:rows])]


def test_every_row_is_asked_for_once_of_its_shard(shards: list[Shard]) -> None:
    shard, slots = shards[0], elsewhere(shards[0])
    halo = halo_of(shard)
    codes = -1 - shard.graph.adjacency.links.neighbor[slots].astype(np.int64)
    assert halo.requested[0].size == 0
    for number in (1, 2):
        wanted = dict.fromkeys((codes[codes % 3 == number] // 3).tolist())
        assert halo.requested[number].tolist() == list(wanted)
    assert halo.find_rows(halo.codes).tolist() == list(range(halo.first_row, halo.end_row))
    assert halo.find_rows(np.array([10**9, -5])).tolist() == [-1, -1]


@pytest.mark.parametrize("kind", KINDS)
def test_slots_point_to_what_was_received(shards: list[Shard], kind: str) -> None:
    shard, slots = shards[1], elsewhere(shards[1])
    codes = -1 - shard.graph.adjacency.links.neighbor[slots].astype(np.int64)
    halo, store = halo_of(shard), shard.store
    halo.receive(given(shards, halo, kind))
    with halo.mapped():
        rows = shard.graph.adjacency.links.neighbor[slots]
        assert rows.min() >= halo.first_row == shard.graph.row_count
        assert rows.max() < halo.end_row
        for row, code in zip(rows.tolist(), codes.tolist(), strict=True):
            there, at = shards[code % 3], code // 3
            assert np.array_equal(store.kernel_array[row], there.store.kernel_array[at])
            assert store.placed[row] == (there.store.placed[at] if kind == "and_places" else 0)


def test_some_of_the_slots_can_point_alone(shards: list[Shard]) -> None:
    shard, slots = shards[1], elsewhere(shards[1])
    halo = halo_of(shard)
    with halo.mapped(slice(2, 5)):
        behind = shard.graph.adjacency.links.neighbor[slots] >= halo.first_row
    assert np.flatnonzero(behind).tolist() == [2, 3, 4]


@pytest.mark.parametrize("kind", KINDS)
def test_all_is_given_back(shards: list[Shard], kind: str) -> None:
    for shard in shards:
        before, halo = known_of(shard), halo_of(shard)
        halo.receive(given(shards, halo, kind))
        with pytest.raises(ZeroDivisionError), halo.mapped():
            _ = 1 / 0
        halo.clear()
        assert all(map(np.array_equal, before, known_of(shard)))
        assert shard.find_faults() == ""


def test_company_has_those_who_are_shown_and_no_others(shards: list[Shard]) -> None:
    shard, store, rng = shards[2], shards[2].store, np.random.default_rng(0)
    before, prefetched = known_of(shard), halo_of(shard, PrefetchedHalo)
    some = [rows[rng.random(rows.size) < 0.5] for rows in prefetched.requested]
    strangers = [rng.integers(10**6, 10**7, 3) for _ in some]
    shown = []
    for number, (rows, strange) in enumerate(zip(some, strangers, strict=True)):
        there, vectors = pack_pushed_rows(shards[number].store, rows)
        nobody = np.ones((3, vectors.shape[1]), vectors.dtype)
        shown.append((np.concatenate([there, strange.astype(np.int32)]), np.concatenate([vectors, nobody])))
    prefetched.receive_pushed(shown, stamp=77)
    codes = np.concatenate([rows * 3 + number for number, rows in enumerate(some)])
    prefetched.set_arrival_numbers(np.append(codes, 10**7), np.append(codes + 5, 1))
    rows = prefetched.find_rows(codes)
    marked = np.zeros(prefetched.end_row - prefetched.first_row, bool)
    marked[rows - prefetched.first_row] = True
    lent = slice(prefetched.first_row, prefetched.end_row)
    assert np.array_equal(store.placed[lent] == 1, marked)
    assert np.array_equal(store.seen[lent] == 77, marked)
    assert shard.graph.arrival[rows].tolist() == (codes + 5).tolist()
    for row, code in zip(rows.tolist(), codes.tolist(), strict=True):
        assert np.array_equal(store.kernel_array[row], shards[code % 3].store.kernel_array[code // 3])
    prefetched.clear()
    assert all(map(np.array_equal, before, known_of(shard)))


def test_nothing_is_asked_for_where_nothing_is_elsewhere(grown: Any) -> None:
    shard = grown(1)[1].engine.transport.shards[0]
    halo = halo_of(shard)
    assert [part.size for part in halo.requested] == [0]
    assert halo.find_rows(np.array([0, 4])).tolist() == [-1, -1]
    before = known_of(shard)
    halo.receive([pack_rows(shard.store, halo.requested[0], "and_places")])
    with halo.mapped():
        pass
    assert all(map(np.array_equal, before, known_of(shard)))


def test_rows_that_were_lent_are_clean_for_newcomers(grown: Any) -> None:
    """Vectors of a halo stay in memory; whoever gets such a row later begins at zero."""
    one, other = grown(3)
    for model in (one, other):
        model.partial_fit([("stranger", "stranger")] * 2 + [("alone", "alone")])
    assert not other["stranger"].any()
    assert one.digest() == other.digest()
