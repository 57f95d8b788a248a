"""Journals of older versions: how each becomes one of the next."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from ripplevec.durability import journal_database
from ripplevec.durability.idempotency_table import add_keys
from ripplevec.errors import FormatError

EMPTY: dict[str, Any] = {"last": 0, "first": 1, "keys": 0, "sources": {}, "sources_before": {}, "published": {}}
"""What is kept beside the batches of a new journal."""


def copy_in_memory(db: sqlite3.Connection) -> sqlite3.Connection:
    """The same tables in memory, to be brought up to date where the file must stay as it is."""
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    db.backup(copy)
    db.close()
    return copy


def _from_1(db: sqlite3.Connection) -> None:
    """Keys get checksums; positions and what is published move beside the number of the last batch."""
    (first,) = db.execute("SELECT min(sequence) FROM batches").fetchone()
    last = journal_database.meta(db)["last"]
    before = {source: (number, position) for source, number, position in _old_sources(db)}
    published = dict(db.execute("SELECT source, sequence FROM published").fetchall())
    keys = dict(db.execute("SELECT key, sequence FROM keys").fetchall())
    keys |= dict(db.execute("SELECT key, sequence FROM batches WHERE key IS NOT NULL").fetchall())
    journal_database.run_statements(
        db, f"DROP TABLE keys;\nDROP TABLE sources;\nDROP TABLE published;\n{journal_database.KEYS}"
    )
    add_keys(db, sorted(keys.items()))
    values = {
        "first": last + 1 if first is None else first,
        "keys": len(keys),
        "sources": before | _positions(db),
        "sources_before": before,
        "published": published,
    }
    for name, value in values.items():
        journal_database.set_meta(db, name, value)


def _old_sources(db: sqlite3.Connection) -> list[tuple[str, int, Any]]:
    found = []
    for *row, expected in db.execute("SELECT source, sequence, position, checksum FROM sources"):
        journal_database.check(expected, *row)
        found.append((row[0], row[1], json.loads(row[2])))
    return found


def _positions(db: sqlite3.Connection) -> dict[str, tuple[int, Any]]:
    """Where sources stand by their last batches."""
    last = db.execute("SELECT source, max(sequence) FROM batches WHERE source IS NOT NULL GROUP BY source").fetchall()
    found = {}
    for source, number in last:
        statement = "SELECT sequence, key, source, position, payload, checksum FROM batches WHERE sequence = ?"
        *row, payload, expected = db.execute(statement, (number,)).fetchone()
        if not journal_database.fits(expected, *row, payload=payload):
            raise FormatError(f"batch {number:,} does not fit its checksum, and it alone knows where {source!r} stands")
        found[source] = (number, json.loads(row[3]))
    return found


journal_database.MIGRATIONS[1] = _from_1
