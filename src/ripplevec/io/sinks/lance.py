"""LanceDB sink: a table with the current vector of every vertex, kept in sync with a model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from ripplevec.batch import Id
from ripplevec.errors import InvalidValueError, MissingExtraError
from ripplevec.io.sinks.vector_store import VectorRows, VectorStoreSink
from ripplevec.io.vector_files import vectors_to_arrow

FLUSHES_PER_COMPACTION = 256
"""Flushes after which small fragments are merged and old table versions are deleted."""

_VERSION_LIFETIME = timedelta(hours=1)  # a reader may use the table version it opened for this long
_IDS_PER_CONDITION = 1000


class LanceSink(VectorStoreSink):
    """`lancedb://DIRECTORY?table=vertices`: one row per vertex, with its vector after the last batch that moved it.

    The columns are `id` (text), `integer` (whether the id is an integer), `sequence` (of that batch) and `vector`.
    The table is created with the first changes.
    """

    def __init__(self, directory: str | os.PathLike[str], *, table: str = "vertices") -> None:
        try:
            import lancedb
        except ImportError as error:
            raise MissingExtraError("a LanceDB sink", "lancedb") from error
        super().__init__()
        self._database, self._table_name = lancedb.connect(directory), table
        self._table: Any = None
        self._flush_count = 0

    def _apply(self, updated: VectorRows | None, removed: Sequence[Id]) -> None:
        if updated is not None:
            table_rows = _build_rows(updated)
            self._prepare_upsert(table_rows.schema).execute(table_rows)
        if removed and self._open_table() is not None:
            for condition in _id_conditions(removed):
                self._table.delete(condition)
        self._compact_if_due()

    def _replace_all(self, rows: VectorRows) -> None:
        table_rows = _build_rows(rows)
        self._prepare_upsert(table_rows.schema).when_not_matched_by_source_delete().execute(table_rows)

    def _prepare_upsert(self, schema: pa.Schema) -> Any:
        """Return an operation that updates rows with the same id and inserts the others."""
        table = self._open_table(schema)
        return table.merge_insert(["id", "integer"]).when_matched_update_all().when_not_matched_insert_all()

    def _open_table(self, schema: pa.Schema | None = None) -> Any:
        """Return the table; if it does not exist, create it with the schema, or return None if none is given."""
        if self._table is None:
            if self._table_name in self._database.list_tables(limit=1 << 20).tables:
                self._table = self._database.open_table(self._table_name)
            elif schema is not None:
                self._table = self._database.create_table(self._table_name, schema=schema)
        if self._table is not None and schema is not None:
            self._check_schema(schema)
        return self._table

    def _check_schema(self, expected: pa.Schema) -> None:
        existing = self._table.schema
        for field in expected:
            if field.name not in existing.names or existing.field(field.name).type != field.type:
                got = existing.field(field.name).type if field.name in existing.names else "a table without it"
                raise InvalidValueError.of(f"table {self._table_name}, {field.name}", str(field.type), str(got))

    def _newest_sequence_and_size(self) -> tuple[int, int]:
        if self._open_table() is None or not len(self._table):
            return -1, 0
        sequences = self._table.search().select(["sequence"]).limit(None).to_arrow()["sequence"].to_numpy()
        return int(sequences.max()), len(sequences)

    def _compact_if_due(self) -> None:
        self._flush_count += 1
        if self._flush_count % FLUSHES_PER_COMPACTION == 0 and self._open_table() is not None:
            self._table.optimize(cleanup_older_than=_VERSION_LIFETIME)


def _build_rows(rows: VectorRows) -> pa.Table:
    columns = {
        "id": pa.array(map(str, rows.ids), pa.string()),
        "integer": np.fromiter((isinstance(name, int) for name in rows.ids), bool, len(rows.ids)),
        "sequence": rows.sequences,
        "vector": vectors_to_arrow(rows.vectors),
    }
    return pa.table(columns)


def _id_conditions(ids: Sequence[Id]) -> Iterator[str]:
    """Yield SQL conditions that together match exactly these ids."""
    for integer in (False, True):
        names = [str(name) for name in ids if isinstance(name, int) is integer]
        for first in range(0, len(names), _IDS_PER_CONDITION):
            texts = ", ".join("'" + name.replace("'", "''") + "'" for name in names[first : first + _IDS_PER_CONDITION])
            yield f"integer = {str(integer).lower()} AND id IN ({texts})"
