"""The projection: its basis against an exact decomposition, its refit, and names that appear later."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.attributes.input import read_values
from ripplevec.attributes.projection import Projection, iterate_subspace
from ripplevec.batch import AttributeRows


def low_rank_rows(count: int, width: int, rank: int, seed: int) -> NDArray[np.float64]:
    """Return rows in a few directions with a little noise."""
    random = np.random.default_rng(seed)
    factors = np.random.default_rng(0).normal(size=(rank, width)) * np.linspace(3, 1, rank)[:, None]
    return random.normal(size=(count, rank)) @ factors + 0.01 * random.normal(size=(count, width))


def learn(projection: Projection, rows: AttributeRows) -> NDArray[np.float32]:
    columns = projection.enter_columns(rows)
    projection.count_all(len(rows.ids), columns, rows.values)
    return projection.learn(rows.begin, columns, rows.values)


def captured(basis: NDArray[np.float32], matrix: NDArray[np.float64]) -> float:
    """Return the share of the squared length of rows that lies in the span of the basis."""
    orthonormal = np.linalg.qr(basis.astype(np.float64))[0]
    return float(np.square(matrix @ orthonormal).sum() / np.square(matrix).sum())


def test_iterate_subspace_finds_the_leading_singular_vectors_strongest_first() -> None:
    matrix = low_rank_rows(80, 30, 5, 1)
    start = np.random.default_rng(2).normal(size=(30, 5))
    basis = iterate_subspace(matrix, csr_array((80, 80)), start, 20)
    exact = np.linalg.svd(matrix)[2][:5].T
    np.testing.assert_allclose(np.abs(basis.T @ exact), np.eye(5), atol=1e-5)


def test_directions_in_which_neighbors_agree_come_first() -> None:
    random = np.random.default_rng(1)
    agreed, other = random.normal(size=(2, 60))
    agreed[1::2] = agreed[::2]  # the pairs of neighbors below have the same value here, and any value there
    matrix = np.column_stack([agreed, 1.2 * other])
    pairs = np.arange(60) ^ 1
    adjacency = csr_array((np.ones(60), (np.arange(60), pairs)))
    assert abs(iterate_subspace(matrix, adjacency, np.eye(2), 20)[0, 0]) > 0.9
    assert abs(iterate_subspace(matrix, csr_array((60, 60)), np.eye(2), 20)[0, 0]) < 0.5


def test_dense_rows_are_standardized_and_projected_on_their_main_directions() -> None:
    matrix = low_rank_rows(200, 20, 4, 1) * np.geomspace(1, 1000, 20) + 5
    projection = Projection(4, seed=0)
    parts = learn(projection, read_values(np.arange(200), matrix))
    standard = (matrix - matrix.mean(0)) / matrix.std(0)
    standard /= np.linalg.norm(standard, axis=1, keepdims=True)
    assert captured(projection.basis, standard) > 0.99
    np.testing.assert_allclose(parts @ parts.T, standard @ standard.T, atol=0.05)


def test_a_row_that_is_projected_alone_has_the_part_it_had_when_learned() -> None:
    rows = read_values(np.arange(50), np.random.default_rng(1).normal(size=(50, 6)))
    projection = Projection(6, seed=0)
    parts = learn(projection, rows)
    alone = projection.project(np.arange(6, dtype=np.int32), rows.values[3])
    np.testing.assert_allclose(alone, parts[3], rtol=1e-4, atol=1e-6)


def test_refit_follows_new_directions_and_keeps_coordinates_still() -> None:
    old, new = low_rank_rows(300, 40, 3, 1), np.zeros((1500, 40))
    new[:, :3] = np.random.default_rng(4).normal(size=(1500, 3)) * 5  # other directions than before
    projection = Projection(6, seed=0)
    parts = learn(projection, read_values(np.arange(300), old))
    before = captured(projection.basis, new)
    columns = np.arange(40, dtype=np.int32)
    no_neighbors = np.zeros(6, np.float32)
    for row in new.astype(np.float32):
        projection.project(columns, row, no_neighbors)
    for _ in range(4):
        projection.begin_refit()
        assert projection.advance_refit(2)
    assert captured(projection.basis, new) > max(0.9, before)
    again = np.stack([projection.project(columns, row) for row in old.astype(np.float32)])
    cosines = (parts * again).sum(1) / np.linalg.norm(parts, axis=1) / np.linalg.norm(again, axis=1)
    assert np.median(cosines) > 0.5  # without the rotation that aligns bases it is about 0


def test_refit_in_slices_of_attributes_has_two_passes() -> None:
    projection = Projection(2, seed=0)
    learn(projection, read_values(np.arange(30), np.random.default_rng(1).normal(size=(30, 300))))
    projection.begin_refit()
    finished = [projection.advance_refit(1) for _ in range(6)]
    assert finished == [False] * 5 + [True]  # 300 attributes are three slices


def test_unseen_names_enter_with_a_small_direction_and_preview_matches_it() -> None:
    projection = Projection(2, seed=0)
    known = read_values([1, 2, 3], [{"a": 1}, {"b": 1}, {"a": 1, "b": 1}])
    learn(projection, known)
    unseen = read_values([4], [{"c": 1, "a": 1, "d": 2}])
    preview = projection.preview(unseen)
    assert projection.size == 2
    columns = projection.enter_columns(unseen)
    assert projection.size == 4
    np.testing.assert_array_equal(projection.project(columns, unseen.values), preview)
    assert 0 < np.linalg.norm(projection.basis[2]) < 0.2


def test_restored_projection_continues_with_the_same_bits() -> None:
    first = Projection(3, seed=1)
    learn(first, read_values(np.arange(9), [{f"n{i}": 1, f"n{i % 4}x": 2} for i in range(9)]))
    second = Projection(3, seed=1)
    second.restore(first.state())
    later = read_values([10], [{"n1": 1, "fresh": 3}])
    for projection in (first, second):
        projection.project(projection.enter_columns(later), later.values, np.ones(3, np.float32))
        projection.begin_refit()
        projection.advance_refit(9)
    for name, array in first.state().items():
        np.testing.assert_array_equal(array, second.state()[name])
