"""Tests of the graph update on shards: the parts of a batch, arrival numbers, and the schedule of new vertices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.batch import Batch, Op, id_column, ids_to_list
from ripplevec.cluster.ingestion import BatchSlice, VertexRemoval, split_batch_for_shards
from ripplevec.cluster.routing import assign_shards

OPERATIONS = st.lists(st.sampled_from([Op.ADD, Op.ADD, Op.ADD, Op.REMOVE, Op.VERTEX, Op.REMOVE_VERTEX]), max_size=20)


@settings(max_examples=100)
@given(op=OPERATIONS, shards=st.integers(1, 5))
def test_parts_of_all_shards_together_are_the_batch(op: list[Op], shards: int) -> None:
    ids = np.arange(len(op))
    batch = Batch.of(
        ids, np.where(np.isin(op, [Op.VERTEX, Op.REMOVE_VERTEX]), ids, ids + 100), op=np.array(op, np.int8)
    )
    parts_by_shard = split_batch_for_shards(batch, shards)
    assert len({len(parts) for parts in parts_by_shard}) == 1
    restored: list[int] = []
    for parts in zip(*parts_by_shard, strict=True):
        if isinstance(parts[0], VertexRemoval):
            assert len({int(ids_to_list(part.id)[0]) for part in parts}) == 1  # type: ignore[union-attr]
            restored += ids_to_list(parts[0].id)  # type: ignore[arg-type]
        else:
            for part in parts:
                assert isinstance(part, BatchSlice)
                assert part.first == (ids_to_list(part.batch.src)[0] if len(part.batch) else part.first)
                restored += ids_to_list(part.batch.src)  # type: ignore[arg-type]
    assert restored == ids.tolist()


@pytest.mark.parametrize("shards", [1, 2, 3, 7])
@pytest.mark.parametrize("kind", [str, int])
def test_new_vertices_are_numbered_by_first_occurrence(new_cluster: Any, shards: int, kind: type) -> None:
    rng = np.random.default_rng(shards)
    cluster, order = new_cluster(shards), list[Any]()
    for _ in range(3):
        pairs = [(kind(u), kind(v)) for u, v in rng.integers(0, 60, (25, 2)).tolist()]
        cluster.apply(Batch.from_any(pairs))
        order += [vertex for pair in pairs for vertex in pair]
        expected = list(dict.fromkeys(order))
        rows = cluster.rows_of(id_column(expected))
        assert cluster.arrival_numbers(rows).tolist() == list(range(len(expected)))
        assert (rows % shards).tolist() == assign_shards(id_column(expected), shards).tolist()


def test_vertex_removed_and_added_again_in_one_batch_gets_a_new_number(new_cluster: Any) -> None:
    cluster = new_cluster(3)
    cluster.apply(Batch.from_any([("a", "b"), ("b", "c")]))
    op = [Op.ADD, Op.REMOVE_VERTEX, Op.ADD, Op.ADD]
    cluster.apply(Batch.of(["d", "b", "b", "b"], ["a", "b", "e", "a"], op=op))
    numbers = cluster.arrival_numbers(cluster.rows_of(id_column(["a", "c", "d", "b", "e"])))
    assert numbers.tolist() == [0, 2, 3, 4, 5]
    assert (len(cluster), cluster.edges) == (5, 3)
    cluster.check()


def test_batch_smaller_than_the_number_of_shards_is_applied(new_cluster: Any) -> None:
    cluster = new_cluster(5)
    cluster.apply(Batch.from_any([("a", "b")]))
    cluster.apply(Batch.from_any([]))
    assert (len(cluster), cluster.edges) == (2, 1)
