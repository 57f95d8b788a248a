from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.rules import correction_workspace
from ripplevec.rules.correction_workspace import (
    LARGE_BLOCK_BYTES,
    Workspace,
    count_column_parts,
    count_spare_columns,
    select_columns,
)
from ripplevec.rules.gradual_correction import GradualCorrection
from ripplevec.rules.vector_store import VectorStore
from ripplevec.util.growable_array import GrowableArray
from ripplevec.views._kernels import get_row


def make_store(**parameters: Any) -> VectorStore:
    return Embedder(dim=4, anchor_growth=0, **parameters).fit([(i, (i + 1) % 9) for i in range(9)]).engine.store


def make_workspace(store: VectorStore) -> Workspace:
    workspace = Workspace(store, parts=2)
    workspace.grow(store.graph.adjacency.capacity)
    return workspace


@pytest.mark.parametrize("storage", ["float32", "float16"])
@pytest.mark.parametrize("in_files", [False, True])
def test_workspace_exchange_rows_gives_the_new_rows_to_the_store(storage: str, in_files: bool, tmp_path: Any) -> None:
    store = make_store(storage=storage, storage_dir=tmp_path if in_files else None)
    workspace, before = make_workspace(store), store.vectors.copy()
    assert workspace.current.array.dtype == workspace.spare.array.dtype == np.float32
    assert workspace.rows.array.dtype == store.vectors.dtype
    assert (workspace.rows is workspace.current) == (storage == "float32")
    workspace.current.array[:] = 3
    workspace.rows.array[:] = 7
    workspace.exchange_rows(store)
    assert (store.vectors == 7).all()
    np.testing.assert_array_equal(workspace.rows.array, before)
    assert (workspace.rows is workspace.current) == (storage == "float32")
    assert storage == "float32" or (workspace.current.array == 3).all()
    workspace.rows.array[:] = 5  # does not share memory with the store
    assert (store.vectors == 7).all()


@pytest.mark.parametrize(
    ("dim", "parts", "width"),
    [(4, 2, 4), (64, 2, 64), (65, 2, 64), (100, 2, 64), (128, 2, 64), (128, 1, 128), (130, 2, 80), (300, 2, 160)],
)
def test_spare_columns_are_those_of_one_part_in_full_cache_lines(dim: int, parts: int, width: int) -> None:
    assert count_spare_columns(dim, parts) == width
    assert -(-dim // width) <= parts  # as many parts as intended, or fewer


def test_columns_of_large_blocks_are_filtered_in_parts() -> None:
    rows = LARGE_BLOCK_BYTES // 512
    assert [count_column_parts(count, 128, 2) for count in (0, rows - 1, rows, 10**9)] == [1, 1, 2, 2]
    assert count_column_parts(10**9, 128, 1) == 1


def test_workspace_of_a_graph_that_has_become_large_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Embedder(dim=128, anchor_growth=0).fit([(i, (i + 1) % 9) for i in range(9)])
    rule, store = model.engine.rule, model.engine.store
    first = rule.prepare_workspace(store, GradualCorrection)
    assert first.spare_columns == 128
    assert rule.prepare_workspace(store, GradualCorrection) is first
    monkeypatch.setattr(correction_workspace, "LARGE_BLOCK_BYTES", 1)
    assert rule.prepare_workspace(store, GradualCorrection).spare_columns == 64


def test_select_columns_describes_adjacent_columns() -> None:
    block = np.arange(12, dtype=np.float32).reshape(3, 4)
    columns = select_columns(block, 1, 2)
    assert [get_row(columns, row).tolist() for row in range(3)] == block[:, 1:3].tolist()
    get_row(columns, 2)[:] = 0
    assert block[2].tolist() == [8, 0, 0, 11]


def append(workspace: Workspace, rows: list[int], new: tuple[int, ...] = ()) -> None:
    """Append moved rows to the queue; `new` are rows of new vertices."""
    arrival = np.isin(np.arange(len(workspace.marked.array)), new).astype(np.int64)
    workspace.record_moved(np.array(rows), arrival, 1, with_known=True)


def test_workspace_queue_returns_each_row_once_in_order() -> None:
    workspace = make_workspace(make_store())
    append(workspace, [3, 1])
    append(workspace, [1, 5, 3])
    assert workspace.queued.tolist() == [3, 1, 5]
    assert workspace.take(2).tolist() == [3, 1]
    append(workspace, [1, 5, 8])  # the first is no longer in the queue
    assert workspace.queued.tolist() == [5, 1, 8]
    assert np.flatnonzero(workspace.marked.array).tolist() == [1, 5, 8]
    workspace.clear_queue()
    assert not workspace.queued.size
    assert not workspace.marked.array.any()
    append(workspace, [5])
    assert workspace.take(10).tolist() == [5]


def test_workspace_clear_rows_zeroes_all_blocks() -> None:
    workspace = make_workspace(make_store(storage="float16"))
    for block in (workspace.current, workspace.spare, workspace.rows, workspace.marked):
        block.array[:] = 1
    workspace.clear_rows(np.array([2, 4]))
    for block in (workspace.current, workspace.spare, workspace.rows, workspace.marked):
        assert not block.array[[2, 4]].any()
        assert block.array[[0, 1, 3, 5]].all()


@pytest.mark.parametrize(("storage", "blocks"), [("float32", 2), ("float16", 3)])
def test_workspace_allocate_requests_each_block_once(
    storage: str, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested = list[int]()
    monkeypatch.setattr(GrowableArray, "allocate", lambda array: requested.append(id(array)))
    make_workspace(make_store(storage=storage)).allocate()
    assert len(requested) == len(set(requested)) == blocks


@pytest.mark.parametrize("with_known", [False, True])
def test_workspace_record_moved_zeroes_rows_of_new_vertices(with_known: bool) -> None:
    workspace = make_workspace(make_store(storage="float16"))
    blocks = (workspace.current, workspace.spare, workspace.rows)
    for block in blocks:
        block.array[:] = 1
    arrival = np.arange(len(workspace.marked.array))
    workspace.record_moved(np.array([2, 8, 4]), arrival, 8, with_known=with_known)
    assert workspace.queued.tolist() == ([2, 8, 4] if with_known else [8])
    for block in blocks:
        assert not block.array[8].any()
        assert block.array[[2, 4]].all()


def test_workspace_restore_queue_keeps_rows_that_are_in_it_twice() -> None:
    """A queued row is unmarked when its vertex is removed, and queued again when a new vertex uses it."""
    workspace, other = (make_workspace(make_store()) for _ in range(2))
    append(workspace, [3, 1])
    workspace.clear_rows(np.array([3]))
    append(workspace, [3])
    assert workspace.queued.tolist() == [3, 1, 3]
    other.restore_queue(workspace.queued.copy(), workspace.marked.array.copy())
    assert other.queued.tolist() == [3, 1, 3]
    np.testing.assert_array_equal(other.marked.array, workspace.marked.array)
