"""Tests of distributed matrices: column slices, copies, deletion, and cleanup after errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.cluster.distributed_matrix import copy_for_solver

BLOCK = np.arange(160, dtype=np.float32).reshape(40, 4)


def test_column_slices_share_memory_with_matrix(graph_pair: Any) -> None:
    pair = graph_pair(0, 3)
    with pair.open_graph() as graph:
        handle = pair.put(graph, BLOCK)
        part = handle[:, 1:][:, :2]
        assert part.shape[1] == 2
        assert np.array_equal(pair.read(part), BLOCK[:, 1:3])
        part[:] = pair.put(graph, -BLOCK[:, :2])
        handle[:, np.array([3, 0])] = pair.put(graph, BLOCK[:, :2] + 0.5)
        expected = np.stack([BLOCK[:, 1] + 0.5, -BLOCK[:, 0], -BLOCK[:, 1], BLOCK[:, 0] + 0.5], axis=1)
        assert np.array_equal(pair.read(handle), expected)


def test_copy_is_independent_of_original(graph_pair: Any) -> None:
    pair = graph_pair(0, 2)
    with pair.open_graph() as graph:
        handle = pair.put(graph, BLOCK)
        copy = handle[:, 1:3].copy()
        handle[:] = pair.put(graph, 0 * BLOCK)
        assert np.array_equal(pair.read(copy), BLOCK[:, 1:3])
        assert pair.read(copy.astype(np.float64)).dtype == np.float64


@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_copy_for_solver_widens_to_float32(graph_pair: Any, storage: str) -> None:
    pair = graph_pair(0, 3, storage=storage)
    kept = np.asarray(pair.one._engine.store.vectors[:40], np.float32)
    with pair.open_graph() as graph:
        copy = copy_for_solver(graph.vectors[:, 1:3], 1)
        assert copy.dtype == np.float32
        assert np.array_equal(pair.read(copy), kept[:, 1:3])


def test_unsupported_index_raises(graph_pair: Any) -> None:
    with graph_pair(0, 2).open_graph() as graph:
        for key in ((slice(0, 3), slice(None)), (slice(None), slice(None, None, 2))):
            with pytest.raises(IndexError, match="expected all rows and adjacent columns"):
                graph.vectors[key]


def test_unreferenced_matrices_are_deleted(graph_pair: Any) -> None:
    pair = graph_pair(0, 2)
    with pair.open_graph() as graph:
        kept = graph.zeros(2, np.float32)
        part = graph.zeros(8, np.float32)[:, 3:5]
        for _ in range(5):
            graph.zeros(3, np.float32)
        assert {len(shard.matrices.matrix_numbers) for shard in pair.shards} == {
            3
        }  # two referenced ones and the last of the five
        del part
        again = graph.zeros(1, np.float32)
        held = {kept.columns.matrix, again.columns.matrix}
        assert all(shard.matrices.matrix_numbers == held for shard in pair.shards)


def test_totals_match_single_machine(graph_pair: Any) -> None:
    pair = graph_pair(0, 3)
    with pair.open_graph() as graph:
        assert graph.totals() == pytest.approx(pair.one._engine.graph.adjacency.totals(40))


@pytest.mark.parametrize("failing", ["set_lent_rows", "combine"])
def test_failed_step_restores_slots(graph_pair: Any, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    pair = graph_pair(0, 3)
    before = pair.slots()

    def fail(self: Any, *columns: Any, **constants: Any) -> None:
        if self.index == 1:
            raise RuntimeError("the disk is full")

    monkeypatch.setattr(f"ripplevec.cluster.shard_matrices.ShardMatrices.{failing}", fail)
    with pytest.raises(RuntimeError, match="the disk is full"), pair.open_graph() as graph:
        graph.operator(1.0).apply(pair.put(graph, BLOCK))
    for shard, then in zip(pair.shards, before, strict=True):
        assert shard.matrices is None
        assert np.array_equal(shard.graph.adjacency.links.neighbor, then)
