from __future__ import annotations

import logging
import os
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ripplevec import Batch, Embedder
from ripplevec.durability import snapshot
from ripplevec.durability.snapshot import SnapshotStore, SnapshotWriter
from ripplevec.engine.digest import StateSnapshot
from ripplevec.engine.engine import Engine
from ripplevec.errors import FormatError


def make_engine(batches: int = 1, **parameters: Any) -> Engine:
    model = Embedder(**{"dim": 3, "start_size": 6, "threads": 1, **parameters})
    for number in range(batches):
        model.partial_fit([(number, number + 1), (number, number + 3), ("a", number)])
    return model.engine


def test_snapshot_store_write_then_read_restores_state(tmp_path: Path) -> None:
    snapshots, engine = SnapshotStore(tmp_path / "snapshots"), make_engine(6)
    assert snapshots.sequences == []
    snapshots.write(engine.snapshot())
    snapshot = snapshots.read(6)
    assert (snapshot.sequence, snapshot.digest) == (6, engine.digest())
    restored = make_engine(0)
    restored.restore(snapshot.arrays)
    assert restored.digest() == engine.digest()
    assert snapshots.describe(6)["digest"] == engine.digest()
    assert snapshots.path(6).name == "000000000006"


def test_snapshot_store_write_keeps_newest_two(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path)
    for batches in (1, 2, 9, 12):
        snapshots.write(make_engine(batches).snapshot())
    assert snapshots.sequences == [12, 9]


def test_state_snapshot_ignores_later_batches(tmp_path: Path) -> None:
    engine = make_engine(6)
    digest, state = engine.digest(), engine.snapshot()
    engine.apply(Batch.from_any([(50, 1), (51, 2)]))
    assert state.digest() == digest != engine.digest()
    assert state.sequence == 6


@pytest.mark.parametrize("parameters", [{}, {"rule": "paper"}, {"directed": True, "duplicates": "replace"}])
def test_state_snapshot_digest_equals_engine_digest(parameters: dict[str, Any]) -> None:
    engine = make_engine(6, **parameters)
    assert engine.snapshot().digest() == engine.digest()


def test_snapshot_store_read_renamed_folder_raises_format_error(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path)
    snapshots.write(make_engine(2).snapshot())
    snapshots.path(2).rename(snapshots.path(3))
    with pytest.raises(FormatError, match="snapshot of batch 3"):
        snapshots.read(3)


def test_snapshot_store_removes_temporary_files_and_quarantines(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path)
    snapshots.remove_temporary_files()
    snapshots.write(make_engine(2).snapshot())
    (tmp_path / ".000000000003.ripplevec-new").mkdir()
    (tmp_path / ".000000000003.ripplevec-new" / "half.npy").touch()
    snapshots.remove_temporary_files()
    assert [path.name for path in tmp_path.iterdir()] == ["000000000002"]
    for _ in range(2):
        assert snapshots.quarantine(2).name == "000000000002.damaged"
        assert snapshots.sequences == []
        snapshots.write(make_engine(2).snapshot())


def test_snapshot_writer_runs_in_background_and_calls_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started, proceed, calls = threading.Event(), threading.Event(), []

    def slow_write_arrays(*given: Any, **options: Any) -> None:
        started.set()
        assert proceed.wait(20)
        write_arrays(*given, **options)

    write_arrays = snapshot.write_arrays
    monkeypatch.setattr(snapshot, "write_arrays", slow_write_arrays)
    writer = SnapshotWriter(SnapshotStore(tmp_path), lambda: calls.append(1))
    assert not writer.busy
    done = writer.submit(make_engine(2).snapshot())
    assert started.wait(20)
    assert writer.busy
    assert not calls
    proceed.set()
    done.result()
    writer.close()
    assert (calls, writer.busy, writer.snapshots.sequences) == ([1], False, [2])


def test_snapshot_writer_failed_write_is_reported_and_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def raise_disk_full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    writer = SnapshotWriter(SnapshotStore(tmp_path), lambda: None)
    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR):
        patch.setattr(np, "save", raise_disk_full)
        with pytest.raises(OSError, match="No space"):
            writer.submit(make_engine(2).snapshot()).result()
    assert isinstance(writer.failure, OSError)
    assert "snapshot failed" in caplog.text
    assert "batch=2" in caplog.text
    assert list(tmp_path.iterdir()) == []
    writer.submit(make_engine(2).snapshot()).result()
    assert writer.failure is None
    writer.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has thread priorities")
def test_snapshot_writer_thread_has_lower_priority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    priorities: list[int] = []

    def record_priority(self: SnapshotStore, state: StateSnapshot) -> None:
        priorities.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    monkeypatch.setattr(SnapshotStore, "write", record_priority)
    own_priority = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    writer = SnapshotWriter(SnapshotStore(tmp_path), lambda: None)
    writer.submit(make_engine().snapshot()).result()
    writer.close()
    assert priorities[0] > own_priority
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == own_priority


def test_snapshot_store_ignores_other_files_and_links(tmp_path: Path) -> None:
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
        snapshots.write(make_engine(batches).snapshot())
    assert snapshots.sequences == [4, 3]
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert (tmp_path / "snapshots" / "000000000001.damaged").is_symlink()


def test_snapshot_store_symlinked_directory_raises_format_error(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "snapshots").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FormatError, match="expected a directory, got a symbolic link"):
        assert SnapshotStore(tmp_path / "snapshots").sequences


def test_snapshot_store_write_fsyncs_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr("ripplevec.util.checked_directory.fsync_directory", flushed.append)
    SnapshotStore(tmp_path / "snapshots").write(make_engine(1).snapshot())
    assert flushed[0] == tmp_path
    assert flushed[-1] == tmp_path / "snapshots"
