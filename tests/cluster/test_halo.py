"""Tests of halos: copies of remote rows are readable while mapped, and leave no trace afterwards."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ripplevec.cluster.halo import Halo, PrefetchedHalo
from ripplevec.cluster.row_exchange import ReceivedRows
from ripplevec.cluster.shard import Shard


@pytest.fixture(params=["float32", "float16"])
def shards(request: pytest.FixtureRequest, grown_models: Any) -> list[Shard]:
    return grown_models(3, storage=request.param)[1].engine.transport.shards


def remote_slots(shard: Shard) -> NDArray[np.int64]:
    slots = shard.graph.adjacency.slots()
    return slots[shard.graph.adjacency.links.neighbor[slots] < 0]


def halo_of(shard: Shard, kind: type[Halo] = Halo) -> Any:
    return kind(shard.store, remote_slots(shard), shard.shards, shard.graph.row_count)


def fill_all(halos: list[Halo], shards: list[Shard], with_placed: bool) -> None:
    """Request the rows of all halos, and fill these, on all shards at the same time."""

    def fill(halo: Halo, shard: Shard) -> None:
        requested, numbers = halo.request(shard.mesh, shard.index, 7)
        assert numbers.tolist() == [[index, 7] for index in range(len(shards))]
        before = shard.mesh.sent
        halo.fill(shard.mesh, requested, with_placed=with_placed)
        row_bytes = shard.store.kernel_array[:1].nbytes + with_placed
        assert shard.mesh.sent - before == requested.columns[0].size * row_bytes

    with ThreadPoolExecutor(len(shards)) as threads:
        list(threads.map(fill, halos, shards))


def shard_columns(shard: Shard) -> list[NDArray[Any]]:
    """Copy everything that a halo must not change, and check that the rows after the shard's own are unused."""
    links, rows = shard.graph.adjacency.links, shard.graph.row_count
    assert (shard.graph.arrival[rows:] == -1).all()
    assert not shard.store.placed[rows:].any()
    own = shard.store.kernel_array, shard.store.seen, links.degree, links.strength
    columns = *own, shard.graph.arrival, shard.store.placed
    neighbors = links.neighbor[shard.graph.adjacency.slots()]
    return [neighbors.copy(), *(column[:rows].copy() for column in columns)]


