from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ripplevec.durability.directory_lock import DirectoryLock, lock_holder
from ripplevec.errors import StateError


def test_one_at_a_time(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path / "new" / "one")
    assert lock_holder(tmp_path / "new" / "one") == f"process {os.getpid()}"
    with pytest.raises(StateError, match=f"in use by process {os.getpid()}"):
        DirectoryLock(tmp_path / "new" / "one")
    lock.release()
    assert lock_holder(tmp_path / "new" / "one") is None
    DirectoryLock(tmp_path / "new" / "one").release()
    assert lock_holder(tmp_path / "nothing") is None


def test_another_process_is_named_and_its_death_frees_the_lock(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys, time\nfrom ripplevec.durability.directory_lock import DirectoryLock\n"
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
    for place in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/1/ripplevec")):
        with pytest.raises(StateError, match=r"cannot be written to .*ripplevec state inspect"):
            DirectoryLock(place)


def test_lock_whose_file_cannot_be_shortened_is_held_and_freed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", fail)
        lock = DirectoryLock(tmp_path)
        with pytest.raises(StateError, match="in use"):
            DirectoryLock(tmp_path)
        lock.release()
    DirectoryLock(tmp_path).release()


def test_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("kept")
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(StateError, match="cannot be written to"):
        DirectoryLock(tmp_path / "state")
    assert (tmp_path / "precious").read_text() == "kept"


FORKS = """
import os, pathlib, sys, time
from ripplevec.durability.directory_lock import DirectoryLock
lock = DirectoryLock(pathlib.Path(sys.argv[1]))
child = os.fork()
if child == 0:
    lock.release()  # the parent's lock stays as it is
    time.sleep(60)
print(child, flush=True)
sys.stdin.readline()
os._exit(0)
"""


def test_lock_of_a_process_that_has_forked_ends_with_it(tmp_path: Path) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", FORKS, str(tmp_path)], **pipes) as parent:  # type: ignore[call-overload]
        assert parent.stdout is not None
        assert parent.stdin is not None
        child = int(parent.stdout.readline())
        try:
            with pytest.raises(StateError, match=f"in use by process {parent.pid}"):
                DirectoryLock(tmp_path)
            parent.stdin.write(b"\n")
            parent.stdin.flush()
            parent.wait(20)
            os.kill(child, 0)  # it lives, and does not hold the lock
            DirectoryLock(tmp_path).release()
        finally:
            os.kill(child, 9)


def test_lock_makes_every_new_directory_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr("ripplevec.util.checked_directory.flush_directory", flushed.append)
    DirectoryLock(tmp_path / "a" / "b").release()
    assert flushed == [tmp_path, tmp_path / "a"]
