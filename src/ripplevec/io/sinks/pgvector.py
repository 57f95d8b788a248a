"""pgvector sink: a PostgreSQL table with the current vector of every vertex, kept in step with a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ripplevec.batch import Id
from ripplevec.errors import InvalidValueError, MissingExtraError
from ripplevec.io.sinks.vector_store import VectorRows, VectorStoreSink

if TYPE_CHECKING:
    from psycopg import Connection, Cursor
    from psycopg.sql import Composed

_CREATE_TABLE = """CREATE TABLE IF NOT EXISTS {table} (
    id text NOT NULL, integer boolean NOT NULL, sequence bigint NOT NULL, vector vector({dim}) NOT NULL,
    PRIMARY KEY (id, integer)
)"""
_CREATE_STAGING = "CREATE TEMPORARY TABLE staging (LIKE {table}) ON COMMIT DROP"
_COPY = "COPY staging (id, integer, sequence, vector) FROM STDIN"
_UPSERT = """INSERT INTO {table} SELECT * FROM staging
    ON CONFLICT (id, integer) DO UPDATE SET sequence = excluded.sequence, vector = excluded.vector"""
_DELETE_OTHERS = """DELETE FROM {table} AS kept WHERE NOT EXISTS
    (SELECT FROM staging WHERE staging.id = kept.id AND staging.integer = kept.integer)"""
_DELETE = "DELETE FROM {table} WHERE (id, integer) IN (SELECT * FROM unnest(%s::text[], %s::boolean[]))"
_DIMENSION = "SELECT atttypmod FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = 'vector'"


class PgvectorSink(VectorStoreSink):
    """`postgresql://USER:PASSWORD@HOST:PORT/DATABASE?table=vertices`: one row per vertex, with its current vector.

    The columns are those of a LanceDB table: `id` (text), `integer` (whether the id is an integer), `sequence` (of the
    last batch that moved the vertex) and `vector`. The table is created with the first changes, and the extension
    `vector` too if the user may create it. Each flush is one transaction: readers see all of it or nothing.
    """

    def __init__(self, address: str, *, table: str = "vertices") -> None:
        try:
            import psycopg
        except ImportError as error:
            raise MissingExtraError("a pgvector sink", "pgvector") from error
        super().__init__()
        self._address, self._table_name = address, table
        self._connect = psycopg.connect
        self._connection: Connection[Any] | None = None

    def close(self) -> None:
        """Write the queued changes and close the connection."""
        super().close()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _apply(self, updated: VectorRows | None, removed: Sequence[Id]) -> None:
        with self._transaction() as cursor:
            if updated is not None:
                self._stage(cursor, updated)
                cursor.execute(self._statement(_UPSERT))
            if removed and self._dimension(cursor) is not None:
                texts, integers = [_text(name) for name in removed], [isinstance(name, int) for name in removed]
                cursor.execute(self._statement(_DELETE), (texts, integers))

    def _replace_all(self, rows: VectorRows) -> None:
        with self._transaction() as cursor:
            self._stage(cursor, rows)
            cursor.execute(self._statement(_DELETE_OTHERS))
            cursor.execute(self._statement(_UPSERT))

    def _newest_sequence_and_size(self) -> tuple[int, int]:
        with self._transaction() as cursor:
            if self._dimension(cursor) is None:
                return -1, 0
            cursor.execute(self._statement("SELECT coalesce(max(sequence), -1), count(*) FROM {table}"))
            newest, size = cursor.fetchone() or (-1, 0)
        return int(newest), int(size)

    @contextmanager
    def _transaction(self) -> Iterator[Cursor[Any]]:
        """Run a block as one transaction, on a new connection if there is none or the last one has failed."""
        if self._connection is None or self._connection.closed:
            self._connection = self._connect(self._address, autocommit=True)
        with self._connection.transaction(), self._connection.cursor() as cursor:
            yield cursor

    def _stage(self, cursor: Cursor[Any], rows: VectorRows) -> None:
        """Copy rows to a temporary table; create the real one if it does not exist."""
        self._prepare_table(cursor, rows.vectors.shape[1])
        cursor.execute(self._statement(_CREATE_STAGING))
        with cursor.copy(_COPY) as copy:
            for name, sequence, vector in zip(rows.ids, rows.sequences.tolist(), rows.vectors.tolist(), strict=True):
                # Python writes enough digits for the database to read the same bits.
                copy.write_row((_text(name), isinstance(name, int), sequence, f"[{','.join(map(repr, vector))}]"))

    def _prepare_table(self, cursor: Cursor[Any], dim: int) -> None:
        existing = self._dimension(cursor)
        if existing is None:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
            cursor.execute(self._statement(_CREATE_TABLE, dim=dim))
        elif existing != dim:
            raise InvalidValueError.of(f"table {self._table_name}, vector", f"vector({dim})", f"vector({existing})")

    def _dimension(self, cursor: Cursor[Any]) -> int | None:
        """Return the dimension of the vectors in the table; None if it does not exist."""
        cursor.execute(_DIMENSION, (self._statement("{table}").as_string(cursor),))
        row = cursor.fetchone()
        return None if row is None else int(row[0])

    def _statement(self, text: str, **values: int) -> Composed:
        from psycopg import sql

        table = sql.Identifier(*self._table_name.split("."))
        return sql.SQL(text).format(table=table, **{name: sql.Literal(value) for name, value in values.items()})


def _text(name: Id) -> str:
    text = str(name)
    if "\0" in text:
        raise InvalidValueError.of("id", "text without a NUL character, which PostgreSQL cannot store", text)
    return text
