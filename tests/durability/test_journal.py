from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ripplevec import Batch
from ripplevec.batch import ids_to_list
from ripplevec.durability import journal, journal_database
from ripplevec.durability.journal import Journal, JournalEntry
from ripplevec.errors import FormatError, StateError


def make_entry(number: int, **options: Any) -> JournalEntry:
    return JournalEntry(Batch.of([number], ["b"], [2.0]), **options)


def read_numbers(journal: Journal, after: int = 0) -> list[tuple[int, Any]]:
    """Return the sequence number of each row with its distinguishing vertex id, or with its fault."""
    return [
        (row.sequence, row.fault if row.entry is None else ids_to_list(row.entry.batch.src)[0])
        for row in journal.read_rows(after)
    ]


def run_sql(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


def test_journal_reopened_returns_batches_in_order(journal_at: Any) -> None:
    opened = journal_at()
    opened.append([make_entry(7)])
    opened.append([make_entry(8, key="k"), make_entry(9, source="s", position={"0": 5})])
    assert read_numbers(opened) == [(1, 7), (2, 8), (3, 9)]
    opened.close()
    reopened = journal_at()
    assert read_numbers(reopened, after=1) == [(2, 8), (3, 9)]
    assert (reopened.first, reopened.last, reopened.metadata["made"]) == (1, 3, "for a test")
    assert (reopened.find_key("k"), reopened.find_key("other")) == (2, None)
    assert (reopened.position("s"), reopened.position("t"), reopened.sources) == ({"0": 5}, None, {"s": {"0": 5}})
    assert next(row.entry for row in reopened.read_rows(2)).position == {"0": 5}
    assert reopened.verify() == []


def test_journal_commits_are_durable(journal_at: Any, connections: list[Any]) -> None:
    journal_at()
    assert connections[-1].execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connections[-1].execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


def test_journal_append_failed_group_writes_nothing(journal_at: Any) -> None:
    opened = journal_at()
    opened.append([make_entry(1, key="k")])
    with pytest.raises(StateError, match="UNIQUE"):
        opened.append([make_entry(2, source="s", position=1), make_entry(3, key="k")])
    assert (opened.last, read_numbers(opened), opened.position("s")) == (1, [(1, 1)], None)
    opened.append([make_entry(4)])
    assert read_numbers(opened) == [(1, 1), (2, 4)]


def test_journal_append_interrupt_after_commit_updates_last(journal_at: Any, connections: list[Any]) -> None:
    opened = journal_at()
    connections[-1].error_after_commit = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        opened.append([make_entry(1)])
    assert opened.last == 1  # so that the session notices the batch that it has not applied


def test_journal_compact_deletes_rows_with_later_batches(journal_at: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_DROPPED_PER_APPEND", 3)
    opened = journal_at()
    opened.append([make_entry(number, key=f"k{number}", source="s", position=number) for number in range(1, 21)])
    opened.compact(15)
    assert opened.first == 1
    opened.append([make_entry(21)])
    assert opened.first == 4
    for number in range(22, 26):
        opened.append([make_entry(number)])
    assert (opened.first, opened.last) == (16, 25)
    assert (opened.find_key("k2"), opened.position("s")) == (2, 20)
    opened.compact(25, now=True)
    assert (opened.first, opened.last, opened.position("s")) == (26, 25, 20)
    opened.close()
    reopened = journal_at()
    assert (reopened.first, reopened.last, reopened.position("s"), reopened.find_key("k20")) == (26, 25, 20, 20)
    reopened.append([make_entry(26)])
    assert read_numbers(reopened, 25) == [(26, 26)]


def test_journal_keys_expire_after_retention(journal_at: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "KEY_RETENTION", 5)
    opened = journal_at()
    for number in range(1, 21):
        opened.append([make_entry(number, key=str(number))])
        opened.compact(number - 2)
    remembered = [number for number in range(1, 21) if opened.find_key(str(number))]
    assert remembered[-5:] == list(range(16, 21))
    assert len(remembered) <= 7


def test_journal_compact_now_frees_space(journal_at: Any, tmp_path: Path) -> None:
    opened = journal_at()
    for _ in range(30):
        opened.append([JournalEntry(Batch.of(list(range(2000)), list(range(2000))))])
    opened.compact(29, now=True)
    assert (tmp_path / "journal.sqlite").stat().st_size < 200_000
    assert (tmp_path / "journal.sqlite-wal").stat().st_size == 0


def test_journal_first_unpublished_follows_published_batches(journal_at: Any) -> None:
    opened = journal_at()
    opened.append([make_entry(1, source="s", position=1)], {"s": 0})
    opened.append([make_entry(2, source="t", position=1)])
    opened.append([make_entry(3, source="s", position=2), make_entry(4, source="s", position=3)], {"s": 1})
    assert opened.first_unpublished() == {"s": 3}
    opened.append([], {"s": 4})
    assert (opened.first_unpublished(), opened.last) == ({}, 4)


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        ("UPDATE batches SET payload = zeroblob(length(payload)) WHERE sequence = 2", "does not match its checksum"),
        ("UPDATE batches SET position = '17' WHERE sequence = 2", "does not match its checksum"),
        ("UPDATE batches SET key = 'other' WHERE sequence = 2", "does not match its checksum"),
        ("UPDATE batches SET payload = 3 WHERE sequence = 2", "does not match its checksum"),
        ("DELETE FROM batches WHERE sequence = 2", "is missing"),
    ],
)
def test_journal_damaged_row_is_returned_with_fault(journal_at: Any, damage: str, fault: str) -> None:
    opened = journal_at()
    opened.append([make_entry(number, key=str(number), source="s", position=number) for number in range(1, 4)])
    run_sql(opened.path, damage)
    numbers, found = zip(*read_numbers(opened), strict=True)
    assert numbers == (1, 2, 3)
    assert (found[0], found[2]) == (1, 3)
    assert fault in found[1]
    assert [f for f in opened.verify() if f"batch 2 {found[1]}" == f]


