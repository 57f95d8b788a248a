"""Where vectors stand on the map: communities apart, and still from one fit to the next."""

from __future__ import annotations

import numpy as np
import pytest

from ripplevec.service.map.projection import (
    MAX_COMMUNITIES,
    Projection,
    fit_centers,
    fit_rotation,
    k_means,
    match_order,
    normalize,
    principal_axes,
    smacof,
)


def blobs(count: int, size: int, seed: int = 0, dim: int = 24) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    centers = np.linalg.qr(rng.standard_normal((dim, count)))[0].T
    labels = np.arange(count * size) % count
    return (centers[labels] + 0.08 * rng.standard_normal((len(labels), dim))).astype(np.float32), labels


def turned(dim: int, seed: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((dim, dim)))[0]


def test_communities_are_found_and_stand_apart() -> None:
    vectors, labels = blobs(8, 60)
    fitted = Projection.fit(vectors)
    found = fitted.assign_communities(vectors)
    pairs = set(zip(found.tolist(), labels.tolist(), strict=True))
    assert len(pairs) == len({number for number, _ in pairs}), "a community is of one kind"
    places = fitted.project(vectors)
    middles = np.array([places[labels == label].mean(axis=0) for label in range(8)])
    own = np.linalg.norm(places - middles[labels], axis=1)
    other = np.linalg.norm(places[:, None] - middles[None], axis=2)
    other[np.arange(len(labels)), labels] = np.inf
    assert (own < other.min(axis=1)).mean() > 0.95


def test_a_fit_begins_where_the_last_one_ended() -> None:
    vectors, _ = blobs(7, 80)
    first = Projection.fit(vectors[:280])
    second = Projection.fit(vectors, first)
    before, after = first.project(vectors[:280]), second.project(vectors[:280])
    assert np.abs(after - before).mean() < 0.03 * np.ptp(before)
    assert (first.assign_communities(vectors[:280]) == second.assign_communities(vectors[:280])).mean() > 0.95


def test_the_same_vectors_stay_exactly_where_they_were() -> None:
    vectors, _ = blobs(10, 50)
    first = Projection.fit(vectors)
    second = Projection.fit(vectors, first)
    np.testing.assert_allclose(second.project(vectors), first.project(vectors), atol=0.02)


def spread_along(columns: list[int]) -> np.ndarray:
    """Two communities whose members differ in these two columns."""
    rng = np.random.default_rng(0)
    vectors = np.zeros((400, 8))
    vectors[:200, 0] = vectors[200:, 1] = 1
    vectors[:, columns] = 0.3 * rng.standard_normal((400, 2))
    return vectors


def test_the_directions_of_spread_are_kept_while_they_show_enough() -> None:
    first = Projection.fit(spread_along([4, 5]))
    assert Projection.fit(spread_along([4, 5])[::2], first).axes is first.axes
    other = Projection.fit(spread_along([6, 7]), first).axes
    assert np.linalg.norm(other[[6, 7]]) > 0.9 * np.linalg.norm(other)


def test_the_same_input_gives_the_same_map() -> None:
    vectors, _ = blobs(5, 40)
    np.testing.assert_array_equal(Projection.fit(vectors).project(vectors), Projection.fit(vectors).project(vectors))


def test_vectors_without_direction_stand_in_the_middle_and_belong_nowhere() -> None:
    vectors, _ = blobs(3, 30)
    vectors[5] = 0
    fitted = Projection.fit(vectors)
    assert fitted.project(vectors)[5].tolist() == [0, 0]
    assert fitted.assign_communities(vectors)[5] == -1
    assert (np.delete(fitted.assign_communities(vectors), 5) >= 0).all()


@pytest.mark.parametrize("rows", [0, 1, 2, 3])
@pytest.mark.parametrize("dim", [1, 2, 8])
def test_a_few_vectors_will_do(rows: int, dim: int) -> None:
    vectors = np.random.default_rng(0).standard_normal((rows, dim))
    fitted = Projection.fit(vectors)
    assert fitted.project(vectors).shape == (rows, 2)
    assert np.isfinite(fitted.project(vectors)).all()
    more = np.random.default_rng(1).standard_normal((40, dim))
    assert np.isfinite(Projection.fit(more, fitted).project(more)).all()
    assert np.isfinite(Projection.fit(vectors, Projection.fit(more)).project(vectors)).all()


def test_another_dimension_begins_anew() -> None:
    other = Projection.fit(blobs(3, 20, dim=12)[0])
    vectors, _ = blobs(3, 20, dim=6)
    np.testing.assert_array_equal(
        Projection.fit(vectors, other).project(vectors), Projection.fit(vectors).project(vectors)
    )


def test_a_better_start_replaces_what_was_known_and_keeps_the_numbers() -> None:
    vectors, _ = blobs(MAX_COMMUNITIES, 60)
    rows = normalize(vectors)
    good = fit_centers(rows, None)
    poor = good.copy()
    poor[3] = poor[4]  # two centers in one community, and so one for two others
    found = fit_centers(rows, poor)
    likeness = np.einsum("ij,ij->i", found, good)
    assert (likeness[[0, 1, 2, 5, 6, 7, 8, 9]] > 0.99).all()
    assert (found @ good.T).max(axis=0).min() > 0.99


def test_known_centers_are_kept_where_a_fresh_start_is_not_better() -> None:
    rows = normalize(blobs(6, 50)[0])
    known = fit_centers(rows, None)[::-1].copy()
    np.testing.assert_allclose(fit_centers(rows, known), known, atol=1e-3)


def test_centers_take_the_numbers_of_those_they_are_most_like() -> None:
    known = np.eye(4)
    order = [2, 0, 3, 1]
    np.testing.assert_array_equal(match_order(np.eye(4)[order], known), known)
    more = np.vstack([np.eye(4)[[1, 0]], [[0.6, 0.8, 0, 0]]])
    np.testing.assert_array_equal(match_order(more, known[:2]), more[[1, 0, 2]])


def test_a_center_without_rows_stays() -> None:
    rows = np.array([[1.0, 0.0], [0.9, 0.1]])
    found = k_means(normalize(rows), np.array([[1.0, 0.0], [-1.0, 0.0]]))
    assert found[1].tolist() == [-1.0, 0.0]


def test_principal_axes_are_those_of_largest_variance() -> None:
    rng = np.random.default_rng(0)
    turn = turned(5, 1)
    rows = rng.standard_normal((2000, 5)) * [5, 3, 0.1, 0.1, 0.1] @ turn
    axes = principal_axes(rows)
    np.testing.assert_allclose(np.abs(turn[:2] @ axes), np.eye(2), atol=0.05)


def test_a_turned_picture_is_turned_back() -> None:
    points = np.random.default_rng(0).standard_normal((30, 2))
    mirror = np.array([[0.0, 1.0], [1.0, 0.0]])
    for turn in (turned(2, 3), mirror):
        np.testing.assert_allclose(points @ turn @ fit_rotation(points @ turn, points), points, atol=1e-12)


def test_places_keep_distances_that_a_plane_can_keep() -> None:
    points = np.random.default_rng(0).standard_normal((9, 2))
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    found = smacof(points + 0.3 * np.random.default_rng(1).standard_normal((9, 2)), apart, 5000)
    np.testing.assert_allclose(np.linalg.norm(found[:, None] - found[None], axis=2), apart, atol=0.02)
