"""The table of idempotency keys: every row has a checksum, and how many there are is known.

Whether a key is there decides whether a batch is applied again. So at opening the table is read once, in the order in
which SQLite would search it: rows that are as they were written, all of them, in order, are rows that will be found.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable

from ripplevec.errors import FormatError

_TABLE = "SELECT key, sequence, checksum FROM keys NOT INDEXED"
_BY_AGE = "SELECT key, sequence FROM keys INDEXED BY keys_by_age ORDER BY sequence"


def checksum(key: str, number: int) -> bytes:
    """Of a row; all rows are looked at in every opening, so that it has to be quick."""
    return hashlib.blake2b(f"{number} {key}".encode(), digest_size=16).digest()


def add_keys(db: sqlite3.Connection, keys: Iterable[tuple[str, int]]) -> None:
    """Keep the numbers that batches with these keys got; a key that is known is refused."""
    db.executemany("INSERT INTO keys VALUES (?, ?, ?)", ((key, number, checksum(key, number)) for key, number in keys))


def drop_keys(db: sqlite3.Connection, upto: int) -> int:
    """Forget the keys of batches up to a number; how many they were."""
    return db.execute("DELETE FROM keys WHERE sequence <= ?", (upto,)).rowcount


def find_key(db: sqlite3.Connection, key: str) -> int | None:
    """The number that the batch with this key got; None where it is not known."""
    found = db.execute("SELECT sequence, checksum FROM keys WHERE key = ?", (key,)).fetchone()
    if found is None:
        return None
    if found[1] != checksum(key, found[0]):
        raise FormatError(f"the key {key!r} does not fit its checksum")
    return int(found[0])


def sound_keys(db: sqlite3.Connection) -> tuple[dict[str, int], bool]:
    """The keys that are as they were written, and whether nothing else is in the table and all of it will be found."""
    sound: dict[str, int] = {}
    rows, before, in_order = 0, b"", True
    try:
        for key, number, expected in db.execute(_TABLE):
            rows += 1
            if isinstance(key, str) and isinstance(number, int) and expected == checksum(key, number):
                sound[key] = number
                text = key.encode()
                in_order &= text > before or rows == 1
                before = text
    except (sqlite3.Error, UnicodeDecodeError):
        return sound, False
    return sound, in_order and rows == len(sound)


def ages_fit(db: sqlite3.Connection, keys: dict[str, int]) -> bool:
    """Whether the index by which old keys are forgotten holds exactly these keys."""
    try:
        listed = db.execute(_BY_AGE).fetchall()
    except (sqlite3.Error, UnicodeDecodeError):
        return False
    numbers = [number for _, number in listed]
    return len(listed) == len(keys) and dict(listed) == keys and numbers == sorted(numbers)
