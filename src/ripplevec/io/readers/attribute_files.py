"""Attributes of vertices in a file: a table with an id column, in CSV, JSONL or Parquet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
from numpy.typing import NDArray

from ripplevec.attributes.input import read_attributes, take_attributes
from ripplevec.batch import AttributeRows, Batch, concat_ids
from ripplevec.errors import FormatError, InvalidValueError
from ripplevec.graph.id_table import IdTable

READERS = {
    ".csv": pa.csv.read_csv,
    ".jsonl": pa.json.read_json,
    ".ndjson": pa.json.read_json,
    ".parquet": pa.parquet.read_table,
}
"""Functions that read a table, by the end of the file name."""


def read_attribute_file(path: Path) -> AttributeRows:
    """Read the attributes of vertices from a table with an id column; see `read_attributes`."""
    if path.suffix not in READERS:
        raise InvalidValueError.of("attributes", f"a file that ends in {', '.join(READERS)}", str(path))
    try:
        table = READERS[path.suffix](str(path))
    except (pa.ArrowException, OSError) as error:
        raise FormatError(f"{path}: the attributes cannot be read ({error})") from error
    return read_attributes(table)


class PendingAttributes:
    """Attributes of vertices that have not arrived yet; each is taken once, with the first batch that names it."""

    def __init__(self, rows: AttributeRows) -> None:
        self.rows, self._ids, self._pending = rows, IdTable(), np.ones(len(rows.ids), np.bool_)
        self._ids.intern(rows.ids, rows.ids)

    def take(self, batch: Batch) -> AttributeRows | None:
        """Take the attributes of the vertices that a batch names; None if there are none."""
        found = np.unique(self._ids.find_rows(concat_ids(batch.src, batch.dst)))
        found = found[found >= 0]
        return self._take(found[self._pending[found]])

    def take_rest(self) -> AttributeRows | None:
        """Take the attributes of the vertices that no batch has named; None if there are none."""
        if self._pending.all() and len(self._pending):
            got = "a table with other ids. Ids of both must have the same type"
            raise InvalidValueError.of("attributes", "a table with ids of the edges", got)
        return self._take(np.flatnonzero(self._pending))

    def _take(self, positions: NDArray[np.int64]) -> AttributeRows | None:
        self._pending[positions] = False
        return take_attributes(self.rows, positions) if positions.size else None
