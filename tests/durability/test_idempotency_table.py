from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from ripplevec.durability import journal_database
from ripplevec.durability.idempotency_table import add_keys, ages_fit, checksum, drop_keys, find_key, sound_keys
from ripplevec.errors import FormatError

KEYS = {"a": 3, "é": 1, "b": 2}


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        journal_database.run_statements(db, journal_database.KEYS)
        add_keys(db, KEYS.items())
        yield db


def test_keys_that_were_added_are_sound_and_found(db: sqlite3.Connection) -> None:
    assert sound_keys(db) == (KEYS, True)
    assert ages_fit(db, KEYS)
    assert [find_key(db, key) for key in (*KEYS, "c")] == [3, 1, 2, None]
    with pytest.raises(sqlite3.IntegrityError):
        add_keys(db, [("a", 9)])
    assert drop_keys(db, 2) == 2
    assert sound_keys(db) == ({"a": 3}, True)


@pytest.mark.parametrize("change", ["key = 'c'", "sequence = 7", "checksum = x'00'", "key = x'ff'"])
def test_key_that_was_changed_is_not_sound(db: sqlite3.Connection, change: str) -> None:
    db.execute(f"UPDATE keys SET {change} WHERE key = 'b'")
    found, sound = sound_keys(db)
    assert (found, sound) == ({"a": 3, "é": 1}, False)
    if "key" not in change:
        with pytest.raises(FormatError, match="checksum"):
            find_key(db, "b")


def test_ages_of_other_keys_do_not_fit(db: sqlite3.Connection) -> None:
    assert not ages_fit(db, KEYS | {"a": 4})
    assert not ages_fit(db, {"a": 3})


def test_checksum_tells_keys_and_numbers_apart() -> None:
    assert len({checksum("1 1", 1), checksum("1", 11), checksum("1", 1), checksum("11", 1)}) == 4
