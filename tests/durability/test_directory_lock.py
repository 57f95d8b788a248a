from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ripplevec.durability.directory_lock import DirectoryLock, lock_holder
from ripplevec.errors import StateError


def test_directory_lock_second_holder_raises_state_error(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path / "new" / "one")
    assert lock_holder(tmp_path / "new" / "one") == f"process {os.getpid()}"
    with pytest.raises(StateError, match=f"in use by process {os.getpid()}"):
        DirectoryLock(tmp_path / "new" / "one")
    lock.release()
    assert lock_holder(tmp_path / "new" / "one") is None
    DirectoryLock(tmp_path / "new" / "one").release()
    assert lock_holder(tmp_path / "nothing") is None


def test_directory_lock_killed_process_frees_directory(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys, time\nfrom ripplevec.durability.directory_lock import DirectoryLock\n"
        "lock = DirectoryLock(pathlib.Path(sys.argv[1]))\nprint('held', flush=True)\ntime.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StateError, match=f"in use by process {holder.pid}"):
            DirectoryLock(tmp_path)
        holder.kill()
    DirectoryLock(tmp_path).release()


def test_directory_lock_unwritable_path_raises_state_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/1/ripplevec")):
        with pytest.raises(StateError, match=r"expected a writable directory.*ripplevec state inspect"):
            DirectoryLock(path)


def test_directory_lock_failing_ftruncate_still_locks_and_unlocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", fail)
        lock = DirectoryLock(tmp_path)
        with pytest.raises(StateError, match="in use"):
            DirectoryLock(tmp_path)
        lock.release()
    DirectoryLock(tmp_path).release()


def test_directory_lock_symlinked_lock_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other_file").write_text("content")
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "lock").symlink_to(tmp_path / "other_file")
    with pytest.raises(StateError, match="expected a writable directory"):
        DirectoryLock(tmp_path / "state")
    assert (tmp_path / "other_file").read_text() == "content"


FORKING_HOLDER = """
import os, pathlib, sys, time
from ripplevec.durability.directory_lock import DirectoryLock
lock = DirectoryLock(pathlib.Path(sys.argv[1]))
child = os.fork()
if child == 0:
    lock.release()  # must not unlock the parent's lock
    time.sleep(60)
print(child, flush=True)
sys.stdin.readline()
os._exit(0)
"""


def test_directory_lock_forked_child_does_not_keep_lock(tmp_path: Path) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", FORKING_HOLDER, str(tmp_path)], **pipes) as parent:  # type: ignore[call-overload]
        assert parent.stdout is not None
        assert parent.stdin is not None
        child = int(parent.stdout.readline())
        try:
            with pytest.raises(StateError, match=f"in use by process {parent.pid}"):
                DirectoryLock(tmp_path)
            parent.stdin.write(b"\n")
            parent.stdin.flush()
            parent.wait(20)
            os.kill(child, 0)  # the child is alive but does not hold the lock
            DirectoryLock(tmp_path).release()
        finally:
            os.kill(child, 9)


def test_directory_lock_new_directories_are_fsynced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr("ripplevec.util.checked_directory.fsync_directory", flushed.append)
    DirectoryLock(tmp_path / "a" / "b").release()
    assert flushed == [tmp_path, tmp_path / "a"]


WITHOUT_FCNTL = """
import os, sys
import ripplevec, ripplevec.errors
sys.modules["fcntl"] = None  # importing it fails, as on Windows
del os.fork, os.register_at_fork, os.O_NOFOLLOW
from ripplevec.durability.directory_lock import lock_holder
print(lock_holder(sys.argv[1]))
try:
    ripplevec.Session(sys.argv[1], dim=8)
except ripplevec.errors.StateError as error:
    print(error)
"""


def test_session_without_fcntl_says_that_the_system_is_not_supported(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    done = subprocess.run([sys.executable, "-c", WITHOUT_FCNTL, folder], capture_output=True, text=True, check=False)
    holder, _, error = done.stdout.partition("\n")
    assert holder == "None", done.stderr
    assert "cannot lock its directory on this system: expected Linux or macOS" in error
    assert not folder.exists()
