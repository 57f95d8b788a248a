"""Content of the journal database: its tables, encoded batches, row checksums, metadata, idempotency keys, migrations.

Every row has a checksum, because SQLite does not notice bytes that were flipped within a value.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ripplevec.attributes.input import read_values
from ripplevec.batch import AttributeRows, Batch, Id, IdColumn, ids_to_list
from ripplevec.durability.journal_database import BEGIN
from ripplevec.errors import FormatError, shorten
from ripplevec.install_hint import upgrade_advice
from ripplevec.io.arrow_ipc import encode_arrow_stream, unpacked_size

VERSION = 2
"""Version of the tables. A change to `TABLES` raises it and adds an entry to `MIGRATIONS`."""

KEYS_TABLE = """\
CREATE TABLE keys (key TEXT PRIMARY KEY, sequence INTEGER NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX keys_by_age ON keys (sequence);
"""
TABLES = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE batches (
    sequence INTEGER PRIMARY KEY, checksum BLOB NOT NULL, key TEXT, source TEXT, position TEXT, payload BLOB NOT NULL
);
{KEYS_TABLE}"""

EMPTY_METADATA: dict[str, Any] = {
    "last": 0,
    "first": 1,
    "keys": 0,
    "sources": {},
    "sources_before": {},
    "published": {},
}
"""Metadata of a new journal, besides the parameters of its model."""

Row: TypeAlias = tuple[int, bytes, str | None, str | None, str | None, bytes]
"""Values of a row of the table `batches`, in the order of its columns."""

ATTRIBUTE_VALUES, ATTRIBUTE_NAMES = ATTRIBUTE_COLUMNS = ("attribute_values", "attribute_names")
"""Columns of an encoded batch with attributes."""

_MIXED_IDS = {b"ids": b"mixed"}
"""Field metadata of a column with integer and text ids, or integers beyond 64 bits: text with a letter for the kind."""


# ---------------------------------------------------------------------- tables


def create_tables(db: sqlite3.Connection, metadata: Mapping[str, Any]) -> None:
    """Create empty tables and store metadata."""
    with db:
        db.execute(BEGIN)
        run_statements(db, TABLES)
        for name, value in metadata.items():
            write_metadata(db, name, value)


def run_statements(db: sqlite3.Connection, statements: str) -> None:
    """Execute statements one by one within the open transaction."""
    for statement in statements.split(";\n"):
        db.execute(statement)


def is_empty(db: sqlite3.Connection) -> bool:
    """Return whether no table was ever created here; an interrupted attempt leaves at most one empty page."""
    if db.execute("SELECT 1 FROM sqlite_master").fetchone() is not None:
        return False
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    if pages > 1:
        raise FormatError(f"expected tables, got none in {pages:,} pages")
    return True


def check_schema(db: sqlite3.Connection) -> None:
    """Raise if the table descriptions differ from `TABLES`: a flipped bit there makes good rows unreadable."""
    found, expected = _read_schema(db), _expected_schema()
    if found != expected:
        names = sorted({str(row[1]) for row in set(found) ^ set(expected)})
        raise FormatError(f"the description of {', '.join(names)} was changed; the batches may be intact")


def _read_schema(db: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """Return SQLite's description of its tables and indexes: type, name, table, statement."""
    return sorted(db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall(), key=str)


def _expected_schema() -> list[tuple[Any, ...]]:
    """Return SQLite's description of newly created tables."""
    with closing(sqlite3.connect(":memory:")) as db:
        run_statements(db, TABLES)
        return _read_schema(db)


def repair_schema(db: sqlite3.Connection) -> None:
    """Restore the statements in SQLite's table descriptions; their page numbers are left as they are.

    Files of older versions, and files that lost the description of a table altogether, are left unchanged.
    """
    rowid_by_name = {name: rowid for rowid, name in db.execute("SELECT rowid, name FROM sqlite_master").fetchall()}
    expected = _expected_schema()
    if len(rowid_by_name) == len(expected) and _read_schema(db) != expected:
        expected_names = {name for _, name, _, _ in expected}
        damaged_names = iter([rowid for name, rowid in rowid_by_name.items() if name not in expected_names])
        with db:
            db.execute(BEGIN)
            for kind, name, table, sql in expected:
                update = "UPDATE sqlite_master SET type = ?, name = ?, tbl_name = ?, sql = ? WHERE rowid = ?"
                rowid = rowid_by_name[name] if name in rowid_by_name else next(damaged_names, None)
                db.execute(update, (kind, name, table, sql, rowid))
    db.execute("PRAGMA writable_schema = RESET")


# ---------------------------------------------------------------------- batches


def encode_batch(batch: Batch) -> bytes:
    """Encode a batch as an Arrow IPC stream."""
    columns = [_encode_ids("src", batch.src), _encode_ids("dst", batch.dst)]
    for name in ("weight", "op", "time"):
        if (column := getattr(batch, name)) is not None:
            array = pa.array(column)
            columns.append((pa.field(name, array.type), array))
    if batch.attributes is not None:
        columns += _encode_attributes(batch.attributes, len(batch))
    record = pa.record_batch([array for _, array in columns], schema=pa.schema([field for field, _ in columns]))
    return encode_arrow_stream(record)


def decode_batch(payload: bytes) -> Batch:
    """Decode and validate a batch; raise `FormatError` for bytes that `encode_batch` did not write."""
    try:
        unpacked_size(payload)  # raises an error for compressed buffers, which are never written
        with pa.ipc.open_stream(pa.py_buffer(payload)) as stream:
            record = stream.read_next_batch()
        record.validate(full=True)
        attributes = _decode_attributes(record) if ATTRIBUTE_VALUES in record.schema.names else None
        edges = record.select([name for name in record.schema.names if name not in ATTRIBUTE_COLUMNS])
        columns = {field.name: _decode_column(field, edges.column(field.name)) for field in edges.schema}
        batch = Batch.of(**columns)
        return Batch.from_checked_columns(batch.src, batch.dst, batch.weight, batch.op, batch.time, attributes)
    except (pa.ArrowException, OSError, LookupError, StopIteration, TypeError, ValueError) as error:
        raise FormatError(
            f"invalid batch payload: expected the bytes of an encoded batch, got other bytes ({error})"
        ) from error


def _encode_ids(name: str, column: IdColumn) -> tuple[pa.Field, pa.Array]:
    if isinstance(column, list):
        texts = pa.array(map(_id_to_text, column), pa.large_string())
        return pa.field(name, pa.large_string(), metadata=_MIXED_IDS), texts
    array = pa.array(column)
    return pa.field(name, array.type), array


def _decode_column(field: pa.Field, array: pa.Array) -> Any:
    return [_text_to_id(text) for text in array.to_pylist()] if field.metadata == _MIXED_IDS else array


def _encode_attributes(rows: AttributeRows, length: int) -> list[tuple[pa.Field, pa.Array]]:
    """Encode attributes as lists of names and values in the last rows of the batch, which create their vertices."""
    begin = np.concatenate([np.zeros(length - len(rows.ids), np.int64), rows.begin])
    described = json.dumps({"rows": len(rows.ids), "labels": rows.labels}).encode()
    values = pa.LargeListArray.from_arrays(begin, rows.values.ravel())
    encoded = [(pa.field(ATTRIBUTE_VALUES, values.type, metadata={"attributes": described}), values)]
    if rows.names is not None:
        texts = pa.array(map(_id_to_text, ids_to_list(rows.names)), pa.large_string())
        names = pa.LargeListArray.from_arrays(begin, texts.take(pa.array(rows.columns)))
        encoded.append((pa.field(ATTRIBUTE_NAMES, names.type), names))
    return encoded


def _decode_attributes(record: pa.RecordBatch) -> AttributeRows:
    """Decode and validate attributes."""
    described = json.loads(record.schema.field(ATTRIBUTE_VALUES).metadata[b"attributes"])
    first = len(record) - int(described["rows"])
    source = record.schema.get_field_index("src")
    ids = _decode_column(record.schema.field(source), record.column(source).slice(first))
    values = record.column(ATTRIBUTE_VALUES).slice(first).to_pylist()
    if ATTRIBUTE_NAMES not in record.schema.names:
        return read_values(ids, np.array(values, np.float32), described["labels"])
    names = record.column(ATTRIBUTE_NAMES).slice(first).to_pylist()
    pairs = zip(names, values, strict=True)
    return read_values(ids, [dict(zip(map(_text_to_id, row), line, strict=True)) for row, line in pairs])


def _id_to_text(vertex: Id) -> str:
    return f"s{vertex}" if isinstance(vertex, str) else f"i{vertex:x}"  # Python limits the length of decimal output


def _text_to_id(text: str) -> Id:
    return text[1:] if text[0] == "s" else int(text[1:], 16)


# ---------------------------------------------------------------------- rows and their checksums


def encode_row(sequence: int, key: str | None, source: str | None, position: str | None, batch: Batch) -> Row:
    """Return the values of a row of the table `batches`; `position` is JSON text."""
    payload = encode_batch(batch)
    checksum = row_checksum(sequence, key, source, position, payload=payload)
    return sequence, checksum, key, source, position, payload


def row_checksum(*values: Any, payload: bytes = b"") -> bytes:
    """Return the checksum of the values in a row."""
    digest = hashlib.blake2b(payload, digest_size=16)
    digest.update(json.dumps(values).encode())
    return digest.digest()


def checksum_matches(expected: Any, *values: Any, payload: Any = b"") -> bool:
    """Return whether a row matches its checksum; a flipped bit may also have changed the type of a value."""
    try:
        return row_checksum(*values, payload=payload) == expected
    except (TypeError, ValueError):
        return False


def _verify_checksum(expected: Any, *values: Any) -> None:
    if not checksum_matches(expected, *values):
        raise FormatError(f"a value does not match its checksum: {shorten(values)}")


# ---------------------------------------------------------------------- metadata


def read_metadata(db: sqlite3.Connection) -> dict[str, Any]:
    """Read and check all metadata."""
    metadata = {}
    for name, value, checksum in db.execute("SELECT name, value, checksum FROM meta"):
        _verify_checksum(checksum, name, value)
        try:
            metadata[name] = json.loads(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise FormatError(f"{name}: expected JSON, got {shorten(value)}") from error
    return metadata


def write_metadata(db: sqlite3.Connection, name: str, value: Any) -> None:
    """Store one metadata value."""
    text = json.dumps(value)
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (name, text, row_checksum(name, text)))


# ---------------------------------------------------------------------- idempotency keys
#
# A key in the table decides whether a batch is applied again. Opening a journal therefore reads the table once, in the
# order in which SQLite searches it: if all rows match their checksums and are in order, SQLite will find every key.


def key_checksum(key: str, sequence: int) -> bytes:
    """Return the checksum of a key row; simpler than `row_checksum`, because every opening checks all keys."""
    return hashlib.blake2b(f"{sequence} {key}".encode(), digest_size=16).digest()


def add_keys(db: sqlite3.Connection, keys: Iterable[tuple[str, int]]) -> None:
    """Store keys with the sequence numbers of their batches; a key that exists raises `sqlite3.IntegrityError`."""
    rows = ((key, sequence, key_checksum(key, sequence)) for key, sequence in keys)
    db.executemany("INSERT INTO keys VALUES (?, ?, ?)", rows)


def delete_keys(db: sqlite3.Connection, up_to: int) -> int:
    """Delete the keys of batches up to a sequence number; return how many there were."""
    return db.execute("DELETE FROM keys WHERE sequence <= ?", (up_to,)).rowcount


def look_up_key(db: sqlite3.Connection, key: str) -> int | None:
    """Return the sequence number of the batch with a key; None if there is none."""
    row = db.execute("SELECT sequence, checksum FROM keys WHERE key = ?", (key,)).fetchone()
    if row is None:
        return None
    if row[1] != key_checksum(key, row[0]):
        raise FormatError(f"the key {key!r} does not match its checksum")
    return int(row[0])


def read_valid_keys(db: sqlite3.Connection) -> tuple[dict[str, int], bool]:
    """Return the keys that match their checksums, and whether the table has no other rows and is in order."""
    valid: dict[str, int] = {}
    rows, previous, in_order = 0, b"", True
    try:
        for key, sequence, checksum in db.execute("SELECT key, sequence, checksum FROM keys NOT INDEXED"):
            rows += 1
            if isinstance(key, str) and isinstance(sequence, int) and checksum == key_checksum(key, sequence):
                valid[key] = sequence
                text = key.encode()
                in_order &= text > previous or rows == 1
                previous = text
    except (sqlite3.Error, UnicodeDecodeError):
        return valid, False
    return valid, in_order and rows == len(valid)


def age_index_matches(db: sqlite3.Connection, keys: dict[str, int]) -> bool:
    """Return whether the index that finds old keys contains exactly the given keys."""
    try:
        rows = db.execute("SELECT key, sequence FROM keys INDEXED BY keys_by_age ORDER BY sequence").fetchall()
    except (sqlite3.Error, UnicodeDecodeError):
        return False
    sequences = [sequence for _, sequence in rows]
    return len(rows) == len(keys) and dict(rows) == keys and sequences == sorted(sequences)


# ---------------------------------------------------------------------- migrations


def migrate(path: Path, db: sqlite3.Connection) -> None:
    """Bring a journal of an older version up to `VERSION`, one transaction per version; raise for a newer one."""
    version = read_metadata(db).get("version", 0)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise FormatError(f"version: expected an integer ≥ 1, got {shorten(version)}")
    if version > VERSION:
        raise FormatError(
            f"{path}: written by a newer Ripplevec: expected journal version {VERSION} or older, got {version}. "
            f"To upgrade: {upgrade_advice()}"
        )
    while version < VERSION:
        with db:
            db.execute(BEGIN)
            MIGRATIONS[version](db)
            version += 1
            write_metadata(db, "version", version)


def copy_to_memory(db: sqlite3.Connection) -> sqlite3.Connection:
    """Copy a database into memory and close it, to migrate it where the file must not change."""
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    db.backup(copy)
    db.close()
    return copy


def _migrate_from_1(db: sqlite3.Connection) -> None:
    """Add checksums to the keys; move source positions and published batches from tables into the metadata."""
    (first,) = db.execute("SELECT min(sequence) FROM batches").fetchone()
    last = read_metadata(db)["last"]
    compacted = _read_version_1_sources(db)
    published = dict(db.execute("SELECT source, sequence FROM published").fetchall())
    keys = dict(db.execute("SELECT key, sequence FROM keys").fetchall())
    keys |= dict(db.execute("SELECT key, sequence FROM batches WHERE key IS NOT NULL").fetchall())
    run_statements(db, f"DROP TABLE keys;\nDROP TABLE sources;\nDROP TABLE published;\n{KEYS_TABLE}")
    add_keys(db, sorted(keys.items()))
    metadata = {
        "first": last + 1 if first is None else first,
        "keys": len(keys),
        "sources": compacted | _read_last_positions(db),
        "sources_before": compacted,
        "published": published,
    }
    for name, value in metadata.items():
        write_metadata(db, name, value)


def _read_version_1_sources(db: sqlite3.Connection) -> dict[str, tuple[int, Any]]:
    """Return the last batch and position of each source before the batches that are still in the journal."""
    positions = {}
    for *row, checksum in db.execute("SELECT source, sequence, position, checksum FROM sources"):
        _verify_checksum(checksum, *row)
        positions[row[0]] = (row[1], json.loads(row[2]))
    return positions


def _read_last_positions(db: sqlite3.Connection) -> dict[str, tuple[int, Any]]:
    """Return the last batch of each source in the journal, with the position after it."""
    last = db.execute("SELECT source, max(sequence) FROM batches WHERE source IS NOT NULL GROUP BY source").fetchall()
    positions = {}
    for source, sequence in last:
        statement = "SELECT sequence, key, source, position, payload, checksum FROM batches WHERE sequence = ?"
        *row, payload, checksum = db.execute(statement, (sequence,)).fetchone()
        if not checksum_matches(checksum, *row, payload=payload):
            raise FormatError(
                f"batch {sequence:,} does not match its checksum, and no other holds the position of {source!r}"
            )
        positions[source] = (sequence, json.loads(row[3]))
    return positions


MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {1: _migrate_from_1}
"""For each older version, the function that migrates a journal to the next one, within a transaction."""
