"""Edge lists read as columns; `test_batch.py` covers the batches that are made of them."""

from __future__ import annotations

import re
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from ripplevec.batch import Batch
from ripplevec.edge_lists import COLUMN_NAMES, EdgeColumns, TableColumns, match_column_names, read_edge_list
from ripplevec.errors import InvalidValueError


def read(edges: Any, *, adding: bool = True, directed: bool = False, **columns: Any) -> EdgeColumns:
    return read_edge_list(edges, adding=adding, directed=directed, columns=TableColumns(**columns))


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


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table])
def test_read_edge_list_of_table_accepts_the_names_of_files(frame: Any) -> None:
    columns = read(frame({"Source": [1], "target": [2], "timestamp": [3.0]}))
    assert [None if column is None else list(map(float, column)) for column in columns[:5]] == [
        [1],
        [2],
        None,
        None,
        [3],
    ]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table])
def test_read_edge_list_of_table_reads_named_columns(frame: Any) -> None:
    table = frame({"buyer": ["a"], "item": ["b"], "amount": [2.0], "weight": [9.0]})
    columns = read(table, src="buyer", dst="item", weight="amount")
    assert [str(column[0]) for column in columns[:3]] == ["a", "b", "2.0"]
    assert read(table, src="buyer", dst="item", weight="none").weight is None
    message = r"expected columns buyer, item, when, got .*'amount'.*Name them: src=…, dst=…, weight=…, time=…"
    with pytest.raises(InvalidValueError, match=message):
        read(table, src="buyer", dst="item", time="when")


def test_read_edge_list_of_table_without_names_reads_columns_by_number() -> None:
    columns = read(pd.DataFrame([[7, 1, 2]]), src=1, dst=2)
    assert (columns.src.tolist(), columns.dst.tolist()) == ([1], [2])


def test_read_edge_list_of_rows_with_names_of_columns_raises() -> None:
    with pytest.raises(InvalidValueError, match="names of columns with a table only, got 'list'"):
        read([("a", "b")], src="x")


@pytest.mark.parametrize(
    "matrix",
    [
        [[0, 1], [1, 0]],
        [[0, 2], [2, 0]],
        [[1, 1], [1, 1]],
        [[0, 1, 1], [1, 0, 1], [1, 1, 0]],
        [[0, 2, 1], [3, 0, 0], [0, 4, 0]],
        np.ones((3, 3)),
    ],
)
@pytest.mark.parametrize("dtype", [None, object])
def test_read_edge_list_of_array_that_may_be_a_matrix_raises(matrix: Any, dtype: Any) -> None:
    columns = ", ".join(f"array[:, {column}]" for column in range(len(matrix)))
    expected = f"Pass an adjacency matrix as scipy.sparse.csr_array(matrix); edges as Batch.of({columns})"
    with pytest.raises(InvalidValueError, match="that may be an adjacency matrix.*" + re.escape(expected)):
        read(np.array(matrix, dtype))


@pytest.mark.parametrize(
    "edges", [[[0, 1], [1, 0]], [[0, 2], [3, 0]], [(1, 2), (2, 1)], [[0, 1, 1], [1, 2, 1], [2, 0, 1]]]
)
def test_read_edge_list_of_square_list_reads_edges(edges: Any) -> None:
    assert read(edges).src == [row[0] for row in edges]
    array = np.array(edges)
    batch = Batch.of(*(array[:, column] for column in range(array.shape[1])))
    assert batch.src.tolist() == read(edges).src


def test_read_edge_list_of_large_square_array_says_how_to_pass_a_matrix() -> None:
    with pytest.raises(InvalidValueError, match=r"shape \(4, 4\)'\. Pass an adjacency matrix as scipy"):
        read(np.eye(4))


@pytest.mark.parametrize(
    "edges",
    [
        [[0, 1], [1, 2]],
        [[5, 7], [7, 9]],
        [[5, 7], [8, 9]],
        [[0, 5], [7, 0]],
        [[5, 7], [7, 5]],
        [[0, 1, 2.0], [1, 2, 1.0], [2, 3, 1.0]],
    ],
)
def test_read_edge_list_of_square_array_that_is_no_matrix_reads_edges(edges: Any) -> None:
    assert read(np.array(edges)).src.tolist() == [row[0] for row in edges]


def test_read_edge_list_of_square_array_of_text_reads_edges() -> None:
    assert read(np.array([["a", "b"], ["b", "a"]], object)).src.tolist() == ["a", "b"]
    assert read(np.array([["a", "b"], ["b", "a"]])).src.tolist() == ["a", "b"]


def test_match_column_names_finds_default_and_requested_names() -> None:
    assert match_column_names(["To", "FROM", "op"], {}) == {"src": 1, "dst": 0, "op": 2}
    assert match_column_names(["src", "dst", "weight", "w"], {"weight": "w"}) == {"src": 0, "dst": 1, "weight": 3}
    assert match_column_names(["src", "weight"], {"weight": "none", "dst": "x"}) == {"src": 0}
    assert set(COLUMN_NAMES) == {"src", "dst", "weight", "time", "op"}


@pytest.mark.parametrize("edges", ["file.csv", [("a",)], np.zeros(3), pd.DataFrame({"src": [1]}), 3])
def test_read_edge_list_of_another_form_raises(edges: Any) -> None:
    with pytest.raises(InvalidValueError, match="edges: expected"):
        read(edges)


DAYS = ["2024-01-01", "2024-01-02"]


@pytest.mark.parametrize(
    "time",
    [
        DAYS,
        [pd.Timestamp(day) for day in DAYS],
        pd.Series(pd.to_datetime(DAYS)),
        pd.DatetimeIndex(DAYS),
        np.array(DAYS, "M8[ns]"),
        pa.array(pd.to_datetime(DAYS)),
        pl.Series(DAYS).str.to_datetime(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_times_are_accepted_with_lists_arrays_and_tables(time: Any) -> None:
    table = pd.DataFrame({"src": [1, 2], "dst": [2, 3], "time": [7.0, 8.0]})
    for edges in ([(1, 2), (2, 3)], np.array([[1, 2], [2, 3]]), table, pl.from_pandas(table)):
        assert Batch.from_any(edges, time=time).time.tolist() == [1704067200, 1704153600]
    assert Batch.from_any(table).time.tolist() == [7, 8]


def test_times_of_another_length_or_with_a_graph_raise() -> None:
    with pytest.raises(InvalidValueError, match="one per row"):
        Batch.from_any([(1, 2)], time=DAYS)
    with pytest.raises(InvalidValueError, match="one time per row"):
        Batch.from_any(nx.path_graph(3), time=DAYS)
    with pytest.raises(InvalidValueError, match="names of columns"):
        Batch.from_any([(1, 2)], time="when")
