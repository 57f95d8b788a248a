from __future__ import annotations

import numpy as np
import pytest

from ripplevec.errors import FormatError
from ripplevec.views.base import Basis
from ripplevec.views.coordinates import SMALLEST_MU, Coordinates, identity_scaling
from ripplevec.views.spectral import SpectralView

VIEWS = [
    SpectralView(share=3, tau=0.25, flatten=0.5, ridge=2.0),
    SpectralView(share=1, tau_per_degree=64, weight=1.4, flatten=1.0),
]


def settled(normalize: bool = True, turned: bool = True) -> Coordinates:
    space, draw = Coordinates(VIEWS, 8, normalize), np.random.default_rng(0)
    widths = [part.stop - part.start for part in space.parts]
    mus = [np.array([0.8, 0.4, 0.2, 0.1, 0.001, -0.1]), np.array([0.5, 0.3])]
    space.adopt_bases(
        [Basis(np.empty((0, k)), mu, 0.5 + k, draw.standard_normal(k), 8.0) for k, mu in zip(widths, mus, strict=True)]
    )
    if turned:
        space.set_rotation(np.linalg.qr(draw.standard_normal((8, 8)))[0])
    return space


def test_the_frame_has_the_values_of_every_view() -> None:
    space = Coordinates(VIEWS, 8)
    assert not space.ready
    space = settled()
    assert space.ready
    frame = space.refresh_coefficients(np.float32)
    assert frame.bounds.tolist() == [0, 6, 8]
    assert frame.views[:, :4].tolist() == [[6.5, 0.8, 2.0, 16.0], [2.5, 0.5, 1.0, 16.0]]  # τ, μ₁, ρ, the bound
    np.testing.assert_allclose(frame.views[:, 4], [16 / 6**0.5, 16 / 2**0.5])
    mu, center = frame.columns
    np.testing.assert_allclose(mu, [1, 0.5, 0.25, 0.125, SMALLEST_MU, SMALLEST_MU, 1, 0.6], rtol=1e-6)
    np.testing.assert_allclose(center, space.center, rtol=1e-6)
    assert frame.columns.dtype == np.float32


def test_what_a_frame_compares_weights_with_goes_with_their_unit() -> None:
    space = settled()
    one, four = space.refresh_coefficients(np.float32), space.refresh_coefficients(np.float32, 4.0)
    assert np.array_equal(four.views, one.views * [4, 1, 1, 1, 1])
    assert np.array_equal(four.columns, one.columns * np.array([[1], [4]], np.float32))
    space.set_weight_unit(four, 1.0)
    assert np.array_equal(four.views, one.views)
    assert np.array_equal(four.columns, one.columns)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("turned", [True, False])
def test_rows_are_scaled_and_turned_for_readers(normalize: bool, turned: bool) -> None:
    space, rows = settled(normalize, turned), np.random.default_rng(1).standard_normal((5, 8)).astype(np.float32)
    expected = rows.astype(np.float64)
    if normalize:
        first, second = expected[:, :6], expected[:, 6:]
        first = first / np.sqrt(np.linalg.norm(first, axis=1, keepdims=True))
        second = 1.4 * second / np.linalg.norm(second, axis=1, keepdims=True)
        expected = np.hstack([first, second])
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    before = rows.copy()
    served = space.to_served(rows)
    assert served.dtype == np.float32
    np.testing.assert_allclose(space.scale_rows(rows), expected, atol=1e-6)
    np.testing.assert_allclose(served, expected @ space.rotation if turned else expected, atol=1e-6)
    np.testing.assert_allclose(space.to_internal(served), expected, atol=1e-6)
    assert np.array_equal(rows, before)
    assert not space.to_served(np.zeros((1, 8), np.float32)).any()


def test_a_server_keeps_the_coordinates_it_was_asked_for() -> None:
    space, rows = settled(), np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)
    server, served = space.served_transform(), space.to_served(rows)
    space.set_rotation(np.eye(8)[::-1])
    assert np.array_equal(server(rows), served)
    assert not np.array_equal(space.to_served(rows), served)


def test_a_successor_has_the_views_and_nothing_else() -> None:
    new = settled().new_like()
    assert new.views == VIEWS
    assert (new.ready, new.rotation, new.normalize) == (False, None, True)


@pytest.mark.parametrize("turned", [True, False])
def test_state_goes_round(turned: bool) -> None:
    space, again = settled(turned=turned), Coordinates(VIEWS, 8)
    again.restore(space.state())
    rows = np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)
    assert again.ready
    assert np.array_equal(again.to_served(rows), space.to_served(rows))
    for one, other in zip(again.refresh_coefficients(np.float32), space.refresh_coefficients(np.float32), strict=True):
        assert np.array_equal(one, other)


def test_a_state_of_other_views_is_refused() -> None:
    with pytest.raises(FormatError, match="do not fit the views: tau"):
        Coordinates(VIEWS[:1], 8).restore(settled().state())


def test_views_without_a_column_are_left_out() -> None:
    space = Coordinates(VIEWS, 1)
    assert (space.views, space.parts) == (VIEWS[:1], [slice(0, 1)])


def test_as_they_are_changes_no_direction() -> None:
    scaling = identity_scaling(3)
    assert (scaling.bounds.tolist(), scaling.weights.tolist(), scaling.flatten.tolist()) == ([0, 3], [1], [0])
