"""What may be asked of a state, against what was put into it."""

from __future__ import annotations

import numpy as np
import pytest

from ripplevec.batch import Batch, Op, ids_to_list, id_column
from ripplevec.embedder import Embedder
from ripplevec.engine.engine import Engine
from ripplevec.engine.reads import VertexInfo
from ripplevec.errors import RipplevecError, UnknownVertexError
from ripplevec.search.searcher import Searcher


@pytest.fixture
def one() -> Engine:
    """A ring of ten whose vertex 3 has gone; "heir" has its row, 10 came last and has no edge."""
    model = Embedder(dim=4, threads=1, anchor_growth=0).fit(
        [(i, (i + step) % 10) for i in range(10) for step in (1, 2)]
    )
    model.partial_fit(Batch.of([3, "heir"], [3, 0], [1.0, 2.5], [Op.REMOVE_VERTEX, Op.ADD]))
    model.partial_fit(Batch.vertices([10]))
    return model.engine


def test_who_is_there(one: Engine) -> None:
    assert (len(one), one.edges, one.next_arrival, one.ready) == (11, 17, 12, True)
    assert one.find_row("nobody") == one.find_row(3) == -1
    names = one.ids_of(one.rows_by_arrival())
    assert names == ids_to_list(one.id_column_of(one.rows_by_arrival())) == [0, 1, 2, 4, 5, 6, 7, 8, 9, "heir", 10]
    column = id_column([5, "nobody", "heir"])
    assert one.find_rows(column).tolist() == [one.find_row(5), -1, one.find_row("heir")]
    with pytest.raises(UnknownVertexError, match="nobody"):
        one.rows_of(column)


def test_those_whose_numbers_are_wanted(one: Engine) -> None:
    every, even = one.rows_by_arrival(), one.rows_by_arrival(lambda arrival: arrival % 2 == 0)
    numbers = one.arrival_numbers(every)
    assert (np.diff(numbers) > 0).all()
    assert even.tolist() == every[numbers % 2 == 0].tolist()


def test_what_is_known_of_them(one: Engine) -> None:
    rows = one.rows_of(id_column([0, "heir", 10]))
    assert one.arrival_numbers(rows).tolist() == [0, 10, 11]
    assert one.degrees(rows).tolist() == [5, 1, 0]
    assert one.degrees(rows).dtype == np.int64
    assert one.placed(rows).tolist() == [True, True, False]
    assert one.vertex_info(int(rows[1])) == VertexInfo(10, 1, 2.5, True)
    around, weights = one.neighbors(int(rows[0]), 2)
    assert one.ids_of(around)[0] == "heir"
    assert weights.tolist() == [2.5, 1.0]
    assert len(one.neighbors(int(rows[0]))[0]) == 5


def test_a_preview_is_where_the_newcomer_will_stand(one: Engine) -> None:
    rows = one.rows_of(id_column([0, 5, 5]))
    seen = one.preview(rows, np.ones(3, np.float32))
    np.testing.assert_array_equal(seen, one.preview(rows[:2], np.array([1, 2], np.float32)))
    assert seen.shape == (4,)


def test_near_a_row_or_a_vector(one: Engine) -> None:
    row = one.find_row(5)
    with Searcher("exact", 1).open_search() as ask:
        rows, cosines = one.nearest(ask, row, 100)
        again, _ = one.nearest(ask, one.get_vector(row).astype(np.float64), 100)
    assert row not in rows
    assert again[0] == row
    assert len(again) == len(rows) + 1 == 10  # who has no vector is near nobody
    assert (np.diff(cosines) <= 0).all()


def test_what_a_batch_changed(one: Engine) -> None:
    outcome = one.apply(Batch.from_any([("new", 0)]))
    changes = one.build_changes(outcome)
    assert "new" in changes.ids
    assert changes.sequence == one.sequence == 3
    assert changes.arrived.tolist() == [name == "new" for name in changes.ids]
    np.testing.assert_array_equal(changes.vectors, one.get_vectors(one.rows_of(id_column(changes.ids))))
    nothing = one.empty_changes(2)
    assert (len(nothing), nothing.sequence, nothing.vectors.shape, nothing.anchored) == (0, 2, (0, 4), False)


def test_a_contradiction_is_found(one: Engine) -> None:
    one.check()
    one.graph.arrival[one.find_row("heir")] = -1
    with pytest.raises(RipplevecError, match="damaged"):
        one.check()
