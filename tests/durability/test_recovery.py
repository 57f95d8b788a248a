from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ripplevec import Batch
from ripplevec.durability import journal_schema, recovery
from ripplevec.durability.journal import Journal, JournalEntry
from ripplevec.durability.recovery import RecoveryReport, recover
from ripplevec.durability.session_model import SessionModel, build_metadata, create_model
from ripplevec.durability.snapshot import SnapshotStore
from ripplevec.engine.digest import StateSnapshot
from ripplevec.errors import FormatError
from ripplevec.util.checked_directory import read_arrays, write_arrays

METADATA = build_metadata({"dim": 3, "start_size": 6, "anchor_growth": 0.2})


def make_model() -> SessionModel:
    return create_model(METADATA, threads=1)


class State:
    """State directory written without a session: twelve batches, and snapshots after the given ones."""

    def __init__(self, directory: Path, snapshots_at: tuple[int, ...] = (4, 9)) -> None:
        self.path = directory / "journal.sqlite"
        self.snapshots = SnapshotStore(directory / "snapshots")
        self.digests = {0: make_model().digest()}
        model = make_model()
        with closing(Journal(self.path, make_metadata=lambda: METADATA)) as journal:
            for number in range(1, 13):
                batch = Batch.of([number, number, "a"], [number + 1, number + 3, number])
                journal.append([JournalEntry(batch, f"k{number}", "s", number)])
                model.apply_batch(batch)
                self.digests[number] = model.digest()
                if number in snapshots_at:
                    self.snapshots.write(model.engine.snapshot())

    def recover(self, **options: Any) -> tuple[str, RecoveryReport]:
        with closing(Journal(self.path)) as journal:
            model, report = recover(journal, self.snapshots, make_model, **options)
        return model.digest(), report

    def run_sql(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.path)) as db:
            for statement in statements:
                db.execute(statement)
            db.commit()

    def set_metadata(self, **metadata: Any) -> None:
        """Replace metadata values."""
        with closing(sqlite3.connect(self.path)) as db:
            for name, value in metadata.items():
                journal_schema.write_metadata(db, name, value)
            db.commit()

    def shorten(self, last: int) -> None:
        """Remove the batches after `last` and every trace of them, except snapshots."""
        self.run_sql(f"DELETE FROM batches WHERE sequence > {last}", f"DELETE FROM keys WHERE sequence > {last}")
        self.set_metadata(last=last, keys=last, sources={"s": [last, last]})
        (self.path.parent / "journal.last").unlink()

    def damage_snapshot(self, sequence: int, name: str = "vectors.npy") -> None:
        path = self.snapshots.path(sequence) / name
        data = bytearray(path.read_bytes())
        data[-5] ^= 8
        path.write_bytes(data)


def test_recover_replays_batches_after_newest_snapshot(tmp_path: Path) -> None:
    state = State(tmp_path)
    digest, report = state.recover()
    assert digest == state.digests[12]
    assert (report.snapshot, report.replayed, report.lost, report.notes) == (9, 3, 0, [])


@pytest.mark.parametrize("name", ["vectors.npy", "manifest.json", "graph_edges_neighbor.npy"])
def test_recover_damaged_snapshot_falls_back_to_older_one(tmp_path: Path, name: str) -> None:
    state = State(tmp_path)
    state.damage_snapshot(9, name)
    digest, report = state.recover()
    assert digest == state.digests[12]
    assert (report.snapshot, report.replayed) == (4, 8)
    assert "000000000009" in report.notes[0]
    assert state.snapshots.sequences == [4]
    assert state.recover()[1].notes == []


def test_recover_without_good_snapshot_replays_everything(tmp_path: Path) -> None:
    state = State(tmp_path)
    for sequence in (4, 9):
        state.damage_snapshot(sequence)
    digest, report = state.recover()
    assert digest == state.digests[12]
    assert (report.snapshot, report.replayed, len(report.notes)) == (0, 12, 2)


