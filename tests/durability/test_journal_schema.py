from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec import Batch, Op
from ripplevec.batch import ids_to_list
from ripplevec.durability import journal_schema
from ripplevec.durability.journal import Journal, JournalEntry, _encode_row
from ripplevec.durability.journal_schema import (
    add_keys,
    age_index_matches,
    decode_batch,
    delete_keys,
    encode_batch,
    key_checksum,
    look_up_key,
    read_valid_keys,
    row_checksum,
)
from ripplevec.errors import FormatError

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


KEYS = {"a": 3, "é": 1, "b": 2}


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        journal_schema.run_statements(db, journal_schema.KEYS_TABLE)
        add_keys(db, KEYS.items())
        yield db


def test_add_keys_makes_keys_valid_and_findable(db: sqlite3.Connection) -> None:
    assert read_valid_keys(db) == (KEYS, True)
    assert age_index_matches(db, KEYS)
    assert [look_up_key(db, key) for key in (*KEYS, "c")] == [3, 1, 2, None]
    with pytest.raises(sqlite3.IntegrityError):
        add_keys(db, [("a", 9)])
    assert delete_keys(db, 2) == 2
    assert read_valid_keys(db) == ({"a": 3}, True)


@pytest.mark.parametrize("change", ["key = 'c'", "sequence = 7", "checksum = x'00'", "key = x'ff'"])
def test_read_valid_keys_changed_row_is_left_out(db: sqlite3.Connection, change: str) -> None:
    db.execute(f"UPDATE keys SET {change} WHERE key = 'b'")
    valid, complete = read_valid_keys(db)
    assert (valid, complete) == ({"a": 3, "é": 1}, False)
    if "key" not in change:
        with pytest.raises(FormatError, match="checksum"):
            look_up_key(db, "b")


def test_age_index_matches_other_keys_is_false(db: sqlite3.Connection) -> None:
    assert not age_index_matches(db, KEYS | {"a": 4})
    assert not age_index_matches(db, {"a": 3})


def test_key_checksum_distinguishes_keys_and_numbers() -> None:
    assert len({key_checksum("1 1", 1), key_checksum("1", 11), key_checksum("1", 1), key_checksum("11", 1)}) == 4


def make_entry(number: int, **options: Any) -> JournalEntry:
    return JournalEntry(Batch.of([number], ["b"], [2.0]), **options)


