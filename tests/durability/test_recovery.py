from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ripplevec import Batch
from ripplevec.durability import journal_database, recovery
from ripplevec.durability.journal import JournalEntry, Journal
from ripplevec.durability.recovery import RecoveryReport, recover
from ripplevec.durability.session_model import SessionModel, build_metadata, create_model
from ripplevec.durability.snapshot import SnapshotStore
from ripplevec.engine.digest import StateSnapshot
from ripplevec.errors import FormatError
from ripplevec.util.checked_directory import read_arrays, write_arrays

META = build_metadata({"dim": 3, "start_size": 6, "anchor_growth": 0.2}, 2)


def new() -> SessionModel:
    return create_model(META, threads=1)


class Place:
    """A directory of a session that has been written to without one: twelve batches, snapshots where asked for."""

    def __init__(self, directory: Path, snapshots_at: tuple[int, ...] = (4, 9)) -> None:
        self.path = directory / "journal.sqlite"
        self.snapshots = SnapshotStore(directory / "snapshots")
        self.digests = {0: new().digest()}
        model = new()
        with closing(Journal(self.path, new=lambda: META)) as journal:
            for number in range(1, 13):
                batch = Batch.of([number, number, "a"], [number + 1, number + 3, number])
                journal.append([JournalEntry(batch, f"k{number}", "s", number)])
                model.apply_batch(batch)
                self.digests[number] = model.digest()
                if number in snapshots_at:
                    self.snapshots.write(model.engine.copy())

    def recover(self, **options: Any) -> tuple[str, RecoveryReport]:
        with closing(Journal(self.path)) as journal:
            model, found = recover(journal, self.snapshots, new, **options)
        return model.digest(), found

    def spoil(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.path)) as db:
            for statement in statements:
                db.execute(statement)
            db.commit()

    def note(self, **meta: Any) -> None:
        """Have other values beside the batches."""
        with closing(sqlite3.connect(self.path)) as db:
            for name, value in meta.items():
                journal_database.set_meta(db, name, value)
            db.commit()

    def shorten(self, last: int) -> None:
        """As if it had never been longer."""
        self.spoil(f"DELETE FROM batches WHERE sequence > {last}", f"DELETE FROM keys WHERE sequence > {last}")
        self.note(last=last, keys=last, sources={"s": [last, last]})
        (self.path.parent / "journal.last").unlink()

    def spoil_snapshot(self, sequence: int, name: str = "vectors.npy") -> None:
        path = self.snapshots.path(sequence) / name
        data = bytearray(path.read_bytes())
        data[-5] ^= 8
        path.write_bytes(data)


def test_the_newest_snapshot_and_what_came_after_it(tmp_path: Path) -> None:
    place = Place(tmp_path)
    digest, found = place.recover()
    assert digest == place.digests[12]
    assert (found.snapshot, found.replayed, found.lost, found.notes) == (9, 3, 0, [])


@pytest.mark.parametrize("name", ["vectors.npy", "manifest.json", "graph_edges_neighbor.npy"])
def test_a_damaged_snapshot_falls_back_to_the_older_one(tmp_path: Path, name: str) -> None:
    place = Place(tmp_path)
    place.spoil_snapshot(9, name)
    digest, found = place.recover()
    assert digest == place.digests[12]
    assert (found.snapshot, found.replayed) == (4, 8)
    assert "000000000009" in found.notes[0]
    assert place.snapshots.sequences == [4]
    assert place.recover()[1].notes == []


def test_without_a_good_snapshot_everything_is_replayed(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for sequence in (4, 9):
        place.spoil_snapshot(sequence)
    digest, found = place.recover()
    assert digest == place.digests[12]
    assert (found.snapshot, found.replayed, len(found.notes)) == (0, 12, 2)


def test_without_a_good_snapshot_a_compacted_journal_is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with closing(Journal(place.path)) as journal:
        journal.compact(4, now=True)
    assert place.recover()[0] == place.digests[12]
    for sequence in (4, 9):
        place.spoil_snapshot(sequence)
    with pytest.raises(FormatError, match="begins at batch 5; restore"):
        place.recover()


def test_a_snapshot_that_is_not_what_it_says_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path, ())
    model = new()
    model.apply_batch(Batch.of([1], [2]))
    monkeypatch.setattr(StateSnapshot, "digest", lambda self: "0" * 32)
    place.snapshots.write(model.engine.copy())
    digest, found = place.recover()
    assert digest == place.digests[12]
    assert found.snapshot == 0
    assert "expected digest 000" in found.notes[0]


@pytest.mark.parametrize("first_bad", [12, 11, 10])
def test_a_damaged_end_is_cut_and_told(tmp_path: Path, first_bad: int, caplog: pytest.LogCaptureFixture) -> None:
    place = Place(tmp_path)
    place.spoil(f"UPDATE batches SET payload = x'00' WHERE sequence >= {first_bad}")
    digest, found = place.recover()
    assert digest == place.digests[first_bad - 1]
    assert found.lost == 13 - first_bad
    assert f"batch {first_bad} does not fit its checksum" in caplog.text
    assert "journal.sqlite.damaged" in found.notes[0]
    with closing(Journal(place.path)) as journal:
        assert (journal.last, journal.position("s"), journal.find(f"k{first_bad}")) == (
            first_bad - 1,
            first_bad - 1,
            None,
        )
    assert place.recover()[1].notes == []


@pytest.mark.parametrize("gone", [11, 1])
def test_rows_that_are_gone_are_refused_and_counted(tmp_path: Path, gone: int) -> None:
    place = Place(tmp_path)
    place.spoil(f"DELETE FROM batches WHERE sequence >= {gone}")
    first = max(gone, 10)
    with pytest.raises(FormatError, match=rf"batch {first} is missing, {13 - first} batches from the end.*state cut"):
        place.recover()
    digest, found = place.recover(forgiving=True)
    assert (digest, found.lost) == (place.digests[first - 1], 13 - first)


