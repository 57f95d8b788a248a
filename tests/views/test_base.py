from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.errors import InvalidValueError
from ripplevec.views.base import allocate_columns
from ripplevec.views.spectral import SpectralView


def views(*shares: float) -> list[SpectralView]:
    return [SpectralView(tau=1.0, share=share) for share in shares]


@given(dim=st.integers(1, 300), shares=st.lists(st.floats(0.01, 100), min_size=1, max_size=5))
def test_allocate_columns_is_proportional_and_complete(dim: int, shares: list[float]) -> None:
    columns = allocate_columns(dim, views(*shares))
    assert sum(columns) == dim
    assert min(columns) >= (1 if dim >= len(shares) else 0)
    for count, share in zip(columns, shares, strict=True):
        exact = dim * share / sum(shares)
        assert count <= max(exact + 1, 1)
        assert count >= exact - len(shares) - 1


@pytest.mark.parametrize(
    ("dim", "shares", "expected"),
    [
        (1, (3, 1), [1, 0]),
        (2, (3, 1), [1, 1]),
        (3, (3, 1), [2, 1]),
        (4, (3, 1), [3, 1]),
        (90, (3, 1), [68, 22]),
        (5, (1,), [5]),
    ],
)
def test_allocate_columns_with_small_dimensions_gives_expected_counts(
    dim: int, shares: tuple[float, ...], expected: list[int]
) -> None:
    assert allocate_columns(dim, views(*shares)) == expected


def test_allocate_columns_without_views_raises() -> None:
    with pytest.raises(InvalidValueError, match=r"^views: expected at least one"):
        allocate_columns(4, [])
