from __future__ import annotations

import numpy as np

from ripplevec.batch import Batch, Op
from ripplevec.graph.graph import Graph
from ripplevec.rules.vector_store import Field


def test_rows_come_with_the_graph_and_go_with_their_vertex() -> None:
    graph = Graph()
    field = Field(graph, 3, np.float32)
    assert field.vectors.shape[1] == 3
    for step in graph.apply(Batch.from_any([(i, i + 1) for i in range(100)])):
        assert field.follow(step) is step
    rows = graph.rows
    assert min(len(field.vectors), len(field.placed), len(field.seen)) >= rows == 101
    assert not field.placed.any()
    field.vectors[:rows], field.placed[:rows] = 1, 1
    for step in graph.apply(Batch.of([5, 200], [5, 201], op=[Op.REMOVE_VERTEX, Op.ADD])):
        field.follow(step)
    vacant = graph.ids.find_one(200)  # the freed row is used again, with nothing of its former vertex
    assert vacant < rows
    assert not field.vectors[vacant].any()
    assert not field.placed[vacant]
    assert field.vectors[:rows].sum() == 3 * (rows - 1)
