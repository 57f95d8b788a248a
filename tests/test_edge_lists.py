"""Edge lists read as columns; `test_batch.py` covers the batches that are made of them."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from ripplevec.edge_lists import EdgeColumns, read_edge_list
from ripplevec.errors import InvalidValueError


def read(edges: Any, *, adding: bool = True, directed: bool = False) -> EdgeColumns:
    return read_edge_list(edges, adding=adding, directed=directed)


@pytest.mark.parametrize("edges", [[("a", "b", 2.0), ("b", "c")], np.array([[1, 2, 3.0]])])
def test_read_edge_list_of_removed_rows_has_no_weights(edges: Any) -> None:
    assert read(edges).weight is not None
    assert read(edges, adding=False).weight is None


def test_read_edge_list_of_graph_has_vertices_only_if_added() -> None:
    graph = nx.path_graph(3)
    graph.add_node("alone")
    assert read(graph).vertices == [0, 1, 2, "alone"]
    assert read(graph, adding=False).vertices is None
    assert (read(graph).src, read(graph).dst) == ([0, 1], [1, 2])


def test_read_edge_list_of_symmetric_matrix_has_each_undirected_edge_once() -> None:
    matrix = sp.csr_array(np.array([[0, 2], [2, 0]]))
    assert (read(matrix).src.tolist(), read(matrix).dst.tolist()) == ([0], [1])
    assert read(matrix, directed=True).src.tolist() == [0, 1]


def test_read_edge_list_of_table_reads_known_columns() -> None:
    columns = read(pd.DataFrame({"color": ["red"], "dst": [2], "src": [1], "op": [1]}))
    assert [None if column is None else column.tolist() for column in columns] == [[1], [2], None, [1], None, None]


@pytest.mark.parametrize("edges", ["file.csv", [("a",)], np.zeros(3), pd.DataFrame({"src": [1]}), 3])
def test_read_edge_list_of_another_form_raises(edges: Any) -> None:
    with pytest.raises(InvalidValueError, match="edges: expected"):
        read(edges)
