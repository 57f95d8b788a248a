"""Attributes in every form that users give them, and the errors for values that cannot be used."""

from __future__ import annotations

from datetime import date
from enum import Enum
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import coo_array, csr_array

from ripplevec.attributes.input import (
    attach_attributes,
    attributes_to_json,
    drop_removed_attributes,
    merge_attributes,
    read_attributes,
    read_one,
    read_values,
    split_attributes,
)
from ripplevec.batch import AttributeRows, Batch, Op, ids_to_list
from ripplevec.errors import InvalidValueError

TAGS = {"a": {"x": 1.0, "y": 2.0}, "b": {"y": 3.0}, "c": {}}


def to_dict(rows: AttributeRows) -> dict[Any, dict[Any, float]]:
    """Return sparse rows as a mapping."""
    assert rows.names is not None
    names = ids_to_list(rows.names)
    found = {}
    for position, vertex in enumerate(ids_to_list(rows.ids)):
        columns, values = rows.entries(position, rows.columns)
        found[vertex] = {names[column]: value for column, value in zip(columns.tolist(), values.tolist(), strict=True)}
    return found


def test_mapping_of_mappings_gives_sparse_rows() -> None:
    rows = read_attributes(TAGS)
    assert rows.kind == "sparse"
    assert to_dict(rows) == TAGS


def test_names_other_than_text_and_numbers_are_represented() -> None:
    assert to_dict(read_attributes({1: {("color", "red"): 1, 7: 2, None: 3}})) == {
        1: {"('color', 'red')": 1, 7: 2, "None": 3}
    }


def test_sparse_matrix_gives_columns_as_names_in_order_of_first_value_without_zeros() -> None:
    matrix = coo_array(([2.0, 1.0, 0.0, 1.0], ([0, 1, 1, 0], [5, 0, 3, 5])), shape=(2, 9))
    rows = read_attributes((["u", "v"], matrix))
    assert to_dict(rows) == {"u": {5: 3.0}, "v": {0: 1.0}}
    assert ids_to_list(rows.names) == [5, 0]


def test_forms_of_the_same_dense_values_are_equal() -> None:
    values = np.arange(6.0).reshape(3, 2)
    ids = ["a", "b", "c"]
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 2)
    forms = [
        (ids, values),
        dict(zip(ids, values, strict=True)),
        dict(zip(ids, values.tolist(), strict=True)),
        pd.DataFrame({"id": ids, "x": values[:, 0], "y": values[:, 1]}),
        pl.DataFrame({"Vertex": ids, "x": values[:, 0], "y": values[:, 1]}),
        pl.DataFrame({"id": ids, "x": values[:, 0], "y": values[:, 1]}).lazy(),
        pa.table({"node": ids, "vector": vectors}),
        pd.DataFrame({"id": ids, "vector": list(values)}),
    ]
    for form in forms:
        rows = read_attributes(form)
        assert rows.kind == "dense"
        assert ids_to_list(rows.ids) == ids
        np.testing.assert_array_equal(rows.values, values)


def test_tables_of_categories_and_lists_give_names_of_column_and_value() -> None:
    frame = {"id": [1, 2, 3], "color": ["red", None, "blue"], "tags": [["p", "q", "p"], [], ["q"]]}
    expected = {1: {"color=red": 1, "tags=p": 2, "tags=q": 1}, 2: {}, 3: {"color=blue": 1, "tags=q": 1}}
    categorical = pd.DataFrame(frame).astype({"color": "category"})
    for table in (pa.table(frame), pl.DataFrame(frame), pd.DataFrame(frame), categorical):
        assert to_dict(read_attributes(table)) == expected


