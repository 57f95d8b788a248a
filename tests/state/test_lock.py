from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ripplet.errors import StateError
from ripplet.state.lock import DirectoryLock, holder


def test_one_at_a_time(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path / "new" / "one")
    assert holder(tmp_path / "new" / "one") == f"process {os.getpid()}"
    with pytest.raises(StateError, match=f"in use by process {os.getpid()}"):
        DirectoryLock(tmp_path / "new" / "one")
    lock.release()
    assert holder(tmp_path / "new" / "one") is None
    DirectoryLock(tmp_path / "new" / "one").release()
    assert holder(tmp_path / "nothing") is None


def test_another_process_is_named_and_its_death_frees_the_lock(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys, time\nfrom ripplet.state.lock import DirectoryLock\n"
        "lock = DirectoryLock(pathlib.Path(sys.argv[1]))\nprint('held', flush=True)\ntime.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(StateError, match=f"in use by process {other.pid}"):
            DirectoryLock(tmp_path)
        other.kill()
    DirectoryLock(tmp_path).release()


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/1/ripplet")):
        with pytest.raises(StateError, match=r"cannot be written to .*ripplet state inspect"):
            DirectoryLock(place)