def test_journal_moved_rows_are_returned_with_fault(journal_at: Any) -> None:
    opened = journal_at()
    opened.append([make_entry(1), make_entry(2)])
    run_sql(
        opened.path, "UPDATE batches SET sequence = 9 WHERE sequence = 1", "UPDATE batches SET sequence = sequence - 1"
    )
    assert [fault for _, fault in read_numbers(opened)] == ["does not match its checksum", "is missing"]


def test_journal_truncate_discards_end_and_keeps_old_file(journal_at: Any) -> None:
    opened = journal_at()
    opened.append(
        [make_entry(number, key=str(number), source="s", position=number) for number in range(1, 7)], {"s": 6}
    )
    opened.compact(1, now=True)
    damaged = opened.truncate(4)
    assert (opened.first, opened.last, read_numbers(opened, 1)) == (2, 4, [(2, 2), (3, 3), (4, 4)])
    assert (opened.position("s"), opened.find_key("4"), opened.find_key("5")) == (4, 4, None)
    assert opened.first_unpublished() == {}
    opened.append([make_entry(5, key="5", source="s", position=5)])
    assert opened.first_unpublished() == {"s": 5}
    opened.close()
    assert journal_at().last == 5
    assert damaged.name == "journal.sqlite.damaged"
    with closing(sqlite3.connect(damaged)) as db:
        assert db.execute("SELECT max(sequence) FROM batches").fetchone() == (6,)


def test_journal_truncate_restores_compacted_position(journal_at: Any) -> None:
    opened = journal_at()
    opened.append(
        [make_entry(1, source="s", position="early"), make_entry(2), make_entry(3, source="s", position="late")]
    )
    opened.compact(2, now=True)
    opened.truncate(2)
    assert opened.position("s") == "early"


def test_journal_interrupted_truncate_is_finished_or_undone(journal_at: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: Any) -> None:
        raise OSError("crash")

    opened = journal_at()
    opened.append([make_entry(1), make_entry(2), make_entry(3)])
    with monkeypatch.context() as patch:
        patch.setattr(journal_database, "install_replacement", crash)
        with pytest.raises(StateError, match="crash"):
            opened.truncate(2)
    reopened = journal_at()
    assert reopened.last == 3
    with monkeypatch.context() as patch:
        # The old file is renamed, the new one not yet in place.
        patch.setattr(journal_database, "finish_replacement", crash)
        with pytest.raises(StateError, match="crash"):
            reopened.truncate(2)
    assert not reopened.path.exists()
    assert journal_at().last == 2


