from __future__ import annotations

import logging
import os
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.durability import snapshot
from ripplevec.durability.snapshot import SnapshotStore, SnapshotWriter
from ripplevec.engine.digest import StateSnapshot
from ripplevec.engine.engine import Engine
from ripplevec.errors import FormatError


def engine(batches: int = 1, **parameters: Any) -> Engine:
    model = Embedder(**{"dim": 3, "start_size": 6, "threads": 1, **parameters})
    for number in range(batches):
        model.partial_fit([(number, number + 1), (number, number + 3), ("a", number)])
    return model._engine


def test_a_snapshot_is_the_state_with_its_digest(tmp_path: Path) -> None:
    snapshots, one = SnapshotStore(tmp_path / "snapshots"), engine(6)
    assert snapshots.sequences == []
    snapshots.write(one.copy())
    back = snapshots.read(6)
    assert (back.sequence, back.digest) == (6, one.digest())
    other = engine(0)
    other.restore(back.arrays)
    assert other.digest() == one.digest()
    assert snapshots.describe(6)["digest"] == one.digest()
    assert snapshots.path(6).name == "000000000006"


def test_the_last_two_are_kept(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path)
    for batches in (1, 2, 9, 12):
        snapshots.write(engine(batches).copy())
    assert snapshots.sequences == [12, 9]


def test_a_copy_does_not_see_what_comes_later(tmp_path: Path) -> None:
    one = engine(6)
    digest, copy = one.digest(), one.copy()
    model = Embedder(dim=3, start_size=6, threads=1)
    model._engine = one
    model.partial_fit([(50, 1), (51, 2)])
    assert copy.digest() == digest != model.digest()
    assert copy.sequence == 6


@pytest.mark.parametrize("parameters", [{}, {"rule": "paper"}, {"directed": True, "duplicates": "replace"}])
def test_the_digest_of_a_copy_is_that_of_the_engine(parameters: dict[str, Any]) -> None:
    one = engine(6, **parameters)
    assert one.copy().digest() == one.digest()


def test_a_snapshot_under_another_name_is_refused(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path)
    snapshots.write(engine(2).copy())
    snapshots.path(2).rename(snapshots.path(3))
    with pytest.raises(FormatError, match="snapshot of batch 3"):
        snapshots.read(3)


def test_what_was_interrupted_is_cleared_and_the_damaged_is_kept_aside(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path)
    snapshots.remove_temporary_files()
    snapshots.write(engine(2).copy())
    (tmp_path / ".000000000003.ripplevec-new").mkdir()
    (tmp_path / ".000000000003.ripplevec-new" / "half.npy").touch()
    snapshots.remove_temporary_files()
    assert [path.name for path in tmp_path.iterdir()] == ["000000000002"]
    for _ in range(2):
        assert snapshots.quarantine(2).name == "000000000002.damaged"
        assert snapshots.sequences == []
        snapshots.write(engine(2).copy())


def test_a_writer_works_in_the_background_and_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on, told = threading.Event(), threading.Event(), []

    def slow(*given: Any, **options: Any) -> None:
        begun.set()
        assert go_on.wait(20)
        write_arrays(*given, **options)

    write_arrays = snapshot.write_arrays
    monkeypatch.setattr(snapshot, "write_arrays", slow)
    writer = SnapshotWriter(SnapshotStore(tmp_path), lambda: told.append(1))
    assert not writer.busy
    done = writer.submit(engine(2).copy())
    assert begun.wait(20)
    assert writer.busy
    assert not told
    go_on.set()
    done.result()
    writer.close()
    assert (told, writer.busy, writer.snapshots.sequences) == ([1], False, [2])


def test_a_snapshot_that_cannot_be_written_is_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    writer = SnapshotWriter(SnapshotStore(tmp_path), lambda: None)
    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR):
        patch.setattr(np, "save", full)
        with pytest.raises(OSError, match="No space"):
            writer.submit(engine(2).copy()).result()
    assert isinstance(writer.failure, OSError)
    assert "no snapshot of batch 2" in caplog.text
    assert list(tmp_path.iterdir()) == []
    writer.submit(engine(2).copy()).result()
    assert writer.failure is None
    writer.close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a thread has no priority of its own")
def test_a_snapshot_stands_back_behind_other_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def noting(self: SnapshotStore, copy: StateSnapshot) -> None:
        seen.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    monkeypatch.setattr(SnapshotStore, "write", noting)
    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    writer = SnapshotWriter(SnapshotStore(tmp_path), lambda: None)
    writer.submit(engine().copy()).result()
    writer.close()
    assert seen[0] > own
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == own


def test_odd_names_and_links_among_snapshots_are_left_alone(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots")
    for name in ("7", "²", "٣٣٣٣٣٣٣٣٣٣٣٣", "0000000000001", "notes", "000000000005.damaged"):
        (tmp_path / "snapshots" / name).mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "snapshots" / "000000000001").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "snapshots" / "000000000002").write_text("a file")
    assert snapshots.sequences == []
    (tmp_path / "snapshots" / ".000000000003.ripplevec-new").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "snapshots" / ".000000000003.ripplevec-old").write_text("a file")
    snapshots.remove_temporary_files()
    for batches in (1, 2, 3, 4):
        snapshots.write(engine(batches).copy())
    assert snapshots.sequences == [4, 3]
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert (tmp_path / "snapshots" / "000000000001.damaged").is_symlink()


def test_snapshots_that_are_a_link_are_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "snapshots").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FormatError, match="expected a directory, got a link"):
        assert SnapshotStore(tmp_path / "snapshots").sequences


def test_write_of_a_snapshot_makes_its_folders_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr("ripplevec.util.checked_directory.fsync_directory", flushed.append)
    SnapshotStore(tmp_path / "snapshots").write(engine(1).copy())
    assert flushed[0] == tmp_path
    assert flushed[-1] == tmp_path / "snapshots"
