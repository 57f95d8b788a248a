"""Data frames as a live source: the rows of a pandas, polars or pyarrow table; a lazy frame of polars is collected."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ripplevec.batch import Batch
from ripplevec.edge_lists import collect_lazy_frame, is_table
from ripplevec.errors import InvalidValueError
from ripplevec.io.messages import to_display_text
from ripplevec.io.protocols import DEFAULT_READ_SIZE, BadMessage, Position, ReadResult
from ripplevec.io.readers.edge_rows import check_positive_int
from ripplevec.io.rebatch import concatenate


class FrameSource:
    """The rows of a frame with the columns src, dst[, weight, op, time], in their order, `batch_size` per read.

    `src`, `dst`, `weight` and `time` name other columns.
    """

    def __init__(
        self,
        frame: Any,
        *,
        batch_size: int = DEFAULT_READ_SIZE,
        name: str = "frame",
        src: Any = None,
        dst: Any = None,
        weight: Any = None,
        time: Any = None,
    ) -> None:
        frame = collect_lazy_frame(frame)
        if not is_table(frame) or not hasattr(frame, "__len__"):
            raise InvalidValueError.of("frame", "a pandas, polars or pyarrow table", frame)
        self.name = name
        self._frame, self._batch_size, self._row = frame, check_positive_int("batch_size", batch_size), 0
        self._columns = {"src": src, "dst": dst, "weight": weight, "time": time}
        self._convert(0, 0)  # raises now if a column is missing

    def open(self, position: Position | None) -> None:
        """Start after the row of this position."""
        self._row = (position or {"row": 0})["row"]

    def read(self, timeout: float) -> ReadResult | None:
        """Return the events of the next rows."""
        first, last = self._row, min(self._row + self._batch_size, len(self._frame))
        if first >= last:
            raise EOFError(f"all {len(self._frame):,} rows of {self.name} have been read")
        batch, bad_messages = self._read_rows(first, last)
        self._row = last
        return ReadResult(batch, {"row": last}, bad_messages)

    def acknowledge(self, position: Position) -> None:
        """Do nothing: a frame keeps its rows."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def _read_rows(self, first: int, last: int) -> tuple[Batch, list[BadMessage]]:
        try:
            return self._convert(first, last), []
        except InvalidValueError:
            batches, bad_messages = [], []
        for row in range(first, last):  # one by one, to identify the bad rows
            try:
                batches.append(self._convert(row, row + 1))
            except InvalidValueError as error:
                where = f"{self.name}, row {row + 1:,}"
                bad_messages.append(BadMessage(self._row_text(row), where, str(error)))
        return concatenate(batches), bad_messages

    def _convert(self, first: int, last: int) -> Batch:
        return Batch.from_any(self._slice(first, last), **self._columns)

    def _slice(self, first: int, last: int) -> Any:
        return self._frame.iloc[first:last] if hasattr(self._frame, "iloc") else self._frame[first:last]

    def _row_text(self, row: int) -> str:
        rows = self._slice(row, row + 1)
        if hasattr(rows, "iloc"):
            values = rows.to_dict(orient="records")
        else:
            values = rows.to_pylist() if isinstance(rows, pa.Table | pa.RecordBatch) else rows.to_dicts()
        return to_display_text(repr(values[0]).encode(errors="backslashreplace"))
