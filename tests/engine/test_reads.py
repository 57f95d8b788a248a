"""Read methods of an engine, compared with the graph that it was built from."""

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
def engine() -> Engine:
    """A ring of ten vertices without vertex 3, whose row "heir" reuses; vertex 10 arrived last and has no edge."""
    model = Embedder(dim=4, threads=1, anchor_growth=0).fit(
        [(i, (i + step) % 10) for i in range(10) for step in (1, 2)]
    )
    model.partial_fit(Batch.of([3, "heir"], [3, 0], [1.0, 2.5], [Op.REMOVE_VERTEX, Op.ADD]))
    model.partial_fit(Batch.vertices([10]))
    return model.engine


def test_lookups_return_rows_and_ids(engine: Engine) -> None:
    assert (len(engine), engine.edges, engine.next_arrival, engine.ready) == (11, 17, 12, True)
    assert engine.find_row("unknown") == engine.find_row(3) == -1
    names = engine.ids_of(engine.rows_by_arrival())
    assert (
        names == ids_to_list(engine.id_column_of(engine.rows_by_arrival())) == [0, 1, 2, 4, 5, 6, 7, 8, 9, "heir", 10]
    )
    column = id_column([5, "unknown", "heir"])
    assert engine.find_rows(column).tolist() == [engine.find_row(5), -1, engine.find_row("heir")]
    with pytest.raises(UnknownVertexError, match="unknown"):
        engine.rows_of(column)


def test_rows_by_arrival_with_a_selection_returns_those_rows(engine: Engine) -> None:
    every, even = engine.rows_by_arrival(), engine.rows_by_arrival(lambda arrival: arrival % 2 == 0)
    numbers = engine.arrival_numbers(every)
    assert (np.diff(numbers) > 0).all()
    assert even.tolist() == every[numbers % 2 == 0].tolist()


def test_vertex_info_and_neighbors_follow_the_graph(engine: Engine) -> None:
    rows = engine.rows_of(id_column([0, "heir", 10]))
    assert engine.arrival_numbers(rows).tolist() == [0, 10, 11]
    assert engine.degrees(rows).tolist() == [5, 1, 0]
    assert engine.degrees(rows).dtype == np.int64
    assert engine.placed(rows).tolist() == [True, True, False]
    assert engine.vertex_info(int(rows[1])) == VertexInfo(10, 1, 2.5, True)
    neighbors, weights = engine.neighbors(int(rows[0]), 2)
    assert engine.ids_of(neighbors)[0] == "heir"
    assert weights.tolist() == [2.5, 1.0]
    assert len(engine.neighbors(int(rows[0]))[0]) == 5


def test_preview_sums_repeated_neighbors(engine: Engine) -> None:
    rows = engine.rows_of(id_column([0, 5, 5]))
    seen = engine.preview(rows, np.ones(3, np.float32))
    np.testing.assert_array_equal(seen, engine.preview(rows[:2], np.array([1, 2], np.float32)))
    assert seen.shape == (4,)


def test_nearest_to_a_row_or_vector_excludes_the_row_and_unplaced_vertices(engine: Engine) -> None:
    row = engine.find_row(5)
    with Searcher("exact", 1).open_search() as search:
        rows, cosines = engine.nearest(search, row, 100)
        again, _ = engine.nearest(search, engine.get_vector(row).astype(np.float64), 100)
    assert row not in rows
    assert again[0] == row
    assert len(again) == len(rows) + 1 == 10  # a vertex without a vector is not returned
    assert (np.diff(cosines) <= 0).all()


def test_build_changes_returns_moved_vertices_with_vectors(engine: Engine) -> None:
    outcome = engine.apply(Batch.from_any([("new", 0)]))
    changes = engine.build_changes(outcome)
    assert "new" in changes.ids
    assert changes.sequence == engine.sequence == 3
    assert changes.arrived.tolist() == [name == "new" for name in changes.ids]
    np.testing.assert_array_equal(changes.vectors, engine.get_vectors(engine.rows_of(id_column(changes.ids))))
    empty = engine.empty_changes(2)
    assert (len(empty), empty.sequence, empty.vectors.shape, empty.anchored) == (0, 2, (0, 4), False)


def test_check_of_an_inconsistent_state_raises(engine: Engine) -> None:
    engine.check()
    engine.graph.arrival[engine.find_row("heir")] = -1
    with pytest.raises(RipplevecError, match="damaged"):
        engine.check()