def test_damage_of_all_rows_is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path, ())
    place.spoil("UPDATE batches SET payload = x'00'")
    with pytest.raises(FormatError, match=r"batch 1 .*12 batches from the end.*ripplevec state cut"):
        place.recover()


def test_batch_that_cannot_be_applied_is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with closing(Journal(place.path)) as journal:
        journal.append([JournalEntry(Batch.of(["nobody"], ["else"], op=[1]))])
    with pytest.raises(FormatError, match=r"batch 13 cannot be applied .*unknown vertex"):
        place.recover()


def test_snapshot_of_another_batch_is_put_aside(tmp_path: Path) -> None:
    place = Place(tmp_path)
    arrays, meta = read_arrays(place.snapshots.path(4), kind="snapshot")
    shutil.rmtree(place.snapshots.path(9))
    write_arrays(place.snapshots.path(9), arrays, meta | {"sequence": 9}, kind="snapshot")
    digest, found = place.recover()
    assert (digest, found.snapshot) == (place.digests[12], 4)
    assert "expected the state after batch 9, got that after batch 4" in found.notes[0]


def test_damage_before_good_batches_is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.spoil("UPDATE batches SET payload = x'00' WHERE sequence = 11")
    before = place.path.read_bytes()
    with pytest.raises(FormatError, match=r"batch 11 .*1 good batches follow.*ripplevec state cut"):
        place.recover()
    assert place.path.read_bytes() == before
    digest, found = place.recover(forgiving=True)
    assert (digest, found.lost) == (place.digests[10], 2)


def test_damage_that_a_snapshot_covers_does_not_matter(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.spoil("UPDATE batches SET payload = x'00' WHERE sequence = 6")
    assert place.recover()[0] == place.digests[12]


def test_a_cut_leaves_out_damage_that_a_snapshot_covers(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.spoil("UPDATE batches SET payload = x'00' WHERE sequence IN (6, 12)")
    assert place.recover()[0] == place.digests[11]
    assert place.recover()[0] == place.digests[11]


def test_snapshot_beyond_the_journal_is_refused_until_the_batches_are_given_up(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.shorten(7)
    with pytest.raises(FormatError, match=r"up to 9 .*got 7; 2 batches or more are missing.*ripplevec state cut"):
        place.recover()
    assert place.snapshots.sequences == [9, 4]
    digest, found = place.recover(forgiving=True)
    assert digest == place.digests[7]
    assert (found.snapshot, found.lost) == (4, 2)
    assert "the journal ends with batch 7" in found.notes[0]
    assert place.snapshots.sequences == [4]  # or it would pass for the state after another batch 9


def test_flipped_bytes_never_pass(tmp_path: Path) -> None:
    """Wherever a byte of the journal is flipped: the same state, or less with a note, or a refusal."""
    place = Place(tmp_path)
    with closing(Journal(place.path)) as journal:
        journal.compact(4, now=True)
    good = place.path.read_bytes()
    refused = cut = 0
    for at in range(100, len(good), len(good) // 60):
        bad = bytearray(good)
        bad[at] ^= 0xFF
        place.path.write_bytes(bad)
        try:
            digest, found = place.recover()
        except FormatError:
            refused += 1
        else:
            assert digest == place.digests[12 - found.lost]
            assert bool(found.lost) == bool(found.notes)
            cut += found.lost > 0
        for leftover in tmp_path.glob("journal.sqlite*"):
            leftover.unlink()
        place.path.write_bytes(good)
    assert refused + cut > 5


def test_a_self_loop_is_not_mentioned_again(tmp_path: Path) -> None:
    with closing(Journal(tmp_path / "journal.sqlite", new=lambda: META)) as journal:
        journal.append([JournalEntry(Batch.of([1, 1], [1, 2]))])
        model, _ = recover(journal, SnapshotStore(tmp_path / "snapshots"), new)
    assert model.ids == [1, 2]


def test_what_may_not_have_been_passed_on_is_worked_out_again(tmp_path: Path) -> None:
    place = Place(tmp_path, (4, 12))
    place.note(published={"s": 10})
    digest, found = place.recover()
    assert digest == place.digests[12]
    assert found.snapshot == 4  # the newer one is too new to tell what batch 11 changed
    assert [changes.sequence for changes in found.unpublished["s"]] == [11, 12]
    assert all(len(changes) for changes in found.unpublished["s"])


def test_what_was_not_passed_on_is_less_than_what_is_lost(tmp_path: Path) -> None:
    """Batch 8 is damaged, and only the newer snapshot knows what it did."""
    place = Place(tmp_path, (4, 10))
    place.note(published={"s": 6})
    place.spoil("UPDATE batches SET payload = x'00' WHERE sequence = 8")
    digest, found = place.recover()
    assert digest == place.digests[12]
    assert (found.snapshot, found.replayed, found.lost) == (10, 2, 0)
    assert [changes.sequence for changes in found.unpublished["s"]] == [11, 12]


def test_what_can_no_longer_be_worked_out_is_let_go(tmp_path: Path) -> None:
    place = Place(tmp_path, (6, 12))
    with closing(Journal(place.path)) as journal:
        journal.compact(6, now=True)
    place.note(published={"s": 3})
    digest, found = place.recover()
    assert digest == place.digests[12]
    assert found.snapshot == 6
    assert [changes.sequence for changes in found.unpublished["s"]] == list(range(7, 13))
    assert recovery.RecoveryReport().unpublished == {}
