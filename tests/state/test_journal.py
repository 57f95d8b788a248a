from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ripplet import Batch
from ripplet.errors import FormatError, StateError
from ripplet.events import as_list
from ripplet.state import database, journal
from ripplet.state.journal import Entry, Journal


def entry(number: int, **beside: Any) -> Entry:
    return Entry(Batch.of([number], ["b"], [2.0]), **beside)


def seen(opened: Journal, after: int = 0) -> list[tuple[int, Any]]:
    """The numbers of the rows, and the one id that tells them apart; where a row is bad, what is wrong."""
    return [
        (row.sequence, row.fault if row.entry is None else as_list(row.entry.batch.src)[0])
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
        one.append([Entry(Batch.of(list(range(2000)), list(range(2000))))])
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
        ("UPDATE batches SET payload = 3 WHERE sequence = 2", "cannot be understood"),
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
        patch.setattr(database, "put_in_place", crash)
        with pytest.raises(OSError, match="crash"):
            one.cut(2)
    again = journal_at()
    assert again.last == 3
    with monkeypatch.context() as patch:
        patch.setattr(database, "settle", crash)  # the old one is aside, the new one not yet in its place
        with pytest.raises(OSError, match="crash"):
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
    with pytest.raises(FormatError, match=r"would be lost.*ripplet state cut"):
        Journal(tmp_path / "other" / "journal.sqlite")
    assert (tmp_path / "other" / "journal.sqlite-wal").read_bytes() == bytes(bad)
    with closing(Journal(tmp_path / "other" / "journal.sqlite", forgiving=True)) as forgiven:
        assert 0 < forgiven.last < 9
        assert seen(forgiven) == [(number + 1, number) for number in range(forgiven.last)]


def test_a_damaged_position_is_not_believed(journal_at: Any) -> None:
    one = journal_at()
    one.append([entry(1, source="s", position="here"), entry(2, source="t", position=3), entry(3)])
    one.close()
    tamper(one.path, "UPDATE batches SET position = '\"there\"' WHERE sequence = 1")
    again = journal_at()
    assert again.position("t") == 3
    with pytest.raises(FormatError, match=r"batch 1 .* where 's' stands"):
        again.position("s")
    again.compact(3, now=True)
    assert again.first == 1
    again.append([entry(4, source="s", position="now")])
    assert again.position("s") == "now"


@pytest.mark.parametrize("table", ["meta", "sources"])
def test_a_damaged_value_beside_the_batches_is_told(journal_at: Any, table: str) -> None:
    one = journal_at()
    one.append([entry(1, source="s", position=1)])
    one.compact(1, now=True)
    one.close()
    tamper(one.path, f"UPDATE {table} SET {'value' if table == 'meta' else 'position'} = '7'")
    with pytest.raises(FormatError, match=r"does not fit its checksum.*restore"):
        journal_at()
