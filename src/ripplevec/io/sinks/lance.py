"""LanceDB sink: a table with the current vector of every vertex, kept in sync with a model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ripplevec.batch import Id
from ripplevec.changes import Changes
from ripplevec.errors import InvalidValueError, MissingExtraError
from ripplevec.io.vector_files import vectors_to_arrow

if TYPE_CHECKING:
    from ripplevec.embedder import Embedder

MAX_QUEUED_ROWS = 1 << 17
"""Largest number of vertices queued; once it is reached, the sink flushes by itself."""

FLUSHES_PER_COMPACTION = 256
"""Flushes after which small fragments are merged and old table versions are deleted."""

_VERSION_LIFETIME = timedelta(hours=1)  # a reader may use the table version it opened for this long
_IDS_PER_CONDITION = 1000


class LanceSink:
    """`lancedb://DIRECTORY?table=vertices`: one row per vertex, with its vector after the last batch that moved it.

    The columns are `id` (text), `integer` (whether the id is an integer), `sequence` (of that batch) and `vector`.
    Writing the same changes again has no effect. The table is created with the first changes.
    """

    def __init__(self, directory: str | os.PathLike[str], *, table: str = "vertices") -> None:
        try:
            import lancedb
        except ImportError as error:
            raise MissingExtraError("a LanceDB sink", "lancedb") from error
        self._database, self._table_name = lancedb.connect(directory), table
        self._table: Any = None
        self._queued: dict[Id, tuple[Changes, int] | None] = {}  # changes and row in them; None: vertex removed
        self._flush_count = 0

    def write(self, changes: Changes) -> None:
        """Queue the changes of one batch for the next flush; they replace queued changes of the same vertices."""
        self._queued |= dict.fromkeys(changes.removed)
        self._queued |= {name: (changes, row) for row, name in enumerate(changes.ids)}
        if len(self._queued) >= MAX_QUEUED_ROWS:
            self.flush()

    def flush(self) -> None:
        """Return once the table has all queued changes."""
        if not self._queued:
            return
        updated = {name: change for name, change in self._queued.items() if change is not None}
        removed = [name for name, change in self._queued.items() if change is None]
        if updated:
            vectors = np.stack([changes.vectors[row] for changes, row in updated.values()])
            sequences = np.array([changes.sequence for changes, _ in updated.values()])
            rows = _build_rows(list(updated), sequences, vectors)
            self._prepare_upsert(rows.schema).execute(rows)
        if removed and self._open_table() is not None:
            for condition in _id_conditions(removed):
                self._table.delete(condition)
        self._queued = {}
        self._compact_if_due()

    def synchronize(self, model: Embedder) -> int:
        """Make the table contain exactly the vertices of a model; return the sequence number of that state.

        Nothing is written if the table is up to date: its newest row has the sequence number of the model's last batch,
        and the number of rows agrees.
        """
        self._queued = {}
        table_state = self._newest_sequence_and_size()
        with model.lock.reading():
            rows, sequence = model.engine.rows_by_arrival(), model.sequence
            if table_state == (sequence, len(rows)):
                return sequence
            ids, vectors = model.engine.ids_of(rows), model.engine.get_vectors(rows)
        table_rows = _build_rows(ids, np.full(len(ids), sequence), vectors)
        self._prepare_upsert(table_rows.schema).when_not_matched_by_source_delete().execute(table_rows)
        return sequence

    def close(self) -> None:
        """Write the queued changes."""
        self.flush()

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
        """Return the newest sequence number in the table and the number of rows; (-1, 0) if there is no row."""
        if self._open_table() is None or not len(self._table):
            return -1, 0
        sequences = self._table.search().select(["sequence"]).limit(None).to_arrow()["sequence"].to_numpy()
        return int(sequences.max()), len(sequences)

    def _compact_if_due(self) -> None:
        self._flush_count += 1
        if self._flush_count % FLUSHES_PER_COMPACTION == 0 and self._open_table() is not None:
            self._table.optimize(cleanup_older_than=_VERSION_LIFETIME)


def _build_rows(ids: Sequence[Id], sequences: NDArray[np.int64], vectors: NDArray[np.float32]) -> pa.Table:
    columns = {
        "id": pa.array(map(str, ids), pa.string()),
        "integer": np.fromiter((isinstance(name, int) for name in ids), bool, len(ids)),
        "sequence": sequences,
        "vector": vectors_to_arrow(vectors),
    }
    return pa.table(columns)


def _id_conditions(ids: Sequence[Id]) -> Iterator[str]:
    """Yield SQL conditions that together match exactly these ids."""
    for integer in (False, True):
        names = [str(name) for name in ids if isinstance(name, int) is integer]
        for first in range(0, len(names), _IDS_PER_CONDITION):
            texts = ", ".join("'" + name.replace("'", "''") + "'" for name in names[first : first + _IDS_PER_CONDITION])
            yield f"integer = {str(integer).lower()} AND id IN ({texts})"
