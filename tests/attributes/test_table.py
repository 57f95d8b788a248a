"""Tests of the table of attribute parts: its growth with the graph, its counts, and its saved state."""

from __future__ import annotations

import numpy as np

from ripplevec import Batch
from ripplevec.attributes._kernels import OWN
from ripplevec.attributes.table import AttributeTable
from ripplevec.graph.graph import Graph


def new_table(vertices: int) -> AttributeTable:
    graph = Graph()
    list(graph.apply(Batch.of(np.arange(vertices - 1), np.arange(1, vertices))))
    return AttributeTable(graph, 3)


def test_table_grows_with_the_graph_and_keeps_its_parts() -> None:
    table = new_table(5)
    table.parts[2], table.status[2] = [1, 2, 3], OWN
    list(table.graph.apply(Batch.of(np.arange(200), np.arange(1, 201))))
    table.grow()
    assert len(table.status) >= 201
    assert table.parts[2].tolist() == [1, 2, 3]
    assert not table.status[3:].any()


def test_unplaced_vertices_are_those_without_any_part() -> None:
    table, placed = new_table(5), np.array([1, 0, 0, 0, 0], np.uint8)
    assert table.count_unplaced(placed) == 4
    table.status[3] = OWN
    assert table.count_unplaced(placed) == 3


def test_restored_table_has_the_same_state() -> None:
    table = new_table(5)
    table.parts[1], table.status[1] = [1, 2, 3], OWN
    table.kept.set(1, np.array([4, 7], np.int32), np.array([0.5, 2.0], np.float32))
    restored = new_table(5)
    restored.restore(table.state())
    for name, array in table.state().items():
        np.testing.assert_array_equal(restored.state()[name], array, err_msg=name)
    assert restored.column("attribute_status")[1] == OWN
    assert restored.column("attribute_parts")[1].tolist() == [1, 2, 3]
