"""A file system that is really full, and one that really may not be written to: refused, said, and gone on with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.batch import Batch
from ripplevec.durability.inspection import inspect_directory, verify_directory
from ripplevec.durability.session import Session
from ripplevec.errors import StateError
from ripplevec.io.registry import sink_to, stream_from

PARAMETERS: dict[str, Any] = {"dim": 3, "start_size": 6, "anchor_growth": 0.3, "anchor_lag": 0.05, "threads": 1}
MEBIBYTES = 6
BATCHES = 120


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few mebibytes of its own."""
    where = tmp_path / "disk"
    where.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={MEBIBYTES}m", "tmpfs", str(where)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no command `mount` here")
    if mounted.returncode:
        pytest.skip(f"a file system may not be mounted here: {mounted.stderr.strip()}")
    yield where
    subprocess.run(["umount", "--lazy", str(where)], check=True)


@pytest.fixture(autouse=True)
def short_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the log moved into the journal often, so that this meets the full disk too."""
    monkeypatch.setattr("ripplevec.durability.journal_database._PAGES", 50)


def batch(number: int) -> Batch:
    """A batch of about ten kilobytes."""
    names = [f"v{number * 17 % 97 + row}-{'x' * 60}" for row in range(60)]
    return Batch.of(names, [f"hub{(number + row) % 9}" for row in range(60)])


def fill(ballast: Path, leave: int) -> None:
    """Take up the disk but for so many bytes."""
    left = os.statvfs(ballast.parent)
    ballast.write_bytes(bytes(max(left.f_bavail * left.f_frsize - leave, 0)))


def uninterrupted(directory: Path) -> str:
    with Session(directory, **PARAMETERS) as session:
        for number in range(BATCHES):
            session.apply(batch(number))
        return session.model.digest()


def refused(session: Session, first: int) -> int:
    """Apply batches until one does not fit; its number. Nothing of it is kept."""
    for number in range(first, BATCHES):
        before, refusal = session.model.digest(), None
        try:
            session.apply(batch(number), key=f"k{number}")
        except StateError as error:
            refusal = str(error)
        if refusal is not None:
            assert "full); nothing of it was kept: free some space and try again" in refusal
            assert (session.model.digest(), session.find_key(f"k{number}")) == (before, None)
            return number
    raise AssertionError("the disk was never full")


def test_batches_are_refused_while_the_disk_is_full_and_go_on_behind_it(small_disk: Path, tmp_path: Path) -> None:
    ballast = small_disk / "ballast"
    with Session(small_disk / "state", snapshot_every=10**9, **PARAMETERS) as session:
        fill(ballast, 400_000)
        first = refused(session, 0)
        assert first > 0
        assert refused(session, first) == first  # still
        with pytest.raises(StateError, match="No space left"):
            session.snapshot()
        assert session.snapshot_failure is not None
        ballast.unlink()
        session.apply(batch(first), key=f"k{first}")
        assert session.snapshot() == first + 1
        assert session.snapshot_failure is None
        fill(ballast, 200_000)
        second = refused(session, first + 1)
        digest = session.model.digest()
    with Session(small_disk / "state", snapshot_every=10**9) as session:  # opened while it is full
        assert (session.model.digest(), session.model.sequence) == (digest, second)
        assert session.recovery.snapshot == first + 1
        assert refused(session, second) == second
        ballast.unlink()
        for number in range(second, BATCHES):
            session.apply(batch(number), key=f"k{number}")
        digest = session.model.digest()
    assert digest == uninterrupted(tmp_path / "calm")


def test_a_snapshot_that_does_not_fit_costs_no_batch(small_disk: Path, tmp_path: Path) -> None:
    with Session(small_disk / "state", snapshot_every=10**9, **PARAMETERS) as session:
        for number in range(BATCHES // 2):
            session.apply(batch(number))
        fill(small_disk / "ballast", 60_000)  # enough for a batch; a snapshot has more files than that has pages
        session.snapshot_every = 1
        session.apply(batch(BATCHES // 2))
        assert "No space left" in str(session._writer._current.exception())  # type: ignore[union-attr]
        assert session.snapshot_failure is not None
        (small_disk / "ballast").unlink()
        for number in range(BATCHES // 2 + 1, BATCHES):
            session.apply(batch(number))
        session.snapshot()
        assert session.snapshot_failure is None
        digest = session.model.digest()
    assert list((small_disk / "state" / "snapshots").glob(".*")) == []
    with Session(small_disk / "state") as session:
        assert (session.model.digest(), session.recovery.replayed) == (digest, 0)
    assert digest == uninterrupted(tmp_path / "calm")


def run(session: Session, edges: Path, changes: Path) -> None:
    source, sink = stream_from(edges, batch_size=20), sink_to(changes)
    try:
        session.run(source, [sink])
    finally:
        source.close()
        with suppress(OSError):  # what is left to write does not fit either
            sink.close()


def told(changes: Path) -> dict[Any, str]:
    """What a follower makes of the lines: those that are written again have a sequence number that it knows."""
    find_key: dict[Any, str] = {}
    for line in changes.read_text().splitlines():
        message = json.loads(line)
        assert known.setdefault((message["sequence"], message.get("part")), line) == line
    return known


def test_a_run_whose_sink_and_then_whose_journal_is_out_of_room_is_taken_up_again(
    small_disk: Path, tmp_path: Path
) -> None:
    edges, ballast = tmp_path / "edges.csv", small_disk / "ballast"
    edges.write_text("".join(f"v{7 * number % 997}{'x' * 50},hub{number % 50}\n" for number in range(3000)))
    with Session(tmp_path / "calm", **PARAMETERS) as session:
        run(session, edges, tmp_path / "calm.jsonl")
        expected = session.model.digest()
    with Session(tmp_path / "state", **PARAMETERS) as session:
        fill(ballast, 100_000)
        with pytest.raises(OSError, match="No space left"):
            run(session, edges, small_disk / "changes.jsonl")
        ballast.unlink()
        run(session, edges, small_disk / "changes.jsonl")
        assert session.model.digest() == expected
    assert told(small_disk / "changes.jsonl") == told(tmp_path / "calm.jsonl")
    (small_disk / "changes.jsonl").unlink()
    with Session(small_disk / "state", **PARAMETERS) as session:
        fill(ballast, 200_000)
        with pytest.raises(StateError, match="free some space"):
            run(session, edges, tmp_path / "changes.jsonl")
        ballast.unlink()
        run(session, edges, tmp_path / "changes.jsonl")
        assert session.model.digest() == expected
    assert told(tmp_path / "changes.jsonl") == told(tmp_path / "calm.jsonl")


def test_a_directory_on_a_disk_without_a_byte_left(small_disk: Path) -> None:
    with Session(small_disk / "state", **PARAMETERS) as session:
        session.apply(batch(0))
        digest = session.model.digest()
    fill(small_disk / "ballast", 0)
    with pytest.raises(StateError, match="free some space"):
        Session(small_disk / "other", **PARAMETERS)
    with pytest.raises(StateError, match="free some space"):
        Session(small_disk / "state")
    (small_disk / "ballast").unlink()
    Session(small_disk / "other", **PARAMETERS).close()
    with Session(small_disk / "state") as session:
        assert session.model.digest() == digest


def test_a_disk_that_may_only_be_read(small_disk: Path) -> None:
    with Session(small_disk / "state", **PARAMETERS) as session:
        session.apply(batch(0))
        digest = session.model.digest()
        shutil.copytree(small_disk / "state", small_disk / "killed", ignore=shutil.ignore_patterns("*-shm"))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StateError, match=r"cannot be written to \(Read-only file system\)"):
        Session(small_disk / "state")
    assert inspect_directory(small_disk / "state")["journal"]["last"] == 1
    found = verify_directory(small_disk / "state")
    assert (found["faults"], found["digest"]) == ([], digest)
    with pytest.raises(StateError, match="copy it to one to look into it"):  # its log has not been taken in
        inspect_directory(small_disk / "killed")


OPENED = (
    "import os, sys, ripplevec.durability.session; os.setuid(65534); ripplevec.durability.session.Session(sys.argv[1])"
)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as somebody else")
def test_a_directory_of_somebody_else(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:  # others may not look into tmp_path
        Path(folder).chmod(0o755)
        Session(Path(folder) / "state", **PARAMETERS).close()
        done = subprocess.run([sys.executable, "-c", OPENED, f"{folder}/state"], capture_output=True, text=True)
    assert done.returncode != 0
    assert "cannot be written to (Permission denied); a session needs a directory of its own" in done.stderr


def test_vectors_that_find_no_room_in_a_file_leave_the_model_as_it_was(small_disk: Path) -> None:
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
