"""The projection separates communities and is stable from fit to fit."""

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


def random_rotation(dim: int, seed: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((dim, dim)))[0]


def test_projection_separates_communities() -> None:
    vectors, labels = blobs(8, 60)
    fitted = Projection.fit(vectors)
    found = fitted.assign_communities(vectors)
    pairs = set(zip(found.tolist(), labels.tolist(), strict=True))
    assert len(pairs) == len({number for number, _ in pairs}), "each community has one label"
    positions = fitted.project(vectors)
    middles = np.array([positions[labels == label].mean(axis=0) for label in range(8)])
    own = np.linalg.norm(positions - middles[labels], axis=1)
    other = np.linalg.norm(positions[:, None] - middles[None], axis=2)
    other[np.arange(len(labels)), labels] = np.inf
    assert (own < other.min(axis=1)).mean() > 0.95


def test_projection_refit_with_more_vectors_moves_little() -> None:
    vectors, _ = blobs(7, 80)
    first = Projection.fit(vectors[:280])
    second = Projection.fit(vectors, first)
    before, after = first.project(vectors[:280]), second.project(vectors[:280])
    assert np.abs(after - before).mean() < 0.03 * np.ptp(before)
    assert (first.assign_communities(vectors[:280]) == second.assign_communities(vectors[:280])).mean() > 0.95


def test_projection_refit_with_same_vectors_keeps_positions() -> None:
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


def test_projection_axes_are_kept_while_they_show_enough_variance() -> None:
    first = Projection.fit(spread_along([4, 5]))
    assert Projection.fit(spread_along([4, 5])[::2], first).axes is first.axes
    other = Projection.fit(spread_along([6, 7]), first).axes
    assert np.linalg.norm(other[[6, 7]]) > 0.9 * np.linalg.norm(other)


def test_projection_is_deterministic() -> None:
    vectors, _ = blobs(5, 40)
    np.testing.assert_array_equal(Projection.fit(vectors).project(vectors), Projection.fit(vectors).project(vectors))


def test_projection_zero_vectors_are_at_origin_without_community() -> None:
    vectors, _ = blobs(3, 30)
    vectors[5] = 0
    fitted = Projection.fit(vectors)
    assert fitted.project(vectors)[5].tolist() == [0, 0]
    assert fitted.assign_communities(vectors)[5] == -1
    assert (np.delete(fitted.assign_communities(vectors), 5) >= 0).all()


@pytest.mark.parametrize("rows", [0, 1, 2, 3])
@pytest.mark.parametrize("dim", [1, 2, 8])
def test_projection_of_few_vectors_is_finite(rows: int, dim: int) -> None:
    vectors = np.random.default_rng(0).standard_normal((rows, dim))
    fitted = Projection.fit(vectors)
    assert fitted.project(vectors).shape == (rows, 2)
    assert np.isfinite(fitted.project(vectors)).all()
    more = np.random.default_rng(1).standard_normal((40, dim))
    assert np.isfinite(Projection.fit(more, fitted).project(more)).all()
    assert np.isfinite(Projection.fit(vectors, Projection.fit(more)).project(vectors)).all()


def test_projection_previous_of_other_dimension_is_ignored() -> None:
    other = Projection.fit(blobs(3, 20, dim=12)[0])
    vectors, _ = blobs(3, 20, dim=6)
    np.testing.assert_array_equal(
        Projection.fit(vectors, other).project(vectors), Projection.fit(vectors).project(vectors)
    )


def test_fit_centers_better_restart_replaces_previous_in_order() -> None:
    vectors, _ = blobs(MAX_COMMUNITIES, 60)
    rows = normalize(vectors)
    good = fit_centers(rows, None)
    poor = good.copy()
    poor[3] = poor[4]  # two centers in one community, and one center for two others
    found = fit_centers(rows, poor)
    similarity = np.einsum("ij,ij->i", found, good)
    assert (similarity[[0, 1, 2, 5, 6, 7, 8, 9]] > 0.99).all()
    assert (found @ good.T).max(axis=0).min() > 0.99


def test_fit_centers_without_better_restart_keeps_previous() -> None:
    rows = normalize(blobs(6, 50)[0])
    known = fit_centers(rows, None)[::-1].copy()
    np.testing.assert_allclose(fit_centers(rows, known), known, atol=1e-3)


def test_match_order_numbers_centers_like_the_most_similar_previous() -> None:
    known = np.eye(4)
    order = [2, 0, 3, 1]
    np.testing.assert_array_equal(match_order(np.eye(4)[order], known), known)
    more = np.vstack([np.eye(4)[[1, 0]], [[0.6, 0.8, 0, 0]]])
    np.testing.assert_array_equal(match_order(more, known[:2]), more[[1, 0, 2]])


def test_match_order_maximizes_the_sum_of_the_cosines() -> None:
    def directions(*degrees: float) -> np.ndarray:
        return np.column_stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])

    previous = directions(0, 37)
    centers = directions(18, -30)  # the first is most similar to the first, but the second resembles only that one
    np.testing.assert_array_equal(match_order(centers, previous), centers[[1, 0]])


def test_k_means_center_without_rows_is_unchanged() -> None:
    rows = np.array([[1.0, 0.0], [0.9, 0.1]])
    found = k_means(normalize(rows), np.array([[1.0, 0.0], [-1.0, 0.0]]))
    assert found[1].tolist() == [-1.0, 0.0]


def test_principal_axes_have_largest_variance() -> None:
    rng = np.random.default_rng(0)
    rotation = random_rotation(5, 1)
    rows = rng.standard_normal((2000, 5)) * [5, 3, 0.1, 0.1, 0.1] @ rotation
    axes = principal_axes(rows)
    np.testing.assert_allclose(np.abs(rotation[:2] @ axes), np.eye(2), atol=0.05)


def test_fit_rotation_reverses_rotation_and_reflection() -> None:
    points = np.random.default_rng(0).standard_normal((30, 2))
    mirror = np.array([[0.0, 1.0], [1.0, 0.0]])
    for rotation in (random_rotation(2, 3), mirror):
        np.testing.assert_allclose(points @ rotation @ fit_rotation(points @ rotation, points), points, atol=1e-12)


def test_smacof_recovers_planar_distances() -> None:
    points = np.random.default_rng(0).standard_normal((9, 2))
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    found = smacof(points + 0.3 * np.random.default_rng(1).standard_normal((9, 2)), distances, 5000)
    np.testing.assert_allclose(np.linalg.norm(found[:, None] - found[None], axis=2), distances, atol=0.02)
