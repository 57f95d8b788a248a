"""Read methods of an engine, against what was put into it."""

from __future__ import annotations

import numpy as np
import pytest

from ripplevec.batch import Batch, Op, id_column, ids_to_list
from ripplevec.embedder import Embedder
from ripplevec.engine.engine import Engine
from ripplevec.engine.reads import VertexInfo
from ripplevec.errors import RipplevecError, UnknownVertexError
from ripplevec.search.searcher import Searcher


@pytest.fixture
def one() -> Engine:
    """A ring of ten without vertex 3; "heir" has its row, and 10 arrived last and has no edge."""
    model = Embedder(dim=4, threads=1, anchor_growth=0).fit(
        [(i, (i + step) % 10) for i in range(10) for step in (1, 2)]
    )
    model.partial_fit(Batch.of([3, "heir"], [3, 0], [1.0, 2.5], [Op.REMOVE_VERTEX, Op.ADD]))
    model.partial_fit(Batch.vertices([10]))
    return model.engine


def test_lookups_return_rows_and_ids(one: Engine) -> None:
    assert (len(one), one.edges, one.next_arrival, one.ready) == (11, 17, 12, True)
    assert one.find_row("unknown") == one.find_row(3) == -1
    names = one.ids_of(one.rows_by_arrival())
    assert names == ids_to_list(one.id_column_of(one.rows_by_arrival())) == [0, 1, 2, 4, 5, 6, 7, 8, 9, "heir", 10]
    column = id_column([5, "unknown", "heir"])
    assert one.find_rows(column).tolist() == [one.find_row(5), -1, one.find_row("heir")]
    with pytest.raises(UnknownVertexError, match="unknown"):
        one.rows_of(column)


def test_rows_by_arrival_with_a_selection_returns_those_rows(one: Engine) -> None:
    every, even = one.rows_by_arrival(), one.rows_by_arrival(lambda arrival: arrival % 2 == 0)
    numbers = one.arrival_numbers(every)
    assert (np.diff(numbers) > 0).all()
    assert even.tolist() == every[numbers % 2 == 0].tolist()


def test_vertex_facts_and_neighbors_follow_the_graph(one: Engine) -> None:
    rows = one.rows_of(id_column([0, "heir", 10]))
    assert one.arrival_numbers(rows).tolist() == [0, 10, 11]
    assert one.degrees(rows).tolist() == [5, 1, 0]
    assert one.degrees(rows).dtype == np.int64
    assert one.placed(rows).tolist() == [True, True, False]
    assert one.vertex_info(int(rows[1])) == VertexInfo(10, 1, 2.5, True)
    neighbors, weights = one.neighbors(int(rows[0]), 2)
    assert one.ids_of(neighbors)[0] == "heir"
    assert weights.tolist() == [2.5, 1.0]
    assert len(one.neighbors(int(rows[0]))[0]) == 5


def test_preview_sums_repeated_neighbors(one: Engine) -> None:
    rows = one.rows_of(id_column([0, 5, 5]))
    seen = one.preview(rows, np.ones(3, np.float32))
    np.testing.assert_array_equal(seen, one.preview(rows[:2], np.array([1, 2], np.float32)))
    assert seen.shape == (4,)


def test_nearest_to_a_row_or_vector_excludes_the_row_and_unplaced_vertices(one: Engine) -> None:
    row = one.find_row(5)
    with Searcher("exact", 1).open_search() as ask:
        rows, cosines = one.nearest(ask, row, 100)
        again, _ = one.nearest(ask, one.get_vector(row).astype(np.float64), 100)
    assert row not in rows
    assert again[0] == row
    assert len(again) == len(rows) + 1 == 10  # a vertex without a vector is not returned
    assert (np.diff(cosines) <= 0).all()


def test_build_changes_returns_moved_vertices_with_vectors(one: Engine) -> None:
    outcome = one.apply(Batch.from_any([("new", 0)]))
    changes = one.build_changes(outcome)
    assert "new" in changes.ids
    assert changes.sequence == one.sequence == 3
    assert changes.arrived.tolist() == [name == "new" for name in changes.ids]
    np.testing.assert_array_equal(changes.vectors, one.get_vectors(one.rows_of(id_column(changes.ids))))
    empty = one.empty_changes(2)
    assert (len(empty), empty.sequence, empty.vectors.shape, empty.anchored) == (0, 2, (0, 4), False)


def test_check_of_an_inconsistent_state_raises(one: Engine) -> None:
    one.check()
    one.graph.arrival[one.find_row("heir")] = -1
    with pytest.raises(RipplevecError, match="damaged"):
        one.check()