def test_recover_compacted_journal_without_good_snapshot_raises(tmp_path: Path) -> None:
    state = State(tmp_path)
    with closing(Journal(state.path)) as journal:
        journal.compact(4, now=True)
    assert state.recover()[0] == state.digests[12]
    for sequence in (4, 9):
        state.damage_snapshot(sequence)
    with pytest.raises(FormatError, match=r"begins at batch 5\. Restore"):
        state.recover()


def test_recover_snapshot_with_wrong_digest_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = State(tmp_path, ())
    model = make_model()
    model.apply_batch(Batch.of([1], [2]))
    monkeypatch.setattr(StateSnapshot, "digest", lambda self: "0" * 32)
    state.snapshots.write(model.engine.snapshot())
    digest, report = state.recover()
    assert digest == state.digests[12]
    assert report.snapshot == 0
    assert "expected digest 000" in report.notes[0]


@pytest.mark.parametrize("first_bad", [12, 11, 10])
def test_recover_damaged_tail_is_truncated_and_reported(
    tmp_path: Path, first_bad: int, caplog: pytest.LogCaptureFixture
) -> None:
    state = State(tmp_path)
    state.run_sql(f"UPDATE batches SET payload = x'00' WHERE sequence >= {first_bad}")
    digest, report = state.recover()
    assert digest == state.digests[first_bad - 1]
    assert report.lost == 13 - first_bad
    assert f"batch {first_bad} does not match its checksum" in caplog.text
    assert "journal.sqlite.damaged" in report.notes[0]
    with closing(Journal(state.path)) as journal:
        assert (journal.last, journal.position("s"), journal.find_key(f"k{first_bad}")) == (
            first_bad - 1,
            first_bad - 1,
            None,
        )
    assert state.recover()[1].notes == []


@pytest.mark.parametrize("first_missing", [11, 1])
def test_recover_missing_rows_raise_until_tolerated(tmp_path: Path, first_missing: int) -> None:
    state = State(tmp_path)
    state.run_sql(f"DELETE FROM batches WHERE sequence >= {first_missing}")
    first = max(first_missing, 10)
    with pytest.raises(FormatError, match=rf"batch {first} is missing, {13 - first} batches from the end.*state cut"):
        state.recover()
    digest, report = state.recover(tolerate_damage=True)
    assert (digest, report.lost) == (state.digests[first - 1], 13 - first)


def test_recover_all_rows_damaged_raises(tmp_path: Path) -> None:
    state = State(tmp_path, ())
    state.run_sql("UPDATE batches SET payload = x'00'")
    with pytest.raises(FormatError, match=r"batch 1 .*12 batches from the end.*ripplevec state cut"):
        state.recover()


def test_recover_inapplicable_batch_raises(tmp_path: Path) -> None:
    state = State(tmp_path)
    with closing(Journal(state.path)) as journal:
        journal.append([JournalEntry(Batch.of(["unknown"], ["other"], op=[1]))])
    with pytest.raises(FormatError, match=r"batch 13 cannot be applied .*unknown vertex"):
        state.recover()


def test_recover_snapshot_of_other_batch_is_quarantined(tmp_path: Path) -> None:
    state = State(tmp_path)
    arrays, meta = read_arrays(state.snapshots.path(4), kind="snapshot")
    shutil.rmtree(state.snapshots.path(9))
    write_arrays(state.snapshots.path(9), arrays, meta | {"sequence": 9}, kind="snapshot")
    digest, report = state.recover()
    assert (digest, report.snapshot) == (state.digests[12], 4)
    assert "expected the state after batch 9, got that after batch 4" in report.notes[0]


def test_recover_damage_before_good_batches_raises_until_tolerated(tmp_path: Path) -> None:
    state = State(tmp_path)
    state.run_sql("UPDATE batches SET payload = x'00' WHERE sequence = 11")
    before = state.path.read_bytes()
    with pytest.raises(FormatError, match=r"batch 11 .*followed by 1 good batches.*ripplevec state cut"):
        state.recover()
    assert state.path.read_bytes() == before
    digest, report = state.recover(tolerate_damage=True)
    assert (digest, report.lost) == (state.digests[10], 2)


