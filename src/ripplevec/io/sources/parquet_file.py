"""One Parquet file as a live source: a fixed number of rows at a time, from a row on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from ripplevec.errors import FormatError
from ripplevec.io.protocols import Read
from ripplevec.io.readers import parquet
from ripplevec.io.readers.byte_stream import open_source
from ripplevec.io.readers.edge_columns import ReadOptions
from ripplevec.io.sources.text_lines import CollectedRows


class ParquetFile:
    """The rows of one file from a position on: a row, and the size of the file that it is a row of."""

    def __init__(
        self, path: Path, format: str, options: ReadOptions, batch_size: int, fixed: bool, position: dict[str, Any]
    ) -> None:
        self.path, self._options, self._batch_size = path, options, batch_size
        self._size, self._row = path.stat().st_size, position.get("row", 0)
        if position.get("size", self._size) != self._size:
            size = f"{position['size']:,} bytes"
            raise FormatError(f"{path}: expected the file that was being read, of {size}, got one of {self._size:,}")
        with open_source(path) as source:
            self._file = parquet.open_file(source)
            self._roles = parquet.columns_of(self._file, source.name, options)
        self._tables = self._from_row(self._row)
        self._waiting = pa.table({name: pa.array([], kind) for name, kind in self._kinds()})

    def read(self, growing: bool) -> Read | None:
        """The next rows as events; None at the end. Such a file does not grow."""
        with parquet.reading(str(self.path)):
            while len(self._waiting) < self._batch_size and (more := next(self._tables, None)) is not None:
                more.validate(full=True)  # text that is not UTF-8 would be found out much later
                self._waiting = pa.concat_tables([self._waiting, more])
        if not len(self._waiting):
            return None
        rows, self._waiting = self._waiting[: self._batch_size], self._waiting[self._batch_size :]
        columns = {role: rows[name].combine_chunks() for role, name in self._roles.items()}
        bad = CollectedRows(str(self.path))
        bad.unit = "row"
        batch = parquet.parse(columns, self._row + 1, self._options.ids, bad)
        self._row += len(rows)
        return Read(batch, {"row": self._row, "size": self._size}, bad.poison)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close(force=True)

    def _kinds(self) -> list[tuple[str, pa.DataType]]:
        schema = self._file.schema_arrow
        return [(name, schema.field(name).type) for name in dict.fromkeys(self._roles.values())]

    def _from_row(self, row: int) -> Iterator[pa.Table]:
        """The rest of the file, row group by row group; those before the row are not looked at."""
        for group in range(self._file.num_row_groups):
            length = self._file.metadata.row_group(group).num_rows
            if row < length:
                yield self._file.read_row_group(group, columns=[name for name, _ in self._kinds()])[row:]
            row = max(row - length, 0)
