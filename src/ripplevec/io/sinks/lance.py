"""A table of LanceDB kept in step with a model: what a batch changed is written over, what it removed is gone."""

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
from ripplevec.io.vector_files import vector_array

if TYPE_CHECKING:
    from ripplevec.embedder import Embedder

ROWS = 1 << 17
"""Vertices that wait for a flush at most; then they are written without one."""

TIDY = 256
"""Flushes after which what they left in pieces is put together and what nobody reads any more is dropped."""

_READERS = timedelta(hours=1)  # for so long whoever has opened the table may go on reading what it was then
_AT_ONCE = 1000  # ids in one condition


class LanceSink:
    """`lancedb://DIRECTORY?table=vertices`: a row per vertex, with its vector after the last batch that moved it.

    The columns are `id` (text), `integer` (whether the id is a number), `sequence` (of that batch) and `vector`. To
    write the same changes again alters nothing. The table is made with the first of them.
    """

    def __init__(self, directory: str | os.PathLike[str], *, table: str = "vertices") -> None:
        try:
            import lancedb
        except ImportError as error:
            raise MissingExtraError("a LanceDB sink", "lancedb") from error
        self._database, self._name = lancedb.connect(directory), table
        self._table: Any = None
        self._waiting: dict[Id, tuple[Changes, int] | None] = {}  # None: removed
        self._flushes = 0

    def write(self, changes: Changes) -> None:
        """Keep what one batch changed for the next flush, instead of what was kept of the same vertices."""
        self._waiting |= dict.fromkeys(changes.removed)
        self._waiting |= {name: (changes, row) for row, name in enumerate(changes.ids)}
        if len(self._waiting) >= ROWS:
            self.flush()

    def flush(self) -> None:
        """Return once the table has it all."""
        if not self._waiting:
            return
        kept = {name: found for name, found in self._waiting.items() if found is not None}
        gone = [name for name, found in self._waiting.items() if found is None]
        if kept:
            vectors = np.stack([changes.vectors[row] for changes, row in kept.values()])
            sequences = np.array([changes.sequence for changes, _ in kept.values()])
            rows = _as_rows(list(kept), sequences, vectors)
            self._upsert(rows.schema).execute(rows)
        if gone and self._opened() is not None:
            for condition in _among(gone):
                self._table.delete(condition)
        self._waiting = {}
        self._tidy()

    def fill(self, model: Embedder) -> int:
        """Make the table hold exactly the vertices of a model; the sequence number of the model it now holds.

        Nothing is written where it does already: its newest row is of the model's last batch, and there are as many.
        """
        self._waiting = {}
        newest = self._newest()
        with model.lock.reading():
            rows, sequence = model.engine.rows_by_arrival(), model.sequence
            if newest == (sequence, len(rows)):
                return sequence
            ids, vectors = model.engine.ids_of(rows), model.engine.get_vectors(rows)
        whole = _as_rows(ids, np.full(len(ids), sequence), vectors)
        self._upsert(whole.schema).when_not_matched_by_source_delete().execute(whole)
        return sequence

    def close(self) -> None:
        """Write what has been kept."""
        self.flush()

    # ------------------------------------------------------------------ inside

    def _upsert(self, schema: pa.Schema) -> Any:
        """What writes rows of this schema over those of the same ids, and the others behind."""
        table = self._opened(schema)
        return table.merge_insert(["id", "integer"]).when_matched_update_all().when_not_matched_insert_all()

    def _opened(self, schema: pa.Schema | None = None) -> Any:
        """The table; made with this schema where there is none, else None."""
        if self._table is None:
            if self._name in self._database.list_tables(limit=1 << 20).tables:
                self._table = self._database.open_table(self._name)
            elif schema is not None:
                self._table = self._database.create_table(self._name, schema=schema)
        if self._table is not None and schema is not None:
            self._check(schema)
        return self._table

    def _check(self, schema: pa.Schema) -> None:
        there = self._table.schema
        for field in schema:
            if field.name not in there.names or there.field(field.name).type != field.type:
                got = there.field(field.name).type if field.name in there.names else "a table without it"
                raise InvalidValueError.of(f"table {self._name}, {field.name}", str(field.type), str(got))

    def _newest(self) -> tuple[int, int]:
        """The newest sequence number in the table, and how many rows it has."""
        if self._opened() is None or not len(self._table):
            return -1, 0
        numbers = self._table.search().select(["sequence"]).limit(None).to_arrow()["sequence"].to_numpy()
        return int(numbers.max()), len(numbers)

    def _tidy(self) -> None:
        self._flushes += 1
        if self._flushes % TIDY == 0 and self._opened() is not None:
            self._table.optimize(cleanup_older_than=_READERS)


def _as_rows(ids: Sequence[Id], sequences: NDArray[np.int64], vectors: NDArray[np.float32]) -> pa.Table:
    columns = {
        "id": pa.array(map(str, ids), pa.string()),
        "integer": np.fromiter((isinstance(name, int) for name in ids), bool, len(ids)),
        "sequence": sequences,
        "vector": vector_array(vectors),
    }
    return pa.table(columns)


def _among(ids: Sequence[Id]) -> Iterator[str]:
    """Conditions that hold for these ids."""
    for integer in (False, True):
        names = [str(name) for name in ids if isinstance(name, int) is integer]
        for first in range(0, len(names), _AT_ONCE):
            texts = ", ".join("'" + name.replace("'", "''") + "'" for name in names[first : first + _AT_ONCE])
            yield f"integer = {str(integer).lower()} AND id IN ({texts})"