def test_one_vertex_accepts_a_mapping_a_vector_and_a_sparse_row() -> None:
    assert to_dict(read_one("a", {"x": 1})) == {"a": {"x": 1}}
    np.testing.assert_array_equal(read_one("a", [1, 2, 3]).values, [[1, 2, 3]])
    assert to_dict(read_one("a", csr_array([[0, 4.0]]))) == {"a": {1: 4.0}}


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"a": {"x": float("nan")}}, "nan in row 0, column 'x'"),
        ({"a": {"x": 1}, "b": {"y": -2.0}}, "-2.0 in row 1, column 'y'.*dense"),
        ({"a": {"x": "text"}}, "'text' in row 0, column 'x'"),
        ({"a": {"x": 1}, "b": {"y": [1]}}, r"\[1\] in row 1, column 'y'"),
        ({"a": {"x": [1]}, "b": {"y": [1]}}, r"\[1\] in row 0, column 'x'"),
        ({"a": {"x": "5"}}, "'5' in row 0, column 'x'"),
        ({"a": {"x": 1j}}, "1j in row 0, column 'x'"),
        ((["a"], np.array([["5", "6"]])), "rows of numbers"),
        ((["a"], np.array([[1, "6"]], object)), "rows of numbers"),
        ((["a"], np.array([[1j]])), "rows of numbers"),
        ((["a"], csr_array([[1j]])), "a matrix of complex128"),
        ({"a": ["red", "new"]}, "rows of numbers.*Pass names with their values"),
        ({"a": {"red"}}, "rows of numbers.*Pass names with their values"),
        ({"a": "red"}, "rows of numbers.*Pass names with their values"),
        ({}, "those of at least one vertex"),
        ({"a": {"x": 1}, "b": [1.0, 2.0]}, r"\[1.0, 2.0\] in row 1"),
        ((["a", "b"], np.array([[1.0, 2.0], [3.0, np.inf]])), "inf in row 1, column 1"),
        ((["a", "b"], [[1.0, 2.0], [3.0]]), "Row 1 has 1 numbers, row 0 has 2"),
        ((["a", "b"], np.ones((3, 2))), "expected 2 rows, one per id, got '3 rows'"),
        ((["a", "b", "a"], np.ones((3, 2))), "'a' in rows 0 and 2"),
        (pa.table({"id": ["a", "a"], "x": [1, 2]}), "'a' in rows 0 and 1"),
        (pa.table({"id": ["a"], "x": pa.array([None], pa.float64())}), "none in row 0, column x"),
        (pd.DataFrame({"id": ["a", "b"], "x": [1.0, np.nan]}), "row 1, column x"),
        (pd.DataFrame({"id": ["a"], "x": [1j]}), "column x with type complex128"),
        (pd.DataFrame({"id": ["a", "b"], "x": [1, "red"]}), "column x with type object"),
        (pa.table({"id": ["a"], "when": pa.array([0], pa.timestamp("s"))}), r"timestamp\[s\] in column when"),
        (pa.table({"id": ["a", "b"], "v": [[1.0], [1.0, 2.0]]}), "2 in row 1, column v"),
        (pa.table({"id": ["a"], "x": [1], "c": ["red"]}), "all numeric, or all categorical"),
        (pa.table({"key": ["a"], "x": [1]}), "one id column"),
        ({"a": {object(): 1}}, "names that are text"),
        ("text", "expected {id"),
    ],
)
def test_bad_attributes_raise_an_error_that_names_row_and_column(attributes: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        read_attributes(attributes)


def test_values_for_one_vertex_that_are_a_matrix_raise() -> None:
    with pytest.raises(InvalidValueError, match="a vector of numbers"):
        read_one("a", np.ones((2, 2)))
    with pytest.raises(InvalidValueError, match="rows of numbers"):
        read_values(["a"], "text")


def test_attached_attributes_are_split_off_again() -> None:
    edges = Batch.of(["a", "b"], ["b", "c"], [1.0, 2.0])
    rows = read_attributes({"a": {"x": 1}, "z": {}})
    batch, found = split_attributes(attach_attributes(edges, rows))
    assert found is rows
    assert (batch.src.to_pylist(), batch.op, len(batch)) == (["a", "b"], None, 2)  # type: ignore[union-attr]
    assert split_attributes(edges) == (edges, None)


def test_merged_attributes_have_the_last_row_of_each_vertex() -> None:
    first, second = read_attributes({"a": {"x": 1}, "b": {"x": 2, 7: 1}}), read_attributes({"a": {"y": 3}})
    merged = attributes_to_json(merge_attributes([first, second]))
    assert merged == [{"id": "a", "attributes": {"y": 3.0}}, {"id": "b", "attributes": {"x": 2.0, "7": 1.0}}]
    dense = merge_attributes([read_attributes({1: [1, 2]}), read_attributes({2: [3, 4]})])
    np.testing.assert_array_equal(dense.values, [[1, 2], [3, 4]])
    with pytest.raises(InvalidValueError, match="sparse rows, as the rows before"):
        merge_attributes([first, dense])


def test_removed_vertices_lose_attributes_that_were_set_before() -> None:
    rows = read_attributes({"a": {"x": 1}, "b": {"x": 1}})
    batch = Batch.of(["a", "a", "c"], ["b", "a", "b"], op=[Op.ADD, Op.REMOVE_VERTEX, Op.ADD])
    assert [ids_to_list(part.ids) for part in drop_removed_attributes(batch, [(1, rows)])] == [["b"]]
    assert drop_removed_attributes(batch, [(2, rows)]) == [rows]


class Color(Enum):
    RED = 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("graph", "graph"),
        (7, 7),
        (("x", 3), "('x', 3)"),
        (frozenset({"b", "a"}), "frozenset(['a', 'b'])"),
        (date(2026, 1, 2), "datetime.date(2026, 1, 2)"),
        (UUID(int=3), "00000000-0000-0000-0000-000000000003"),
        (Color.RED, "<Color.RED: 1>"),
    ],
)
def test_attribute_name_of_a_plain_type_is_the_same_in_every_process(name: Any, expected: Any) -> None:
    rows = read_values(["v"], [{name: 1.0}])
    assert ids_to_list(rows.names) == [expected]
