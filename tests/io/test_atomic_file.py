from __future__ import annotations

import os
from contextlib import suppress

from ripplevec.io.atomic_file import atomic_write


def test_atomic_write_after_error_keeps_old_file(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    with suppress(KeyboardInterrupt), atomic_write(path) as part:
        part.write_text("new")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


def test_atomic_write_gives_default_permissions(tmp_path):
    (tmp_path / "default").write_text("")
    with atomic_write(tmp_path / "x") as part:
        part.write_text("new")
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "default").stat().st_mode
