from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ripplevec import Batch
from ripplevec.batch import ids_to_list
from ripplevec.durability import journal, journal_database
from ripplevec.durability.journal import JournalEntry, Journal
from ripplevec.errors import FormatError, StateError

VERSION_1 = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE batches (
    sequence INTEGER PRIMARY KEY, checksum BLOB NOT NULL, key TEXT, source TEXT, position TEXT, payload BLOB NOT NULL
);
CREATE TABLE keys (key TEXT PRIMARY KEY, sequence INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX keys_by_age ON keys (sequence);
CREATE TABLE sources (
    source TEXT PRIMARY KEY, sequence INTEGER NOT NULL, position TEXT NOT NULL, checksum BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE published (source TEXT PRIMARY KEY, sequence INTEGER NOT NULL) WITHOUT ROWID;
"""


def entry(number: int, **beside: Any) -> JournalEntry:
    return JournalEntry(Batch.of([number], ["b"], [2.0]), **beside)


def seen(opened: Journal, after: int = 0) -> list[tuple[int, Any]]:
    """The numbers of the rows, and the one id that tells them apart; where a row is bad, what is wrong."""
    return [
        (row.sequence, row.fault if row.entry is None else ids_to_list(row.entry.batch.src)[0])
        for row in opened.rows(after)
    ]


def tamper(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


def test_batches_come_back_in_order(journal_at: Any) -> None:
    one = journal_at()
    one.append([entry(7)])
    one.append([entry(8, key="k"), entry(9, source="s", position={"0": 5})])
    assert seen(one) == [(1, 7), (2, 8), (3, 9)]
    one.close()
    again = journal_at()
    assert seen(again, after=1) == [(2, 8), (3, 9)]
    assert (again.first, again.last, again.meta["made"]) == (1, 3, "for a test")
    assert (again.find("k"), again.find("other")) == (2, None)
    assert (again.position("s"), again.position("t"), again.sources) == ({"0": 5}, None, {"s": {"0": 5}})
    assert next(row.entry for row in again.rows(2)).position == {"0": 5}
    assert again.verify() == []


def test_a_commit_waits_for_the_disk(journal_at: Any) -> None:
    one = journal_at()
    assert one._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert one._db.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


def test_a_group_is_kept_as_a_whole(journal_at: Any) -> None:
    one = journal_at()
    one.append([entry(1, key="k")])
    with pytest.raises(StateError, match="UNIQUE"):
        one.append([entry(2, source="s", position=1), entry(3, key="k")])
    assert (one.last, seen(one), one.position("s")) == (1, [(1, 1)], None)
    one.append([entry(4)])
    assert seen(one) == [(1, 1), (2, 4)]


def test_an_interrupt_behind_the_commit_is_noticed(journal_at: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = journal_at()

    class Interrupted:
        def __init__(self, db: sqlite3.Connection) -> None:
            self.db = db

        def __getattr__(self, name: str) -> Any:
            return getattr(self.db, name)

        def execute(self, statement: str, *values: Any) -> Any:
            done = self.db.execute(statement, *values)
            if statement == "COMMIT":
                raise KeyboardInterrupt
            return done

    real = one._db
    one._db = Interrupted(real)
    with pytest.raises(KeyboardInterrupt):
        one.append([entry(1)])
    one._db = real
    assert one.last == 1  # so that whoever applies the batches can see that one is missing


def test_compaction_goes_along_with_new_batches(journal_at: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_ALONG", 3)
    one = journal_at()
    one.append([entry(number, key=f"k{number}", source="s", position=number) for number in range(1, 21)])
    one.compact(15)
    assert one.first == 1
    one.append([entry(21)])
    assert one.first == 4
    for number in range(22, 26):
        one.append([entry(number)])
    assert (one.first, one.last) == (16, 25)
    assert (one.find("k2"), one.position("s")) == (2, 20)
    one.compact(25, now=True)
    assert (one.first, one.last, one.position("s")) == (26, 25, 20)
    one.close()
    again = journal_at()
    assert (again.first, again.last, again.position("s"), again.find("k20")) == (26, 25, 20, 20)
    again.append([entry(26)])
    assert seen(again, 25) == [(26, 26)]


def test_keys_are_forgotten_in_time(journal_at: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "KEYS_KEPT", 5)
    one = journal_at()
    for number in range(1, 21):
        one.append([entry(number, key=str(number))])
        one.compact(number - 2)
    kept = [number for number in range(1, 21) if one.find(str(number))]
    assert kept[-5:] == list(range(16, 21))
    assert len(kept) <= 7


def test_compaction_frees_space(journal_at: Any, tmp_path: Path) -> None:
    one = journal_at()
    for _ in range(30):
        one.append([JournalEntry(Batch.of(list(range(2000)), list(range(2000))))])
    one.compact(29, now=True)
    assert (tmp_path / "journal.sqlite").stat().st_size < 200_000
    assert (tmp_path / "journal.sqlite-wal").stat().st_size == 0


def test_changes_that_may_not_have_been_passed_on_are_known(journal_at: Any) -> None:
    one = journal_at()
    one.append([entry(1, source="s", position=1)], {"s": 0})
    one.append([entry(2, source="t", position=1)])
    one.append([entry(3, source="s", position=2), entry(4, source="s", position=3)], {"s": 1})
    assert one.unpublished() == {"s": 3}
    one.append([], {"s": 4})
    assert (one.unpublished(), one.last) == ({}, 4)


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        ("UPDATE batches SET payload = zeroblob(length(payload)) WHERE sequence = 2", "does not fit its checksum"),
        ("UPDATE batches SET position = '17' WHERE sequence = 2", "does not fit its checksum"),
        ("UPDATE batches SET key = 'other' WHERE sequence = 2", "does not fit its checksum"),
        ("UPDATE batches SET payload = 3 WHERE sequence = 2", "does not fit its checksum"),
        ("DELETE FROM batches WHERE sequence = 2", "is missing"),
    ],
)
def test_a_row_that_is_not_as_it_was_is_told(journal_at: Any, damage: str, fault: str) -> None:
    one = journal_at()
    one.append([entry(number, key=str(number), source="s", position=number) for number in range(1, 4)])
    tamper(one.path, damage)
    numbers, found = zip(*seen(one), strict=True)
    assert numbers == (1, 2, 3)
    assert (found[0], found[2]) == (1, 3)
    assert fault in found[1]
    assert [f for f in one.verify() if f"batch 2 {found[1]}" == f]


def test_rows_that_moved_are_told(journal_at: Any) -> None:
    one = journal_at()
    one.append([entry(1), entry(2)])
    tamper(one.path, "UPDATE batches SET sequence = 9 WHERE sequence = 1", "UPDATE batches SET sequence = sequence - 1")
    assert [fault for _, fault in seen(one)] == ["does not fit its checksum", "is missing"]


def test_a_cut_gives_up_the_end_and_keeps_the_evidence(journal_at: Any) -> None:
    one = journal_at()
    one.append([entry(number, key=str(number), source="s", position=number) for number in range(1, 7)], {"s": 6})
    one.compact(1, now=True)
    aside = one.cut(4)
    assert (one.first, one.last, seen(one, 1)) == (2, 4, [(2, 2), (3, 3), (4, 4)])
    assert (one.position("s"), one.find("4"), one.find("5")) == (4, 4, None)
    assert one.unpublished() == {}
    one.append([entry(5, key="5", source="s", position=5)])
    assert one.unpublished() == {"s": 5}
    one.close()
    assert journal_at().last == 5
    assert aside.name == "journal.sqlite.damaged"
    with closing(sqlite3.connect(aside)) as db:
        assert db.execute("SELECT max(sequence) FROM batches").fetchone() == (6,)


def test_a_position_that_was_cut_falls_back_to_where_it_was_when_compacted(journal_at: Any) -> None:
    one = journal_at()
    one.append([entry(1, source="s", position="early"), entry(2), entry(3, source="s", position="late")])
    one.compact(2, now=True)
    one.cut(2)
    assert one.position("s") == "early"


def test_a_cut_that_is_interrupted_is_finished_or_undone(journal_at: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: Any) -> None:
        raise OSError("crash")

    one = journal_at()
    one.append([entry(1), entry(2), entry(3)])
    with monkeypatch.context() as patch:
        patch.setattr(journal_database, "put_in_place", crash)
        with pytest.raises(StateError, match="crash"):
            one.cut(2)
    again = journal_at()
    assert again.last == 3
    with monkeypatch.context() as patch:
        patch.setattr(journal_database, "settle", crash)  # the old one is aside, the new one not yet in its place
        with pytest.raises(StateError, match="crash"):
            again.cut(2)
    assert not again.path.exists()
    assert journal_at().last == 2


def test_what_is_no_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="found nothing"):
        Journal(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    (tmp_path / "text").write_text("not a database, but long enough to look like one " * 20)
    with pytest.raises(FormatError, match="damaged"):
        Journal(tmp_path / "text")


def test_a_reader_sees_what_a_writer_has_written(journal_at: Any) -> None:
    one = journal_at()
    one.append([entry(1)])
    reader = journal_at(read_only=True)
    assert seen(reader) == [(1, 1)]
    with pytest.raises(StateError, match="readonly"):
        reader.append([entry(2)])


def test_a_damaged_log_is_not_read_in_silence(journal_at: Any, tmp_path: Path) -> None:
    one = journal_at()
    for number in range(9):
        one.append([entry(number)])
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
    with closing(Journal(tmp_path / "other" / "journal.sqlite", forgiving=True)) as forgiven:
        assert 0 < forgiven.last < 9
        assert seen(forgiven) == [(number + 1, number) for number in range(forgiven.last)]


def test_position_of_a_damaged_batch_is_known_all_the_same(journal_at: Any) -> None:
    one = journal_at()
    one.append([entry(1, source="s", position="here"), entry(2, source="t", position=3), entry(3)])
    one.close()
    tamper(one.path, "UPDATE batches SET position = '\"there\"', source = 't' WHERE sequence = 1")
    again = journal_at()
    assert again.sources == {"s": "here", "t": 3}
    again.append([entry(4, source="s", position="now")])
    assert again.position("s") == "now"


def test_compaction_behind_a_damaged_position_waits(journal_at: Any) -> None:
    one = journal_at()
    one.append([entry(1, source="s", position="early"), entry(2, source="s", position="late")])
    tamper(one.path, "UPDATE batches SET position = '7' WHERE sequence = 1")
    one.compact(1, now=True)
    assert (one.first, one.position("s")) == (1, "late")
    one.compact(2, now=True)
    assert (one.first, one.position("s")) == (3, "late")


@pytest.mark.parametrize("name", ["last", "first", "keys", "sources", "sources_before", "published", "version"])
def test_journal_with_a_damaged_value_beside_the_batches_is_refused(journal_at: Any, name: str) -> None:
    one = journal_at()
    one.append([entry(1, source="s", position=1, key="k")], {"s": 1})
    one.compact(1, now=True)
    one.close()
    with closing(sqlite3.connect(one.path)) as db:
        (good,) = db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    tamper(one.path, f"UPDATE meta SET value = '7' WHERE name = '{name}'")
    with pytest.raises(FormatError, match=r"does not fit its checksum.*ripplevec state cut"):
        journal_at()
    tamper(one.path, f"UPDATE meta SET value = '{good}' WHERE name = '{name}'")
    journal_at().close()
    tamper(one.path, f"DELETE FROM meta WHERE name = '{name}'")
    with pytest.raises(FormatError, match="journal is damaged"):
        journal_at()


def test_key_that_was_changed_is_brought_back_from_its_batch(journal_at: Any) -> None:
    one = journal_at()
    one.append([entry(number, key=f"k{number}") for number in range(1, 6)])
    one.close()
    for damage in ("SET key = 'other'", "SET sequence = 9", "SET checksum = x'00'"):
        tamper(one.path, f"UPDATE keys {damage} WHERE key = 'k3'")
        again = journal_at()
        assert [again.find(f"k{number}") for number in range(1, 6)] == [1, 2, 3, 4, 5]
        assert (again.find("other"), len(again.notes)) == (None, 1)
        again.close()
        assert journal_at().notes == []
    tamper(one.path, "DELETE FROM keys WHERE key = 'k4'")
    assert journal_at().find("k4") == 4


def test_key_of_a_dropped_batch_that_was_changed_is_refused(journal_at: Any) -> None:
    one = journal_at()
    one.append([entry(number, key=f"k{number}") for number in range(1, 6)])
    one.compact(4, now=True)
    one.close()
    tamper(one.path, "UPDATE keys SET key = 'other' WHERE key = 'k3'")
    with pytest.raises(FormatError, match=r"4 of 5 keys.*applied twice.*ripplevec state cut"):
        journal_at()
    with closing(Journal(one.path, forgiving=True)) as forgiven:
        assert [forgiven.find(f"k{number}") for number in range(1, 6)] == [1, 2, None, 4, 5]
    assert journal_at().notes == []


def test_journal_of_version_1_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in VERSION_1.split(";\n"):
            db.execute(statement)
        for name, value in {"version": 1, "last": 4, "made": "long ago"}.items():
            journal_database.set_meta(db, name, value)
        for number in (3, 4):
            row = journal._as_row(number, entry(number, key=f"k{number}", source="s", position=number))
            db.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?)", row)
        db.executemany("INSERT INTO keys VALUES (?, ?)", [(f"k{number}", number) for number in (1, 2, 3)])
        for source, number in (("s", 2), ("t", 1)):
            kept = source, number, json.dumps(number)
            db.execute("INSERT INTO sources VALUES (?, ?, ?, ?)", (*kept, journal_database.checksum(*kept)))
        db.execute("INSERT INTO published VALUES ('s', 3)")
    with closing(Journal(path, read_only=True)) as read:
        assert (read.first, read.last, read.sources) == (3, 4, {"s": 4, "t": 1})
    with closing(sqlite3.connect(path)) as db:
        assert len(db.execute("SELECT * FROM published").fetchall()) == 1  # a look changes nothing
    with closing(Journal(path)) as one:
        assert (one.first, one.last, one.meta["version"], one.sources) == (3, 4, 2, {"s": 4, "t": 1})
        assert [one.find(f"k{number}") for number in range(1, 6)] == [1, 2, 3, 4, None]
        assert (one.unpublished(), one.verify(), seen(one, 2)) == ({"s": 4}, [], [(3, 3), (4, 4)])
        one.append([entry(5, key="k5", source="t", position=9)])
    with closing(Journal(path)) as again:
        assert (again.find("k5"), again.position("t"), again.notes) == (5, 9, [])


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("beside", ["snapshots", "marker", "log"])
def test_journal_that_is_gone_is_not_begun_anew(journal_at: Any, beside: str, empty: bool, tmp_path: Path) -> None:
    one = journal_at()
    one.append([entry(1)])
    if beside == "log" and not empty:
        Path(f"{one.path}-wal").rename(tmp_path / "log")
    one.close()
    one.path.unlink()
    if beside != "marker":
        (tmp_path / journal.MARKER).unlink()
    if beside == "log":
        if empty:
            return
        (tmp_path / "log").rename(f"{one.path}-wal")
    if beside == "snapshots":
        (tmp_path / "snapshots" / "000000000001").mkdir(parents=True)
    if empty:
        one.path.touch()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(FormatError, match=r"expected a journal beside .*ripplevec state cut"):
        journal_at()
    assert sorted(tmp_path.rglob("*")) == before


def test_journal_whose_log_was_left_behind_says_how_many_batches_are_missing(journal_at: Any, tmp_path: Path) -> None:
    one = journal_at()
    one.append([entry(1)])
    one._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for number in range(2, 6):
        one.append([entry(number)])
    (tmp_path / "copy").mkdir()
    for name in ("journal.sqlite", journal.MARKER):
        (tmp_path / "copy" / name).write_bytes((tmp_path / name).read_bytes())
    with pytest.raises(FormatError, match=r"up to 5, got 1: the last 4 are missing.*ripplevec state cut"):
        Journal(tmp_path / "copy" / "journal.sqlite")
    with closing(Journal(tmp_path / "copy" / "journal.sqlite", read_only=True)) as read:
        assert "the last 4 batches are missing" in read.verify()[0]


def test_log_that_was_cut_between_two_transactions_is_noticed(journal_at: Any, tmp_path: Path) -> None:
    one = journal_at()
    for number in range(1, 7):
        one.append([entry(number)])
    (tmp_path / "copy").mkdir()
    for name in ("journal.sqlite", "journal.sqlite-wal", journal.MARKER):
        (tmp_path / "copy" / name).write_bytes((tmp_path / name).read_bytes())
    log = tmp_path / "copy" / "journal.sqlite-wal"
    data, size = log.read_bytes(), 4096 + 24
    ends = [at for at in range(32, len(data), size) if int.from_bytes(data[at + 4 : at + 8], "big")]
    log.write_bytes(data[: ends[-3] + size])
    with pytest.raises(FormatError, match="the last 2 are missing"):
        Journal(tmp_path / "copy" / "journal.sqlite")


def opened_rows(path: Path, **options: Any) -> list[Any] | str:
    """What the rows of a journal say, or why it cannot be opened."""
    try:
        with closing(Journal(path, **options)) as opened:
            return [found for _, found in seen(opened)]
    except FormatError as error:
        return str(error)


def test_bit_flips_in_the_schema_are_refused_and_can_be_mended(journal_at: Any) -> None:
    one = journal_at()
    one.append([entry(number, key=f"k{number}") for number in range(1, 4)])
    one.close()
    good, refused, mended = one.path.read_bytes(), 0, 0
    for at in [at for at in range(100, 4096) if good[at]][::17]:
        bad = bytearray(good)
        bad[at] ^= 1 << at % 8
        one.path.write_bytes(bad)
        found = opened_rows(one.path)
        if found != [1, 2, 3]:
            assert "ripplevec state cut" in found
            assert one.path.read_bytes() == bytes(bad)
            refused += 1
            mended += opened_rows(one.path, forgiving=True) == [1, 2, 3]
    assert refused > 20
    assert mended > refused // 2


@pytest.mark.parametrize("damage", ["UPDATE meta SET checksum = 3", "UPDATE meta SET value = x'ff'"])
def test_value_of_another_type_is_refused(journal_at: Any, damage: str) -> None:
    journal_at().close()
    tamper(journal_at().path, damage)
    with pytest.raises(FormatError, match="journal is damaged"):
        journal_at()


def test_journal_that_is_a_link_is_refused(journal_at: Any, tmp_path: Path) -> None:
    journal_at().close()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "journal.sqlite").symlink_to(tmp_path / "journal.sqlite")
    with pytest.raises(FormatError, match="expected a file, got a link"):
        Journal(tmp_path / "other" / "journal.sqlite")
