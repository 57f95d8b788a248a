"""The public names of the package are imported on first use."""

from __future__ import annotations

import pytest

import ripplevec


def test_dir_lists_the_public_names() -> None:
    assert dir(ripplevec) == sorted(ripplevec.__all__)
    assert set(ripplevec.__all__) == {*ripplevec._MODULES, "__version__"}


@pytest.mark.parametrize("name", sorted(set(ripplevec.__all__) - {"__version__", "Client", "AsyncClient"}))
def test_public_name_is_imported_from_its_module(name: str) -> None:
    assert getattr(ripplevec, name).__module__ == ripplevec._MODULES[name]


def test_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'ripplevec' has no attribute 'Embeder'"):
        _ = ripplevec.Embeder  # type: ignore[attr-defined]
