from __future__ import annotations

from pathlib import Path

import pytest

from ripplevec.durability.last_batch_marker import Marker


def test_marker_says_the_last_number_it_was_given(tmp_path: Path) -> None:
    marker = Marker(tmp_path / "last")
    assert marker.read() == 0
    for number in (1, 70_000, 12):
        marker.write(number, durably=number == 12)
        assert Marker(tmp_path / "last").read() == number
    marker.close()
    marker.close()


@pytest.mark.parametrize("data", [b"", b"\0" * 24, b"x" * 24, b"\1" + bytes(7)])
def test_marker_that_is_damaged_says_nothing(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "last").write_bytes(data)
    assert Marker(tmp_path / "last").read() == 0


def test_marker_that_is_a_link_is_neither_read_nor_written(tmp_path: Path) -> None:
    other = Marker(tmp_path / "other")
    other.write(5)
    other.close()
    (tmp_path / "last").symlink_to(tmp_path / "other")
    marker = Marker(tmp_path / "last")
    marker.write(9)
    assert (marker.read(), other.read()) == (0, 5)
    with pytest.raises(OSError, match="symbolic links"):
        marker.write(9, durably=True)
