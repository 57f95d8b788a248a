from __future__ import annotations

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.engine.engine import Engine


@pytest.fixture
def engine() -> Engine:
    model = Embedder(dim=2, start_size=100)
    model.partial_fit([("a", "b", 2.0), ("a", "c", 0.5), ("c", "d", 4.0)])
    return model.engine


def test_rows_and_ids_are_in_order_of_arrival(engine: Engine) -> None:
    rows = engine.rows_by_arrival()
    assert list(engine.id_column_of(rows).to_pylist()) == ["a", "b", "c", "d"]  # type: ignore[union-attr]
    np.testing.assert_array_equal(engine.read_rows(rows, "arrival"), [0, 1, 2, 3])
    assert engine.next_arrival == 4


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [("degree", [2, 1, 2, 1]), ("strength", [2.5, 2.0, 4.5, 4.0]), ("placed", [0, 0, 0, 0])],
)
def test_read_rows_returns_one_attribute_of_each_row(engine: Engine, attribute: str, expected: list[float]) -> None:
    rows = engine.rows_by_arrival()
    np.testing.assert_array_equal(engine.read_rows(rows, attribute), expected)
    assert engine.read_row(int(rows[2]), [attribute]) == [expected[2]]


def test_stored_vectors_are_zero_before_the_start(engine: Engine) -> None:
    np.testing.assert_array_equal(engine.read_rows(engine.rows_by_arrival(), "vectors"), np.zeros((4, 2)))


def test_edges_are_read_row_by_row_and_neighbors_latest_first(engine: Engine) -> None:
    a, b, c, d = engine.rows_by_arrival().tolist()
    np.testing.assert_array_equal(engine.read_edges(np.array([c, a]), "neighbor"), [a, d, b, c])
    np.testing.assert_array_equal(engine.read_edges(np.array([c]), "weight"), [0.5, 4.0])
    neighbors, weights = engine.list_neighbors(a, 1)
    assert (neighbors.tolist(), weights.tolist()) == ([c], [0.5])
    assert engine.list_neighbors(a, None)[0].tolist() == [c, b]


def test_sizes_count_vertices_with_edges_and_without_vectors(engine: Engine) -> None:
    sizes = engine.sizes()
    assert (sizes["with_edges"], sizes["unplaced"]) == (4, 4)
    assert sizes["bytes"] > 0
