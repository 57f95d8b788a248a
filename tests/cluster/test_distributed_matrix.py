"""Matrices that lie on shards: their columns, copies of them, and that nothing of them is left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.cluster.distributed_matrix import copy_for_solver

BLOCK = np.arange(160, dtype=np.float32).reshape(40, 4)


def test_columns_of_a_matrix_are_the_matrix_itself(pair_of: Any) -> None:
    pair = pair_of(0, 3)
    with pair.workspace() as workspace:
        sheet = pair.put(workspace, BLOCK)
        part = sheet[:, 1:][:, :2]
        assert part.shape[1] == 2
        assert np.array_equal(pair.read(part), BLOCK[:, 1:3])
        part[:] = pair.put(workspace, -BLOCK[:, :2])
        sheet[:, np.array([3, 0])] = pair.put(workspace, BLOCK[:, :2] + 0.5)
        expected = np.stack([BLOCK[:, 1] + 0.5, -BLOCK[:, 0], -BLOCK[:, 1], BLOCK[:, 0] + 0.5], axis=1)
        assert np.array_equal(pair.read(sheet), expected)


def test_a_copy_has_a_matrix_of_its_own(pair_of: Any) -> None:
    pair = pair_of(0, 2)
    with pair.workspace() as workspace:
        sheet = pair.put(workspace, BLOCK)
        copy = sheet[:, 1:3].copy()
        sheet[:] = pair.put(workspace, 0 * BLOCK)
        assert np.array_equal(pair.read(copy), BLOCK[:, 1:3])
        assert pair.read(copy.astype(np.float64)).dtype == np.float64


@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_vectors_are_copied_to_be_worked_on(pair_of: Any, storage: str) -> None:
    pair = pair_of(0, 3, storage=storage)
    kept = np.asarray(pair.one._engine.store.vectors[:40], np.float32)
    with pair.workspace() as workspace:
        copy = copy_for_solver(workspace.vectors[:, 1:3], 1)
        assert copy.dtype == np.float32
        assert np.array_equal(pair.read(copy), kept[:, 1:3])


def test_only_neighboring_columns_with_all_rows_can_be_had(pair_of: Any) -> None:
    with pair_of(0, 2).workspace() as workspace:
        for key in ((slice(0, 3), slice(None)), (slice(None), slice(None, None, 2))):
            with pytest.raises(IndexError, match="neighboring columns"):
                workspace.vectors[key]


def test_matrices_that_nobody_has_are_let_go_of(pair_of: Any) -> None:
    pair = pair_of(0, 2)
    with pair.workspace() as workspace:
        kept = workspace.zeros(2, np.float32)
        part = workspace.zeros(8, np.float32)[:, 3:5]
        for _ in range(5):
            workspace.zeros(3, np.float32)
        assert {len(shard.matrices._matrices) for shard in pair.shards} == {3}  # with the last of the five
        del part
        again = workspace.zeros(1, np.float32)
        held = {kept.columns.matrix, again.columns.matrix}
        assert all(set(shard.matrices._matrices) == held for shard in pair.shards)


def test_totals_are_those_of_one_machine(pair_of: Any) -> None:
    pair = pair_of(0, 3)
    with pair.workspace() as workspace:
        assert workspace.totals() == pytest.approx(pair.one._engine.graph.adjacency.totals(40))


@pytest.mark.parametrize("failing", ["set_lent_rows", "combine"])
def test_whatever_fails_slots_are_as_they_were(pair_of: Any, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    pair = pair_of(0, 3)
    before = pair.slots()

    def fail(self: Any, *columns: Any, **constants: Any) -> None:
        if self.index == 1:
            raise RuntimeError("the disk is full")

    monkeypatch.setattr(f"ripplevec.cluster.shard_matrices.Sheets.{failing}", fail)
    with pytest.raises(RuntimeError, match="the disk is full"), pair.workspace() as workspace:
        workspace.operator(1.0).step(pair.put(workspace, BLOCK))
    for shard, then in zip(pair.shards, before, strict=True):
        assert shard.matrices is None
        assert np.array_equal(shard.graph.adjacency.links.neighbor, then)