def test_recover_damage_before_snapshot_is_ignored(tmp_path: Path) -> None:
    state = State(tmp_path)
    state.run_sql("UPDATE batches SET payload = x'00' WHERE sequence = 6")
    assert state.recover()[0] == state.digests[12]


def test_recover_truncation_drops_damage_before_snapshot(tmp_path: Path) -> None:
    state = State(tmp_path)
    state.run_sql("UPDATE batches SET payload = x'00' WHERE sequence IN (6, 12)")
    assert state.recover()[0] == state.digests[11]
    assert state.recover()[0] == state.digests[11]


def test_recover_snapshot_beyond_journal_raises_until_tolerated(tmp_path: Path) -> None:
    state = State(tmp_path)
    state.shorten(7)
    with pytest.raises(FormatError, match=r"up to 9 .*got 7: at least 2 batches are missing.*ripplevec state cut"):
        state.recover()
    assert state.snapshots.sequences == [9, 4]
    digest, report = state.recover(tolerate_damage=True)
    assert digest == state.digests[7]
    assert (report.snapshot, report.lost) == (4, 2)
    assert "the journal ends with batch 7" in report.notes[0]
    assert state.snapshots.sequences == [4]  # a later batch 9 will be another one


def test_recover_flipped_journal_bytes_never_go_unnoticed(tmp_path: Path) -> None:
    """Any flipped byte leads to the same state, to an earlier one with a note, or to an error."""
    state = State(tmp_path)
    with closing(Journal(state.path)) as journal:
        journal.compact(4, now=True)
    good = state.path.read_bytes()
    rejected = truncated = 0
    for at in range(100, len(good), len(good) // 60):
        bad = bytearray(good)
        bad[at] ^= 0xFF
        state.path.write_bytes(bad)
        try:
            digest, report = state.recover()
        except FormatError:
            rejected += 1
        else:
            assert digest == state.digests[12 - report.lost]
            assert bool(report.lost) == bool(report.notes)
            truncated += report.lost > 0
        for leftover in tmp_path.glob("journal.sqlite*"):
            leftover.unlink()
        state.path.write_bytes(good)
    assert rejected + truncated > 5


def test_recover_self_loop_does_not_warn_again(tmp_path: Path) -> None:
    with closing(Journal(tmp_path / "journal.sqlite", make_metadata=lambda: METADATA)) as journal:
        journal.append([JournalEntry(Batch.of([1, 1], [1, 2]))])
        model, _ = recover(journal, SnapshotStore(tmp_path / "snapshots"), make_model)
    assert model.ids == [1, 2]


def test_recover_unpublished_changes_are_recomputed(tmp_path: Path) -> None:
    state = State(tmp_path, (4, 12))
    state.set_metadata(published={"s": 10})
    digest, report = state.recover()
    assert digest == state.digests[12]
    assert report.snapshot == 4  # the newer one already includes batch 11
    assert [changes.sequence for changes in report.unpublished["s"]] == [11, 12]
    assert all(len(changes) for changes in report.unpublished["s"])


def test_recover_damaged_unpublished_batch_prefers_state_over_changes(tmp_path: Path) -> None:
    """Batch 8 is damaged, and only the newer snapshot includes it."""
    state = State(tmp_path, (4, 10))
    state.set_metadata(published={"s": 6})
    state.run_sql("UPDATE batches SET payload = x'00' WHERE sequence = 8")
    digest, report = state.recover()
    assert digest == state.digests[12]
    assert (report.snapshot, report.replayed, report.lost) == (10, 2, 0)
    assert [changes.sequence for changes in report.unpublished["s"]] == [11, 12]


def test_recover_compacted_unpublished_changes_are_skipped(tmp_path: Path) -> None:
    state = State(tmp_path, (6, 12))
    with closing(Journal(state.path)) as journal:
        journal.compact(6, now=True)
    state.set_metadata(published={"s": 3})
    digest, report = state.recover()
    assert digest == state.digests[12]
    assert report.snapshot == 6
    assert [changes.sequence for changes in report.unpublished["s"]] == list(range(7, 13))
    assert recovery.RecoveryReport().unpublished == {}