def test_journal_missing_or_other_file_raises_format_error(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="got nothing"):
        Journal(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    (tmp_path / "text").write_text("not a database, but long enough to look like opened " * 20)
    with pytest.raises(FormatError, match="damaged"):
        Journal(tmp_path / "text")


def test_journal_read_only_sees_committed_batches(journal_at: Any) -> None:
    opened = journal_at()
    opened.append([make_entry(1)])
    reader = journal_at(read_only=True)
    assert read_numbers(reader) == [(1, 1)]
    with pytest.raises(StateError, match="readonly"):
        reader.append([make_entry(2)])


def test_journal_damaged_wal_raises_format_error(journal_at: Any, tmp_path: Path) -> None:
    opened = journal_at()
    for number in range(9):
        opened.append([make_entry(number)])
    log = tmp_path / "journal.sqlite-wal"
    data = log.read_bytes()
    (tmp_path / "other").mkdir()
    for name in ("journal.sqlite", "journal.sqlite-wal"):
        (tmp_path / "other" / name).write_bytes((tmp_path / name).read_bytes())
    bad = bytearray(data)
    bad[len(data) // 2] ^= 1
    (tmp_path / "other" / "journal.sqlite-wal").write_bytes(bad)
    with pytest.raises(FormatError, match=r"would be lost.*ripplevec state cut"):
        Journal(tmp_path / "other" / "journal.sqlite")
    assert (tmp_path / "other" / "journal.sqlite-wal").read_bytes() == bytes(bad)
    with closing(Journal(tmp_path / "other" / "journal.sqlite", tolerate_damage=True)) as tolerant:
        assert 0 < tolerant.last < 9
        assert read_numbers(tolerant) == [(number + 1, number) for number in range(tolerant.last)]


def test_journal_position_survives_damaged_batch(journal_at: Any) -> None:
    opened = journal_at()
    opened.append([make_entry(1, source="s", position="here"), make_entry(2, source="t", position=3), make_entry(3)])
    opened.close()
    run_sql(opened.path, "UPDATE batches SET position = '\"there\"', source = 't' WHERE sequence = 1")
    reopened = journal_at()
    assert reopened.sources == {"s": "here", "t": 3}
    reopened.append([make_entry(4, source="s", position="now")])
    assert reopened.position("s") == "now"


def test_journal_compact_keeps_batch_with_damaged_position(journal_at: Any) -> None:
    opened = journal_at()
    opened.append([make_entry(1, source="s", position="early"), make_entry(2, source="s", position="late")])
    run_sql(opened.path, "UPDATE batches SET position = '7' WHERE sequence = 1")
    opened.compact(1, now=True)
    assert (opened.first, opened.position("s")) == (1, "late")
    opened.compact(2, now=True)
    assert (opened.first, opened.position("s")) == (3, "late")


@pytest.mark.parametrize("name", ["last", "first", "keys", "sources", "sources_before", "published", "version"])
def test_journal_damaged_metadata_raises_format_error(journal_at: Any, name: str) -> None:
    opened = journal_at()
    opened.append([make_entry(1, source="s", position=1, key="k")], {"s": 1})
    opened.compact(1, now=True)
    opened.close()
    with closing(sqlite3.connect(opened.path)) as db:
        (good,) = db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    run_sql(opened.path, f"UPDATE meta SET value = '7' WHERE name = '{name}'")
    with pytest.raises(FormatError, match=r"does not match its checksum.*ripplevec state cut"):
        journal_at()
    run_sql(opened.path, f"UPDATE meta SET value = '{good}' WHERE name = '{name}'")
    journal_at().close()
    run_sql(opened.path, f"DELETE FROM meta WHERE name = '{name}'")
    with pytest.raises(FormatError, match="journal is damaged"):
        journal_at()


def test_journal_changed_key_is_rebuilt_from_its_batch(journal_at: Any) -> None:
    opened = journal_at()
    opened.append([make_entry(number, key=f"k{number}") for number in range(1, 6)])
    opened.close()
    for damage in ("SET key = 'other'", "SET sequence = 9", "SET checksum = x'00'"):
        run_sql(opened.path, f"UPDATE keys {damage} WHERE key = 'k3'")
        reopened = journal_at()
        assert [reopened.find_key(f"k{number}") for number in range(1, 6)] == [1, 2, 3, 4, 5]
        assert (reopened.find_key("other"), len(reopened.notes)) == (None, 1)
        reopened.close()
        assert journal_at().notes == []
    run_sql(opened.path, "DELETE FROM keys WHERE key = 'k4'")
    assert journal_at().find_key("k4") == 4


def test_journal_changed_key_of_compacted_batch_raises_format_error(journal_at: Any) -> None:
    opened = journal_at()
    opened.append([make_entry(number, key=f"k{number}") for number in range(1, 6)])
    opened.compact(4, now=True)
    opened.close()
    run_sql(opened.path, "UPDATE keys SET key = 'other' WHERE key = 'k3'")
    with pytest.raises(FormatError, match=r"keys: expected 5, got 4 .*applied twice.*ripplevec state cut"):
        journal_at()
    with closing(Journal(opened.path, tolerate_damage=True)) as tolerant:
        assert [tolerant.find_key(f"k{number}") for number in range(1, 6)] == [1, 2, None, 4, 5]
    assert journal_at().notes == []


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("remnant", ["snapshots", "marker", "log"])
def test_journal_missing_next_to_remnants_raises_format_error(
    journal_at: Any, remnant: str, empty: bool, tmp_path: Path
) -> None:
    opened = journal_at()
    opened.append([make_entry(1)])
    if remnant == "log" and not empty:
        Path(f"{opened.path}-wal").rename(tmp_path / "log")
    opened.close()
    opened.path.unlink()
    if remnant != "marker":
        (tmp_path / journal.MARKER_FILE).unlink()
    if remnant == "log":
        if empty:
            return
        (tmp_path / "log").rename(f"{opened.path}-wal")
    if remnant == "snapshots":
        (tmp_path / "snapshots" / "000000000001").mkdir(parents=True)
    if empty:
        opened.path.touch()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(FormatError, match=r"expected a journal next to .*ripplevec state cut"):
        journal_at()
    assert sorted(tmp_path.rglob("*")) == before


def test_journal_copied_without_wal_reports_missing_batches(journal_at: Any, tmp_path: Path) -> None:
    opened = journal_at()
    opened.append([make_entry(1)])
    run_sql(opened.path, "PRAGMA wal_checkpoint(TRUNCATE)")
    for number in range(2, 6):
        opened.append([make_entry(number)])
    (tmp_path / "copy").mkdir()
    for name in ("journal.sqlite", journal.MARKER_FILE):
        (tmp_path / "copy" / name).write_bytes((tmp_path / name).read_bytes())
    with pytest.raises(FormatError, match=r"up to 5, got 1: the last 4 are missing.*ripplevec state cut"):
        Journal(tmp_path / "copy" / "journal.sqlite")
    with closing(Journal(tmp_path / "copy" / "journal.sqlite", read_only=True)) as reader:
        assert "the last 4 batches are missing" in reader.verify()[0]


def test_journal_wal_cut_between_transactions_reports_missing_batches(journal_at: Any, tmp_path: Path) -> None:
    opened = journal_at()
    for number in range(1, 7):
        opened.append([make_entry(number)])
    (tmp_path / "copy").mkdir()
    for name in ("journal.sqlite", "journal.sqlite-wal", journal.MARKER_FILE):
        (tmp_path / "copy" / name).write_bytes((tmp_path / name).read_bytes())
    log = tmp_path / "copy" / "journal.sqlite-wal"
    data, size = log.read_bytes(), 4096 + 24
    ends = [at for at in range(32, len(data), size) if int.from_bytes(data[at + 4 : at + 8], "big")]
    log.write_bytes(data[: ends[-3] + size])
    with pytest.raises(FormatError, match="the last 2 are missing"):
        Journal(tmp_path / "copy" / "journal.sqlite")


def try_reading(path: Path, **options: Any) -> list[Any] | str:
    """Return the content of the rows of a journal, or the error with which it does not open."""
    try:
        with closing(Journal(path, **options)) as journal:
            return [content for _, content in read_numbers(journal)]
    except FormatError as error:
        return str(error)


def test_journal_bit_flips_in_schema_raise_and_can_be_repaired(journal_at: Any) -> None:
    opened = journal_at()
    opened.append([make_entry(number, key=f"k{number}") for number in range(1, 4)])
    opened.close()
    good, rejected, repaired = opened.path.read_bytes(), 0, 0
    for at in [at for at in range(100, 4096) if good[at]][::17]:
        bad = bytearray(good)
        bad[at] ^= 1 << at % 8
        opened.path.write_bytes(bad)
        found = try_reading(opened.path)
        if found != [1, 2, 3]:
            assert "ripplevec state cut" in found
            assert opened.path.read_bytes() == bytes(bad)
            rejected += 1
            repaired += try_reading(opened.path, tolerate_damage=True) == [1, 2, 3]
    assert rejected > 20
    assert repaired > rejected // 2


@pytest.mark.parametrize("damage", ["UPDATE meta SET checksum = 3", "UPDATE meta SET value = x'ff'"])
def test_journal_metadata_of_other_type_raises_format_error(journal_at: Any, damage: str) -> None:
    journal_at().close()
    run_sql(journal_at().path, damage)
    with pytest.raises(FormatError, match="journal is damaged"):
        journal_at()


def test_journal_symlink_raises_format_error(journal_at: Any, tmp_path: Path) -> None:
    journal_at().close()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "journal.sqlite").symlink_to(tmp_path / "journal.sqlite")
    with pytest.raises(FormatError, match="expected a file, got a symbolic link"):
        Journal(tmp_path / "other" / "journal.sqlite")
