"""Tests of exchanges of rows: every shard gets its rows, whatever their number, and counts what it sends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from connected_meshes import run

from ripplevec.cluster.mesh import Mesh
from ripplevec.cluster.row_exchange import broadcast_rows, group_rows


@pytest.mark.parametrize("size", [1, 2, 4, 9])
@pytest.mark.parametrize("scale", [0, 1, 20_000])  # no rows, small messages, messages larger than all buffers
def test_exchange_rows_delivers_rows_in_the_order_of_shards(connect: Any, size: int, scale: int) -> None:
    def rows_between(source: int, target: int) -> int:
        return scale * ((source + 2 * target) % 3)

    def program(mesh: Mesh) -> None:
        counts = [rows_between(mesh.index, target) for target in range(size)]
        names, rows = 100 * mesh.index + np.arange(size), sum(counts)
        marks = np.repeat(names, counts).astype(np.int32), np.repeat(names, counts).reshape(-1, 1) * np.ones(3)
        for step in range(3):  # shards may be one exchange ahead of others
            group, own_name = group_rows(marks, np.cumsum([0, *counts])), np.array([[mesh.index, step]], np.int16)
            everywhere = broadcast_rows([own_name], size)
            before = mesh.sent
            (received, names_of_all), numbers = mesh.exchange_rows(group, everywhere, numbers=[mesh.index, -step])
            arriving = [rows_between(source, mesh.index) for source in range(size)]
            expected = np.repeat(100 * np.arange(size) + mesh.index, arriving)
            assert received.columns[0].tolist() == expected.tolist()
            assert np.array_equal(received.columns[1], expected.reshape(-1, 1) * np.ones(3))
            assert received.repeat_shards().tolist() == (expected // 100).tolist()
            assert names_of_all.columns[0].tolist() == [[source, step] for source in range(size)]
            assert numbers.tolist() == [[source, -step] for source in range(size)]
            assert mesh.sent - before == 28 * (rows - counts[mesh.index]) + own_name.nbytes * (size - 1)
            received.columns[1][:] = 0  # does not change anything that is still on its way

    run(connect(size), program)


def test_exchange_rows_stores_rows_in_the_given_arrays(connect: Any) -> None:
    def program(mesh: Mesh) -> list[list[int]]:
        block = np.full((5, 2), -1)
        group = group_rows([np.full((3, 2), mesh.index)], np.array([0, 1, 2, 3]))._replace(into=[block[1:4]])
        (received,), _ = mesh.exchange_rows(group)
        assert np.shares_memory(received.columns[0], block)
        return block[:, 0].tolist()

    assert run(connect(3), program) == [[-1, 0, 1, 2, -1]] * 3