def test_migrate_older_version_runs_each_step_in_a_transaction(
    journal_at: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = journal_at()
    journal.append([JournalEntry(Batch.of(["a"], ["b"]))])
    journal.close()

    def add_color(db: sqlite3.Connection) -> None:
        db.execute("ALTER TABLE batches ADD COLUMN color TEXT DEFAULT 'blue'")

    def fail(db: sqlite3.Connection) -> None:
        db.execute("DELETE FROM batches")
        raise RuntimeError("interrupted")

    monkeypatch.setattr(journal_schema, "check_schema", lambda db: None)
    monkeypatch.setattr(journal_schema, "VERSION", 4)
    monkeypatch.setattr(journal_schema, "MIGRATIONS", {2: add_color, 3: fail})
    with pytest.raises(RuntimeError):
        journal_at()
    monkeypatch.setitem(journal_schema.MIGRATIONS, 3, lambda db: None)
    migrated = journal_at()
    assert migrated.metadata["version"] == 4
    with closing(sqlite3.connect(migrated.path)) as db:
        assert db.execute("SELECT color FROM batches").fetchall() == [("blue",)]


def test_migrate_newer_version_raises_format_error(journal_at: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as future:
        future.setattr(journal_schema, "VERSION", 3)
        journal_at().close()
    with pytest.raises(
        FormatError, match=r"newer Ripplevec: expected journal version 2 or older, got 3\. To upgrade: "
    ):
        journal_at()


def test_migrate_from_version_1_keeps_keys_positions_and_batches(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in VERSION_1.split(";\n"):
            db.execute(statement)
        for name, value in {"version": 1, "last": 4, "made": "long ago"}.items():
            journal_schema.write_metadata(db, name, value)
        for sequence in (3, 4):
            values = _encode_row(sequence, make_entry(sequence, key=f"k{sequence}", source="s", position=sequence))
            db.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?)", values)
        db.executemany("INSERT INTO keys VALUES (?, ?)", [(f"k{number}", number) for number in (1, 2, 3)])
        for source, number in (("s", 2), ("t", 1)):
            row = source, number, json.dumps(number)
            db.execute("INSERT INTO sources VALUES (?, ?, ?, ?)", (*row, row_checksum(*row)))
        db.execute("INSERT INTO published VALUES ('s', 3)")
    with closing(Journal(path, read_only=True)) as reader:
        assert (reader.first, reader.last, reader.sources) == (3, 4, {"s": 4, "t": 1})
    with closing(sqlite3.connect(path)) as db:
        assert len(db.execute("SELECT * FROM published").fetchall()) == 1  # reading does not change the file
    with closing(Journal(path)) as journal:
        assert (journal.first, journal.last, journal.metadata["version"], journal.sources) == (
            3,
            4,
            2,
            {"s": 4, "t": 1},
        )
        assert [journal.find_key(f"k{number}") for number in range(1, 6)] == [1, 2, 3, 4, None]
        assert (journal.first_unpublished(), journal.verify()) == ({"s": 4}, [])
        rows = [(row.sequence, row.entry and ids_to_list(row.entry.batch.src)) for row in journal.read_rows(2)]
        assert rows == [(3, [3]), (4, [4])]
        journal.append([make_entry(5, key="k5", source="t", position=9)])
    with closing(Journal(path)) as reopened:
        assert (reopened.find_key("k5"), reopened.position("t"), reopened.notes) == (5, 9, [])


VERTEX_IDS = st.one_of(st.integers(-3, 3), st.integers(-(2**200), 2**200), st.text(max_size=5))


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """Batches with any operations on ids of every kind, including ones that cannot be applied."""
    ids = draw(st.sampled_from([st.integers(0, 9), st.text(max_size=4), VERTEX_IDS]))
    size = draw(st.integers(0, 6))

    def column(values: Any) -> list[Any]:
        return draw(st.lists(values, min_size=size, max_size=size))

    weight = column(st.floats(0.25, 8.0)) if draw(st.booleans()) else None
    op = column(st.sampled_from(list(Op))) if draw(st.booleans()) else None
    time = column(st.floats(-1e9, 1e9)) if draw(st.booleans()) else None
    return Batch.of(column(ids), column(ids), weight, op, time)


def _typed(column: Any) -> list[tuple[type, Any]]:
    return [(type(vertex), vertex) for vertex in ids_to_list(column)]


@given(batch=batches())
def test_encode_batch_round_trip_preserves_values_and_types(batch: Batch) -> None:
    decoded = decode_batch(encode_batch(batch))
    for name in ("src", "dst"):
        before, after = getattr(batch, name), getattr(decoded, name)
        assert _typed(after) == _typed(before)
    for name in ("weight", "op", "time"):
        before, after = getattr(batch, name), getattr(decoded, name)
        assert (before is None) == (after is None)
        if before is not None:
            assert after.dtype == before.dtype
            np.testing.assert_array_equal(after, before)


def test_encode_batch_ids_of_one_type_stay_arrays() -> None:
    assert isinstance(decode_batch(encode_batch(Batch.of([1], [2]))).src, np.ndarray)
    assert not isinstance(decode_batch(encode_batch(Batch.of(["a"], ["b"]))).src, list)
    assert isinstance(decode_batch(encode_batch(Batch.of([1, "a"], ["b", 2]))).src, list)


def test_encode_batch_integer_beyond_decimal_limit_round_trips() -> None:
    vertex = 10**5000
    assert ids_to_list(decode_batch(encode_batch(Batch.of([vertex], [-vertex]))).dst) == [-vertex]


@given(payload=st.binary(max_size=40))
def test_decode_batch_arbitrary_bytes_raises_format_error(payload: bytes) -> None:
    with pytest.raises(FormatError, match="expected the bytes of an encoded batch"):
        decode_batch(payload)


def test_decode_batch_truncated_payload_raises_format_error() -> None:
    payload = encode_batch(Batch.of(list(range(100)), list(range(100))))
    for size in range(0, len(payload) - 8, 97):
        with pytest.raises(FormatError, match="expected the bytes of an encoded batch"):
            decode_batch(payload[:size])