def test_halo_requests_each_remote_row_once_from_its_shard(shards: list[Shard]) -> None:
    shard, slots = shards[0], remote_slots(shards[0])
    halo = halo_of(shard)
    codes = -1 - shard.graph.adjacency.links.neighbor[slots].astype(np.int64)
    assert halo.requested[0].size == 0
    for index in (1, 2):
        expected = dict.fromkeys((codes[codes % 3 == index] // 3).tolist())
        assert halo.requested[index].tolist() == list(expected)
    assert halo.find_rows(halo.codes).tolist() == list(range(halo.first_row, halo.end_row))
    assert halo.find_rows(np.array([10**9, -5])).tolist() == [-1, -1]


@pytest.mark.parametrize("with_placed", [False, True])
def test_mapped_slots_point_to_received_rows(shards: list[Shard], with_placed: bool) -> None:
    shard, slots = shards[1], remote_slots(shards[1])
    codes = -1 - shard.graph.adjacency.links.neighbor[slots].astype(np.int64)
    halos, store = [halo_of(each) for each in shards], shard.store
    fill_all(halos, shards, with_placed)
    halo = halos[1]
    with halo.mapped():
        rows = shard.graph.adjacency.links.neighbor[slots]
        assert rows.min() >= halo.first_row == shard.graph.row_count
        assert rows.max() < halo.end_row
        for row, code in zip(rows.tolist(), codes.tolist(), strict=True):
            owner, remote_row = shards[code % 3], code // 3
            assert np.array_equal(store.kernel_array[row], owner.store.kernel_array[remote_row])
            assert store.placed[row] == (owner.store.placed[remote_row] if with_placed else 0)


def test_mapped_with_slice_maps_only_these_slots(shards: list[Shard]) -> None:
    shard, slots = shards[1], remote_slots(shards[1])
    halo = halo_of(shard)
    with halo.mapped(slice(2, 5)):
        in_halo = shard.graph.adjacency.links.neighbor[slots] >= halo.first_row
    assert np.flatnonzero(in_halo).tolist() == [2, 3, 4]


@pytest.mark.parametrize("with_placed", [False, True])
def test_halo_after_clear_leaves_shard_unchanged(shards: list[Shard], with_placed: bool) -> None:
    columns, halos = [shard_columns(shard) for shard in shards], [halo_of(shard) for shard in shards]
    fill_all(halos, shards, with_placed)
    for shard, before, halo in zip(shards, columns, halos, strict=True):
        with pytest.raises(ZeroDivisionError), halo.mapped():
            _ = 1 / 0
        halo.clear()
        assert all(map(np.array_equal, before, shard_columns(shard)))
        assert shard.find_fault() == ""


def test_prefetched_halo_stores_pushed_rows_and_ignores_others(shards: list[Shard]) -> None:
    shard, store, rng = shards[2], shards[2].store, np.random.default_rng(0)
    before, halo = shard_columns(shard), halo_of(shard, PrefetchedHalo)
    selected = [rows[rng.random(rows.size) < 0.5] for rows in halo.requested]
    pushed: list[Any] = []
    for sender, rows in zip(shards, selected, strict=True):
        unknown_rows, vectors = rng.integers(10**6, 10**7, 3), sender.store.kernel_array[rows]
        unknown_vectors = np.ones((3, vectors.shape[1]), vectors.dtype)
        pushed.append((np.append(rows, unknown_rows).astype(np.int32), np.concatenate([vectors, unknown_vectors])))
    bounds = np.cumsum([0, *(row_numbers.size for row_numbers, _ in pushed)])
    halo.receive_pushed(ReceivedRows([np.concatenate(columns) for columns in zip(*pushed, strict=True)], bounds), 77)
    codes = np.concatenate([rows * 3 + index for index, rows in enumerate(selected)])
    halo.set_arrival_numbers(np.append(codes, 10**7), np.append(codes + 5, 1))
    rows = halo.find_rows(codes)
    received = np.zeros(halo.end_row - halo.first_row, bool)
    received[rows - halo.first_row] = True
    halo_rows = slice(halo.first_row, halo.end_row)
    assert np.array_equal(store.placed[halo_rows] == 1, received)
    assert np.array_equal(store.seen[halo_rows] == 77, received)
    assert shard.graph.arrival[rows].tolist() == (codes + 5).tolist()
    for row, code in zip(rows.tolist(), codes.tolist(), strict=True):
        assert np.array_equal(store.kernel_array[row], shards[code % 3].store.kernel_array[code // 3])
    halo.clear()
    assert all(map(np.array_equal, before, shard_columns(shard)))


def test_halo_without_remote_neighbors_requests_nothing(grown_models: Any) -> None:
    shard = grown_models(1)[1].engine.transport.shards[0]
    halo = halo_of(shard)
    assert [part.size for part in halo.requested] == [0]
    assert halo.find_rows(np.array([0, 4])).tolist() == [-1, -1]
    before = shard_columns(shard)
    fill_all([halo], [shard], with_placed=True)
    with halo.mapped():
        pass
    assert all(map(np.array_equal, before, shard_columns(shard)))


def test_new_vertex_in_former_halo_row_starts_at_zero(grown_models: Any) -> None:
    """The vectors of a halo stay in memory; a new vertex that gets such a row must not inherit them."""
    single, sharded = grown_models(3)
    for model in (single, sharded):
        model.partial_fit([("isolated", "isolated")] * 2 + [("alone", "alone")])
    assert not sharded["isolated"].any()
    assert single.digest() == sharded.digest()
