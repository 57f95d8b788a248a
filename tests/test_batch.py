"""Batches: accepted forms of edges, rejected values, and no aliasing of the caller's arrays."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import deepcopy
from enum import Enum, IntEnum
from typing import Any
from uuid import UUID

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.batch import Batch, Op, concat_ids, id_column, ids_to_list, take_ids
from ripplevec.errors import InvalidValueError

Rows = list[tuple[Any, Any, float]]


def rows_of(batch: Batch) -> Rows:
    """Return the edges that a batch adds or removes, with weights."""
    weight = np.ones(len(batch)) if batch.weight is None else batch.weight
    op = np.zeros(len(batch), np.int8) if batch.op is None else batch.op
    rows = zip(ids_to_list(batch.src), ids_to_list(batch.dst), weight.tolist(), op.tolist(), strict=True)
    return [(src, dst, weight) for src, dst, weight, op in rows if op <= Op.REMOVE]


def vertex_rows(batch: Batch) -> list[Any]:
    """Return the vertices of the VERTEX rows of a batch."""
    assert batch.op is not None
    return ids_to_list(take_ids(batch.src, np.flatnonzero(batch.op == Op.VERTEX)))


PAIRS: Rows = [("a", "b", 1.0), ("b", "c", 1.0)]
TRIPLES: Rows = [(1, 2, 0.5), (2, 3, 4.0)]
COLUMNS = {"src": [1, 2], "dst": [2, 3], "weight": [0.5, 4.0]}
TEXTS = {"src": ["a", "b"], "dst": ["b", "c"]}


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ([("a", "b"), ("b", "c")], PAIRS),
        ((pair for pair in [["a", "b"], ["b", "c"]]), PAIRS),
        ([(1, 2, 0.5), (2, 3, 4)], TRIPLES),
        ([(1, 2), (2, 3, 4)], [(1, 2, 1.0), (2, 3, 4.0)]),
        ([np.array([1, 2]), np.array([2, 3])], [(1, 2, 1.0), (2, 3, 1.0)]),
        (np.array([[1, 2], [2, 3]]), [(1, 2, 1.0), (2, 3, 1.0)]),
        (np.array([[1, 2], [2, 3]], np.uint8), [(1, 2, 1.0), (2, 3, 1.0)]),
        (np.array([[1.0, 2.0], [2.0, 3.0]]), [(1, 2, 1.0), (2, 3, 1.0)]),
        (np.array([[1, 2, 0.5], [2, 3, 4]]), TRIPLES),
        (np.array([[1, 2, 7]]), [(1, 2, 7.0)]),
        (np.array([["a", "b"], ["b", "c"]]), PAIRS),
        (np.array([["a", 1, 2.5]], object), [("a", 1, 2.5)]),
        (pd.DataFrame(COLUMNS), TRIPLES),
        (pd.DataFrame(COLUMNS, index=[7, 8]), TRIPLES),
        (pd.DataFrame(TEXTS), PAIRS),
        (pd.DataFrame(TEXTS).astype("category"), PAIRS),
        (pd.DataFrame({"src": [1, "1"], "dst": ["1", 2]}), [(1, "1", 1.0), ("1", 2, 1.0)]),
        (pl.DataFrame(COLUMNS), TRIPLES),
        (pl.DataFrame(TEXTS), PAIRS),
        (pa.table(COLUMNS), TRIPLES),
        (pa.table(TEXTS), PAIRS),
        (pa.RecordBatch.from_pydict(COLUMNS), TRIPLES),
        (pa.table({name: pa.array(TEXTS[name]).dictionary_encode() for name in TEXTS}), PAIRS),
        (Batch.of(["a", "b"], ["b", "c"]), PAIRS),
        ([], []),
        (np.empty((0, 2)), []),
        (pd.DataFrame({"src": [], "dst": []}), []),
        (pa.table({"src": [], "dst": []}), []),
    ],
)
def test_edge_list_in_any_form_gives_the_same_rows(edges: Any, expected: Rows) -> None:
    assert rows_of(Batch.from_any(edges)) == expected


@pytest.mark.parametrize("edges", [[(1, 2)], np.array([[1, 2]]), pd.DataFrame({"src": [1], "dst": [2]})])
def test_edge_list_with_remove_operation_gives_removals(edges: Any) -> None:
    batch = Batch.from_any(edges, op=Op.REMOVE)
    assert batch.op is not None
    assert batch.op.tolist() == [Op.REMOVE]
    assert rows_of(batch) == [(1, 2, 1.0)]


def test_table_with_op_and_time_columns_sets_operations_and_times() -> None:
    batch = Batch.from_any(
        pa.table({"src": [1, 2], "dst": [2, 1], "op": [0, 1], "time": [0.5, 1.5], "note": ["x", "y"]})
    )
    assert batch.op is not None
    assert batch.time is not None
    assert batch.op.tolist() == [Op.ADD, Op.REMOVE]
    assert batch.time.tolist() == [0.5, 1.5]


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix, sp.coo_array, sp.lil_matrix])
def test_symmetric_matrix_counts_each_edge_once(form: Any) -> None:
    dense = np.array([[0, 1, 0, 0], [1, 0, 2.5, 0], [0, 2.5, 0, 0], [0, 0, 0, 0]])
    batch = Batch.from_any(form(dense))
    assert rows_of(batch) == [(0, 1, 1.0), (1, 2, 2.5)]
    assert vertex_rows(batch) == [0, 1, 2, 3]


def test_matrix_that_is_asymmetric_or_directed_counts_every_entry() -> None:
    one_way = sp.csr_array(np.array([[0, 1], [0, 0]]))
    both_ways = sp.csr_array(np.array([[0, 1], [1, 0]]))
    uneven = sp.csr_array(np.array([[0, 1], [3, 0]]))
    assert rows_of(Batch.from_any(one_way)) == [(0, 1, 1.0)]
    assert rows_of(Batch.from_any(uneven)) == [(0, 1, 1.0), (1, 0, 3.0)]
    assert rows_of(Batch.from_any(both_ways, directed=True)) == [(0, 1, 1.0), (1, 0, 1.0)]
    assert rows_of(Batch.from_any(both_ways, op=Op.REMOVE)) == [(0, 1, 1.0)]


def test_matrix_with_stored_zeros_and_duplicates_ignores_and_sums_them() -> None:
    matrix = sp.coo_array(([0.0, 2.0, 1.0], ([0, 1, 1], [1, 0, 0])), shape=(2, 2))
    assert rows_of(Batch.from_any(matrix)) == [(1, 0, 3.0)]
    assert matrix.nnz == 3


def test_networkx_graph_keeps_isolated_nodes_order_and_weights() -> None:
    graph = nx.Graph()
    graph.add_nodes_from(["z", "a"])
    graph.add_edge("b", "a", weight=2.0)
    graph.add_edge("a", "c")
    batch = Batch.from_any(graph)
    assert vertex_rows(batch) == ["z", "a", "b", "c"]
    assert sorted((*sorted((u, v)), w) for u, v, w in rows_of(batch)) == [("a", "b", 2.0), ("a", "c", 1.0)]
    assert rows_of(Batch.from_any(nx.DiGraph([(1, 2), (2, 1)]))) == [(1, 2, 1.0), (2, 1, 1.0)]
    mixed = nx.Graph([(1, "1")])
    mixed.add_node(2**70)
    assert vertex_rows(Batch.from_any(mixed)) == [1, "1", 2**70]
    assert rows_of(Batch.from_any(nx.MultiGraph([(1, 2), (1, 2)]))) == [(1, 2, 1.0), (1, 2, 1.0)]
    assert vertex_rows(Batch.from_any(nx.empty_graph(3))) == [0, 1, 2]


@pytest.mark.parametrize(
    "values",
    [
        [1, 2**63 - 1, -(2**63)],
        [1, 2**63, -(2**90)],
        ["a", "ä", "", "日本", "\U0001f600", "a\0b"],
        [1, "1", 2**70],
        [],
    ],
)
def test_id_column_of_any_form_returns_the_same_ids(values: list[Any]) -> None:
    assert ids_to_list(id_column(values)) == values
    assert ids_to_list(id_column(np.array(values, object))) == values
    assert ids_to_list(id_column(tuple(values))) == values


def test_id_column_of_one_type_is_packed() -> None:
    assert isinstance(id_column([1, 2]), np.ndarray)
    assert isinstance(id_column([np.int32(1), np.int64(2)]), np.ndarray)
    assert isinstance(id_column(["a", np.str_("b")]), pa.LargeStringArray)
    assert isinstance(id_column([1, "a"]), list)
    assert ids_to_list(id_column(np.array([1, 2**64 - 1], np.uint64))) == [1, 2**64 - 1]


@pytest.mark.parametrize("form", [list, pd.Series, lambda ids: np.array(ids, object), pa.array])
def test_id_that_is_a_uuid_counts_as_its_text(form: Any) -> None:
    ids = [UUID(int=7), UUID(int=8)]
    assert ids_to_list(id_column(form(ids))) == ["00000000-0000-0000-0000-000000000007", str(ids[1])]


def test_id_of_a_subclass_counts_as_its_value() -> None:
    class Color(str, Enum):  # noqa: UP042 - a StrEnum would show its text
        RED = "red"

    class Level(IntEnum):
        LOW = 1

    assert ids_to_list(id_column([Color.RED, Level.LOW])) == ["red", 1]


@given(st.lists(st.one_of(st.integers(), st.text(st.characters(exclude_categories=["Cs"])))))
def test_id_column_of_any_ints_and_strings_supports_concat_and_take(values: list[Any]) -> None:
    column = id_column(values)
    assert ids_to_list(column) == values
    assert [type(value) for value in ids_to_list(column)] == [type(value) for value in values]
    assert ids_to_list(concat_ids(column, column)) == values * 2
    half = slice(len(values) // 3, len(values))
    assert ids_to_list(take_ids(column, half)) == values[half]
    order = np.arange(len(values))[::-1].copy()
    assert ids_to_list(take_ids(column, order)) == values[::-1]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([True], "True of type bool"),
        ([1, False], "False of type bool in row 1"),
        ([1.0], "1.0 of type float"),
        (["a", None], "None of type NoneType in row 1"),
        ([b"a"], "b'a' of type bytes"),
        ([("a",)], "of type tuple"),
        (["\ud800"], r"\\ud800"),
        (["a", "\ud800"], r"\\ud800 in row 1"),
        ([1, "\ud800"], r"\\ud800 in row 1"),
        (np.array([True]), "True of type bool"),
        (np.array([1.5]), "1.5"),
        (np.array([1.0, np.nan]), "nan in row 1"),
        (np.array([np.inf]), "inf"),
        (np.array([2.0**60]), "1.15"),
        (np.array([b"a"]), "b'a' of type bytes"),
        (np.array(["2020-01-01"], "datetime64[ns]"), "datetime64"),
        (np.array([[1, 2]]), r"shape \(1, 2\)"),
        (pa.array([1, None]), "no id in row 1"),
        (pa.array(["a", None]), "no id in row 1"),
        (pa.array([True]), "a column of type bool"),
        (pa.array([b"a"]), "a column of type binary"),
        (pa.array([0.5]), "0.5"),
        (pd.Series(["a", None]).to_numpy(), "of type"),
        ("abc", "'abc'"),
        (7, "7"),
        (None, "None"),
    ],
)
def test_id_that_is_invalid_is_named_in_the_error(bad: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=rf"^src: expected .*, got .*{message}"):
        Batch.of(bad, [1])
    with pytest.raises(InvalidValueError, match=rf"^dst: expected .*, got .*{message}"):
        Batch.of([1], bad)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([1.0, np.nan], "positive finite numbers, got 'nan in row 1'"),
        ([np.inf, 1.0], "positive finite numbers, got 'inf in row 0'"),
        ([1.0, 0.0], "positive finite numbers, got '0.0 in row 1'"),
        ([1.0, -2.0], "positive finite numbers, got '-2.0 in row 1'"),
        ([1.0, None], "positive finite numbers, got 'nan in row 1'"),
        ([1.0, 1e300], "positive finite numbers, got '1e[+]300 in row 1'"),
        ([1.0, 1e-300], "positive finite numbers, got '1e-300 in row 1'"),
        ([1.0, 10**400], "numbers, got"),
        ([1.0], r"2 values, one per row, got 'shape \(1,\)'"),
        ([[1.0, 2.0]], r"2 values, one per row, got 'shape \(1, 2\)'"),
        (3.0, r"2 values, one per row, got 'shape \(\)'"),
        ("heavy", "numbers, got 'heavy'"),
        (["a", "b"], "numbers, got"),
        ([[1.0], [1.0, 2.0]], "numbers, got"),
    ],
)
def test_weight_that_is_invalid_is_named_in_the_error(bad: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=f"^weight: expected {message}"):
        Batch.of([1, 2], [2, 3], bad)


@pytest.mark.parametrize(
    "edges",
    [
        [(1, 2, -1.0)],
        np.array([[1, 2, np.nan]]),
        sp.csr_array(np.array([[0, -1.0], [-1.0, 0]])),
        sp.csr_array(np.array([[0, np.nan], [np.nan, 0]])),
        pd.DataFrame({"src": [1], "dst": [2], "weight": [0.0]}),
        pa.table({"src": [1, 2], "dst": [2, 3], "weight": [1.0, None]}),
    ],
)
def test_weight_that_is_invalid_is_found_in_any_form(edges: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"^weight: expected positive finite numbers"):
        Batch.from_any(edges)


def test_weight_that_is_invalid_is_found_in_networkx() -> None:
    graph = nx.Graph()
    graph.add_edge(1, 2, weight=-1.0)
    with pytest.raises(InvalidValueError, match=r"^weight"):
        Batch.from_any(graph)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.zeros((2, 4)), r"an array of shape \(m, 2\) or \(m, 3\), got 'shape \(2, 4\)'"),
        (np.zeros(3), r"got 'shape \(3,\)'"),
        (np.array(7), r"got 'shape \(\)'"),
        ([(1, 2), (3,)], r"pairs .*, got '\(3,\) in row 1'"),
        ([(1, 2, 3.0, 4)], "in row 0"),
        (["ab", "cd"], "'ab' in row 0"),
        ([1, 2], "1 in row 0"),
        ({1: 2}, "{1: 2}"),
        ("ab", "'ab'; read a file with ripplevec.io.open_edges"),
        ([(1, 2, 1.0, 7.5)], r"in row 0'; pass times with Batch.of\(src, dst, weight, time="),
        (None, "None"),
        (7, "7"),
        (sp.csr_array((2, 3)), r"a square sparse matrix, got 'shape \(2, 3\)'"),
        (sp.coo_array(np.array([1, 2])), r"a square sparse matrix, got 'shape \(2,\)'"),
        (pd.DataFrame({"a": [1], "b": [2]}), "columns src, dst.*'a', 'b'"),
        (pl.DataFrame({"src": [1]}), "columns src, dst"),
        (pa.table({"src": [1]}), "columns src, dst"),
    ],
)
def test_edge_list_that_is_invalid_is_named_in_the_error(bad: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=f"^edges: expected .*{message}"):
        Batch.from_any(bad)


@pytest.mark.parametrize("time", [float("inf"), -1e300, np.finfo(float).max])
def test_time_out_of_range_is_named_in_the_error(time: float) -> None:
    with pytest.raises(InvalidValueError, match=r"time: expected finite numbers up to 1e\+100.* in row 1"):
        Batch.of([1, 2], [3, 4], time=[0.0, time])


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_dates_of_any_unit_become_seconds(frame: Any, unit: str) -> None:
    if frame is pl.DataFrame and unit == "s":
        pytest.skip("polars has no dates in seconds")
    moments = np.array(["1970-01-02", "NaT", "1969-12-31T23:59:58"], f"M8[{unit}]")
    for batch in (
        Batch.of([1, 2, 3], [2, 3, 1], time=moments),
        Batch.from_any(frame({"src": [1, 2, 3], "dst": [2, 3, 1], "time": moments})),
    ):
        assert batch.time is not None
        np.testing.assert_array_equal(batch.time, [86_400.0, np.nan, -2.0])


@pytest.mark.parametrize(
    "columns",
    [
        (np.array([1]), np.array([99]), np.array([np.nan])),
        (np.array([1, 2]), np.array([3])),
        ([1.5], [2]),
        (np.array([1]), np.array([2]), None, np.array([9], np.int8)),
        (np.array([1]), np.array([2]), np.ones(3)),
    ],
)
def test_batch_constructor_with_invalid_columns_raises(columns: Any) -> None:
    with pytest.raises(InvalidValueError):
        Batch(*columns)


def test_batch_from_any_of_a_batch_returns_it() -> None:
    batch = Batch(["a"], ["b"], weight=[2.0])
    assert Batch.from_any(batch) is batch


def test_batch_copies_and_pickles_keep_all_columns_read_only() -> None:
    batch = Batch([1, 2], [2, 3], [0.5, 4.0], [Op.ADD, Op.REMOVE], [7.0, np.nan])
    for other in (deepcopy(batch), pickle.loads(pickle.dumps(batch))):
        for name in ("src", "dst", "weight", "op", "time"):
            np.testing.assert_array_equal(getattr(other, name), getattr(batch, name))
            assert not getattr(other, name).flags.writeable


@pytest.mark.parametrize("op", [Op.ADD, Op.REMOVE, 9])
def test_vertices_batch_with_another_operation_raises(op: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"op: expected Op\.VERTEX or Op\.REMOVE_VERTEX"):
        Batch.vertices(["a"], op)


def test_columns_of_different_length_are_rejected() -> None:
    with pytest.raises(InvalidValueError, match="dst: expected 2 ids, as many as src, got '1 ids'"):
        Batch.of([1, 2], [3])
    with pytest.raises(InvalidValueError, match="time: expected 1 values"):
        Batch.of([1], [3], time=[1.0, 2.0])


@pytest.mark.parametrize("bad", [["noon"], [None, "noon"], ["2024-05-32"]])
def test_time_that_is_not_a_number_is_named_in_the_error(bad: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"time: expected numbers, or dates as datetime, .*, got"):
        Batch.of([1] * len(bad), [3] * len(bad), time=bad)


@pytest.mark.parametrize("bad", [[7], [-1], [0.5], [np.nan]])
def test_operation_that_is_unknown_is_named_in_the_error(bad: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"op: expected one of 0 \(ADD\).*3 \(REMOVE_VERTEX\), got"):
        Batch.of([1], [3], op=bad)


@pytest.mark.parametrize("names", [[1, 2, 3], ["a", "b", "c"], [1, "b", 3]])
def test_vertex_operation_ignores_the_target(names: list[Any]) -> None:
    batch = Batch.of(names, ["x", 7, "y"], op=[Op.VERTEX, Op.ADD, Op.REMOVE_VERTEX])
    assert ids_to_list(batch.src) == names
    assert ids_to_list(batch.dst) == [names[0], 7, names[2]]


def test_arrival_with_and_without_neighbors_gives_its_rows() -> None:
    assert rows_of(Batch.arrival("a", ["b", "c"])) == [("a", "b", 1.0), ("a", "c", 1.0)]
    assert rows_of(Batch.arrival(1, np.array([2, 3]), [0.5, 2])) == [(1, 2, 0.5), (1, 3, 2.0)]
    assert rows_of(Batch.arrival(1, ["1"])) == [(1, "1", 1.0)]
    assert vertex_rows(Batch.arrival("a", [])) == ["a"]
    assert vertex_rows(Batch.arrival("a")) == ["a"]
    assert rows_of(Batch.arrival("a", neighbours=["b", "c"])) == rows_of(Batch.arrival("a", ["b", "c"]))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("a", "bob"), "neighbors"),
        (("a", 7), "neighbors"),
        (("a", [None]), "neighbors"),
        (("a", ["b"], [1.0, 2.0]), "weight"),
        (("a", ["b"], [-1.0]), "weight"),
        (("a", [], [1.0]), "weight"),
        ((1.5, ["b"]), "vertex"),
        ((None, []), "vertex"),
    ],
)
def test_arrival_that_is_invalid_is_named_in_the_error(arguments: tuple[Any, ...], named: str) -> None:
    with pytest.raises(InvalidValueError, match=f"^{named}: expected"):
        Batch.arrival(*arguments)


def test_vertices_batch_adds_or_removes() -> None:
    batch = Batch.vertices(["a", "b"], Op.REMOVE_VERTEX)
    assert batch.op is not None
    assert batch.op.tolist() == [Op.REMOVE_VERTEX] * 2
    assert ids_to_list(batch.src) == ids_to_list(batch.dst) == ["a", "b"]
    assert vertex_rows(Batch.vertices([1, 2])) == [1, 2]


@pytest.mark.parametrize("create", [Batch, Batch.from_checked_columns])
def test_batch_columns_are_read_only_and_given_arrays_stay_writable(create: Callable[..., Batch]) -> None:
    arrays = np.array([1, 2]), np.array([2, 3]), np.array([0.5, 1.5]), np.array([0, 1], np.int8), np.array([1.0, 2.0])
    batch = create(*arrays)
    for column, array in zip([batch.src, batch.dst, batch.weight, batch.op, batch.time], arrays, strict=True):
        assert isinstance(column, np.ndarray)
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 9
        array[0] = array[0]  # does not raise


def test_batch_of_arrays_copies_them() -> None:
    src, dst, weight = np.array([1, 2]), np.array([2, 3]), np.array([0.5, 1.5])
    op, time = np.array([0, 1], np.int8), np.array([1.0, 2.0])
    given = [array.copy() for array in (src, dst, weight, op, time)]
    batch = Batch.of(src, dst, weight, op, time)
    for array, copy in zip((src, dst, weight, op, time), given, strict=True):
        assert np.array_equal(array, copy)
        array[:] = 0
    kept = [batch.src, batch.dst, batch.weight, batch.op, batch.time]
    assert all(np.array_equal(array, copy) for array, copy in zip(kept, given, strict=True))  # type: ignore[arg-type]

    names: list[Any] = [1, "a"]
    column = id_column(names)
    names[0] = "changed"
    assert ids_to_list(column) == [1, "a"]


def test_batch_of_a_matrix_or_table_copies_it() -> None:
    edges = np.array([[1.0, 2.0, 0.5]])
    batch = Batch.from_any(edges)
    edges[:] = 9
    assert rows_of(batch) == [(1, 2, 0.5)]
    matrix = sp.csr_array((np.array([1.0, 1.0, 0.0]), np.array([1, 0, 1]), np.array([0, 1, 3])), shape=(2, 2))
    before = matrix.copy()
    batch = Batch.from_any(matrix)
    assert (matrix.data.tolist(), matrix.indices.tolist()) == (before.data.tolist(), before.indices.tolist())
    matrix.data[:] = 9
    assert rows_of(batch) == [(0, 1, 1.0)]
    frame = pd.DataFrame({"src": [1], "dst": [2], "weight": [0.5]})
    batch = Batch.from_any(frame)
    frame.loc[:, "weight"] = 9.0
    assert rows_of(batch) == [(1, 2, 0.5)]
