from __future__ import annotations

from pathlib import Path

import pytest

from ripplevec.durability.last_batch_marker import LastBatchMarker


def test_marker_write_then_read_returns_last_number(tmp_path: Path) -> None:
    marker = LastBatchMarker(tmp_path / "last")
    assert marker.read() == 0
    for number in (1, 70_000, 12):
        marker.write(number, durably=number == 12)
        assert LastBatchMarker(tmp_path / "last").read() == number
    marker.close()
    marker.close()


@pytest.mark.parametrize("data", [b"", b"\0" * 24, b"x" * 24, b"\1" + bytes(7)])
def test_marker_damaged_file_reads_zero(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "last").write_bytes(data)
    assert LastBatchMarker(tmp_path / "last").read() == 0


def test_marker_symlink_is_neither_read_nor_written(tmp_path: Path) -> None:
    other = LastBatchMarker(tmp_path / "other")
    other.write(5)
    other.close()
    (tmp_path / "last").symlink_to(tmp_path / "other")
    marker = LastBatchMarker(tmp_path / "last")
    marker.write(9)
    assert (marker.read(), other.read()) == (0, 5)
    with pytest.raises(OSError, match="symbolic links"):
        marker.write(9, durably=True)
