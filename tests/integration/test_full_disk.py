"""Sessions on a full and on a read-only file system: batches are rejected, and accepted again afterward."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.batch import Batch
from ripplevec.durability.maintenance import inspect_directory, verify_directory
from ripplevec.durability.session import Session
from ripplevec.errors import StateError
from ripplevec.io.registry import sink_to, stream_from

PARAMETERS: dict[str, Any] = {"dim": 3, "start_size": 6, "anchor_growth": 0.3, "threads": 1}
MEBIBYTES = 6
BATCHES = 120


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a separate file system of a few mebibytes."""
    mount_point = tmp_path / "disk"
    mount_point.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={MEBIBYTES}m", "tmpfs", str(mount_point)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("the command `mount` is not available")
    if mounted.returncode:
        pytest.skip(f"mounting a file system is not permitted: {mounted.stderr.strip()}")
    yield mount_point
    subprocess.run(["umount", "--lazy", str(mount_point)], check=True)


@pytest.fixture(autouse=True)
def small_wal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Move the write-ahead log into the journal often, so that this also happens on a full disk."""
    monkeypatch.setattr("ripplevec.durability.journal_database.CHECKPOINT_PAGES", 50)


def make_batch(number: int) -> Batch:
    """Return a batch of about ten kilobytes."""
    vertices = [f"v{number * 17 % 97 + row}-{'x' * 60}" for row in range(60)]
    return Batch.of(vertices, [f"hub{(number + row) % 9}" for row in range(60)])


def fill_disk(ballast: Path, free_bytes: int) -> None:
    """Fill the disk with one file, up to a number of free bytes."""
    disk = os.statvfs(ballast.parent)
    ballast.write_bytes(bytes(max(disk.f_bavail * disk.f_frsize - free_bytes, 0)))


def wait_for_snapshot_failure(session: Session) -> None:
    deadline = time.monotonic() + 60
    while session.snapshot_failure is None and time.monotonic() < deadline:
        time.sleep(0.01)


def uninterrupted_digest(directory: Path) -> str:
    with Session(directory, **PARAMETERS) as session:
        for number in range(BATCHES):
            session.apply(make_batch(number))
        return session.model.digest()


def apply_until_full(session: Session, first: int) -> int:
    """Apply batches until one does not fit, and return its number; check that nothing of it was saved."""
    for number in range(first, BATCHES):
        before, message = session.model.digest(), None
        try:
            session.apply(make_batch(number), key=f"k{number}")
        except StateError as error:
            message = str(error)
        if message is not None:
            assert "full). Nothing was saved; free some space and try again." in message
            assert (session.model.digest(), session.find_key(f"k{number}")) == (before, None)
            return number
    raise AssertionError("the disk was never full")


def test_session_full_disk_rejects_batches_until_space_is_freed(small_disk: Path, tmp_path: Path) -> None:
    ballast = small_disk / "ballast"
    with Session(small_disk / "state", snapshot_every=10**9, **PARAMETERS) as session:
        fill_disk(ballast, 400_000)
        first = apply_until_full(session, 0)
        assert first > 0
        assert apply_until_full(session, first) == first  # it still does not fit
        with pytest.raises(StateError, match="No space left"):
            session.snapshot()
        assert session.snapshot_failure is not None
        ballast.unlink()
        session.apply(make_batch(first), key=f"k{first}")
        assert session.snapshot() == first + 1
        assert session.snapshot_failure is None
        fill_disk(ballast, 200_000)
        second = apply_until_full(session, first + 1)
        digest = session.model.digest()
    with Session(small_disk / "state", snapshot_every=10**9) as session:  # opened while the disk is full
        assert (session.model.digest(), session.model.sequence) == (digest, second)
        assert session.recovery.snapshot == first + 1
        assert apply_until_full(session, second) == second
        ballast.unlink()
        for number in range(second, BATCHES):
            session.apply(make_batch(number), key=f"k{number}")
        digest = session.model.digest()
    assert digest == uninterrupted_digest(tmp_path / "undisturbed")


def test_session_snapshot_that_does_not_fit_loses_no_batch(small_disk: Path, tmp_path: Path) -> None:
    with Session(small_disk / "state", snapshot_every=10**9, **PARAMETERS) as session:
        for number in range(BATCHES // 2):
            session.apply(make_batch(number))
        fill_disk(
            small_disk / "ballast", 60_000
        )  # enough for a batch, but a snapshot has more files than these bytes have pages
        session.snapshot_every = 1
        session.apply(make_batch(BATCHES // 2))
        wait_for_snapshot_failure(session)
        assert "No space left" in str(session.snapshot_failure)
        (small_disk / "ballast").unlink()
        for number in range(BATCHES // 2 + 1, BATCHES):
            session.apply(make_batch(number))
        session.snapshot()
        assert session.snapshot_failure is None
        digest = session.model.digest()
    assert list((small_disk / "state" / "snapshots").glob(".*")) == []
    with Session(small_disk / "state") as session:
        assert (session.model.digest(), session.recovery.replayed) == (digest, 0)
    assert digest == uninterrupted_digest(tmp_path / "undisturbed")


def run_stream(session: Session, edges: Path, changes: Path) -> None:
    source, sink = stream_from(edges, batch_size=20), sink_to(changes)
    try:
        session.run(source, [sink])
    finally:
        source.close()
        with suppress(OSError):  # the rest does not fit either
            sink.close()


def read_changes(changes: Path) -> dict[Any, str]:
    """Read the lines by sequence number and part; repeated lines must be equal."""
    lines: dict[Any, str] = {}
    for line in changes.read_text().splitlines():
        message = json.loads(line)
        assert lines.setdefault((message["sequence"], message.get("part")), line) == line
    return lines


def test_run_full_disk_of_sink_or_journal_can_be_continued(small_disk: Path, tmp_path: Path) -> None:
    edges, ballast = tmp_path / "edges.csv", small_disk / "ballast"
    edges.write_text("".join(f"v{7 * number % 997}{'x' * 50},hub{number % 50}\n" for number in range(3000)))
    with Session(tmp_path / "undisturbed", **PARAMETERS) as session:
        run_stream(session, edges, tmp_path / "undisturbed.jsonl")
        expected = session.model.digest()
    with Session(tmp_path / "state", **PARAMETERS) as session:
        fill_disk(ballast, 100_000)
        with pytest.raises(OSError, match="No space left"):
            run_stream(session, edges, small_disk / "changes.jsonl")
        ballast.unlink()
        run_stream(session, edges, small_disk / "changes.jsonl")
        assert session.model.digest() == expected
    assert read_changes(small_disk / "changes.jsonl") == read_changes(tmp_path / "undisturbed.jsonl")
    (small_disk / "changes.jsonl").unlink()
    with Session(small_disk / "state", **PARAMETERS) as session:
        fill_disk(ballast, 200_000)
        with pytest.raises(StateError, match="free some space"):
            run_stream(session, edges, tmp_path / "changes.jsonl")
        ballast.unlink()
        run_stream(session, edges, tmp_path / "changes.jsonl")
        assert session.model.digest() == expected
    assert read_changes(tmp_path / "changes.jsonl") == read_changes(tmp_path / "undisturbed.jsonl")


def test_session_disk_without_free_bytes_raises_until_space_is_freed(small_disk: Path) -> None:
    with Session(small_disk / "state", **PARAMETERS) as session:
        session.apply(make_batch(0))
        digest = session.model.digest()
    fill_disk(small_disk / "ballast", 0)
    with pytest.raises(StateError, match="free some space"):
        Session(small_disk / "other", **PARAMETERS)
    with pytest.raises(StateError, match="free some space"):
        Session(small_disk / "state")
    (small_disk / "ballast").unlink()
    Session(small_disk / "other", **PARAMETERS).close()
    with Session(small_disk / "state") as session:
        assert session.model.digest() == digest


def test_session_read_only_disk_raises_but_can_be_inspected(small_disk: Path) -> None:
    with Session(small_disk / "state", **PARAMETERS) as session:
        session.apply(make_batch(0))
        digest = session.model.digest()
        shutil.copytree(small_disk / "state", small_disk / "killed", ignore=shutil.ignore_patterns("*-shm"))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StateError, match=r"expected a writable directory.*\(Read-only file system\)"):
        Session(small_disk / "state")
    assert inspect_directory(small_disk / "state")["journal"]["last"] == 1
    result = verify_directory(small_disk / "state")
    assert (result["faults"], result["digest"]) == ([], digest)
    with pytest.raises(StateError, match="copy the state to one to inspect it"):  # the log is not yet in the main file
        inspect_directory(small_disk / "killed")


OPEN_AS_NOBODY = (
    "import os, sys, ripplevec.durability.session; os.setuid(65534); ripplevec.durability.session.Session(sys.argv[1])"
)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the user id")
def test_session_directory_of_other_user_raises_state_error(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:  # other users cannot read tmp_path
        Path(folder).chmod(0o755)
        Session(Path(folder) / "state", **PARAMETERS).close()
        process = subprocess.run(
            [sys.executable, "-c", OPEN_AS_NOBODY, f"{folder}/state"], capture_output=True, text=True
        )
    assert process.returncode != 0
    assert "expected a writable directory, got an error (Permission denied)" in process.stderr
    assert "A session needs a directory of its own" in process.stderr


def test_embedder_full_storage_disk_leaves_model_unchanged(small_disk: Path) -> None:
    rng, later = np.random.default_rng(0), np.repeat(np.arange(1, 500), 3)
    earlier = (rng.random(later.size) * later).astype(np.int64)
    model = Embedder(dim=32, threads=1, anchor_growth=0, storage_dir=small_disk).fit(np.stack([later, earlier], axis=1))
    before = model.digest()
    many = np.stack([np.arange(1_000, 101_000), rng.integers(0, 500, 100_000)], axis=1)
    with pytest.raises(OSError, match="No space left"):
        model.partial_fit(many)
    assert model.digest() == before
    model.check()
    model.partial_fit(many[:100])
    assert len(model) == 600
