from __future__ import annotations

import numpy as np
import pytest

from ripplevec.errors import FormatError
from ripplevec.views.base import Basis
from ripplevec.views.coordinates import MIN_MU_RATIO, Coordinates, identity_scaling
from ripplevec.views.spectral import SpectralView

VIEWS = [
    SpectralView(share=3, tau=0.25, flatten=0.5, ridge=2.0),
    SpectralView(share=1, tau_per_degree=64, weight=1.4, flatten=1.0),
]


def make_coordinates(normalize: bool = True, rotated: bool = True) -> Coordinates:
    coordinates, draw = Coordinates(VIEWS, 8, normalize), np.random.default_rng(0)
    widths = [part.stop - part.start for part in coordinates.parts]
    mus = [np.array([0.8, 0.4, 0.2, 0.1, 0.001, -0.1]), np.array([0.5, 0.3])]
    coordinates.adopt_bases(
        [
            Basis(np.empty((0, k)), mu, 0.5 + k, draw.standard_normal(k), 8.0, -0.5)
            for k, mu in zip(widths, mus, strict=True)
        ]
    )
    if rotated:
        coordinates.set_rotation(np.linalg.qr(draw.standard_normal((8, 8)))[0])
    return coordinates


def test_refresh_coefficients_hold_the_values_of_every_view() -> None:
    coordinates = Coordinates(VIEWS, 8)
    assert not coordinates.ready
    coordinates = make_coordinates()
    assert coordinates.ready
    coefficients = coordinates.refresh_coefficients(np.float32)
    assert coefficients.bounds.tolist() == [0, 6, 8]
    assert coefficients.per_view[:, :4].tolist() == [
        [6.5, 0.8, 2.0, 16.0],
        [2.5, 0.5, 1.0, 16.0],
    ]  # τ, μ₁, ρ, length bound
    np.testing.assert_allclose(coefficients.per_view[:, 4], [16 / 6**0.5, 16 / 2**0.5])
    mu, center = coefficients.per_column
    np.testing.assert_allclose(mu, [1, 0.5, 0.25, 0.125, MIN_MU_RATIO, MIN_MU_RATIO, 1, 0.6], rtol=1e-6)
    np.testing.assert_allclose(center, coordinates.center, rtol=1e-6)
    assert coefficients.per_column.dtype == np.float32


def test_set_weight_unit_scales_tau_and_center_only() -> None:
    coordinates = make_coordinates()
    one, four = coordinates.refresh_coefficients(np.float32), coordinates.refresh_coefficients(np.float32, 4.0)
    assert np.array_equal(four.per_view, one.per_view * [4, 1, 1, 1, 1])
    assert np.array_equal(four.per_column, one.per_column * np.array([[1], [4]], np.float32))
    coordinates.set_weight_unit(four, 1.0)
    assert np.array_equal(four.per_view, one.per_view)
    assert np.array_equal(four.per_column, one.per_column)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("rotated", [True, False])
def test_to_served_scales_and_rotates_rows(normalize: bool, rotated: bool) -> None:
    coordinates, rows = (
        make_coordinates(normalize, rotated),
        np.random.default_rng(1).standard_normal((5, 8)).astype(np.float32),
    )
    expected = rows.astype(np.float64)
    if normalize:
        first, second = expected[:, :6], expected[:, 6:]
        first = first / np.sqrt(np.linalg.norm(first, axis=1, keepdims=True))
        second = 1.4 * second / np.linalg.norm(second, axis=1, keepdims=True)
        expected = np.hstack([first, second])
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    before = rows.copy()
    served = coordinates.to_served(rows)
    assert served.dtype == np.float32
    np.testing.assert_allclose(coordinates.scale_rows(rows), expected, atol=1e-6)
    np.testing.assert_allclose(served, expected @ coordinates.rotation if rotated else expected, atol=1e-6)
    np.testing.assert_allclose(coordinates.to_internal(served), expected, atol=1e-6)
    assert np.array_equal(rows, before)
    assert not coordinates.to_served(np.zeros((1, 8), np.float32)).any()


def test_served_transform_is_unaffected_by_a_later_rotation() -> None:
    coordinates, rows = make_coordinates(), np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)
    transform, served = coordinates.served_transform(), coordinates.to_served(rows)
    coordinates.set_rotation(np.eye(8)[::-1])
    assert np.array_equal(transform(rows), served)
    assert not np.array_equal(coordinates.to_served(rows), served)


def test_new_like_keeps_the_views_only() -> None:
    new = make_coordinates().new_like()
    assert new.views == VIEWS
    assert (new.ready, new.rotation, new.normalize) == (False, None, True)


@pytest.mark.parametrize("rotated", [True, False])
def test_restore_of_state_reproduces_coordinates(rotated: bool) -> None:
    coordinates, again = make_coordinates(rotated=rotated), Coordinates(VIEWS, 8)
    again.restore(coordinates.state())
    rows = np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)
    assert again.ready
    assert np.array_equal(again.to_served(rows), coordinates.to_served(rows))
    for one, other in zip(
        again.refresh_coefficients(np.float32), coordinates.refresh_coefficients(np.float32), strict=True
    ):
        assert np.array_equal(one, other)


def test_restore_with_other_views_raises() -> None:
    with pytest.raises(FormatError, match="do not fit the views: expected tau"):
        Coordinates(VIEWS[:1], 8).restore(make_coordinates().state())


def test_coordinates_drop_views_without_columns() -> None:
    coordinates = Coordinates(VIEWS, 1)
    assert (coordinates.views, coordinates.parts) == (VIEWS[:1], [slice(0, 1)])


def test_identity_scaling_changes_no_direction() -> None:
    scaling = identity_scaling(3)
    assert (scaling.bounds.tolist(), scaling.weights.tolist(), scaling.flatten.tolist()) == ([0, 3], [1], [0])
