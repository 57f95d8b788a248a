"""A table in memory as a source: the rows of a pandas, polars or pyarrow frame, a batch at a time."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ripplevec.batch import Batch
from ripplevec.errors import InvalidValueError
from ripplevec.io.messages import to_display_text
from ripplevec.io.protocols import BadMessage, Position, ReadResult
from ripplevec.io.readers.edge_rows import check_positive_int
from ripplevec.io.rebatch import concatenate
from ripplevec.io.sources.files import DEFAULT_BATCH_SIZE


class FrameSource:
    """The rows of a frame with the columns src, dst[, weight, op, time], `batch_size` at a time, in their order."""

    def __init__(self, frame: Any, *, batch_size: int = DEFAULT_BATCH_SIZE, name: str = "frame") -> None:
        if not hasattr(frame, "columns"):
            raise InvalidValueError.of("frame", "a pandas, polars or pyarrow table", frame)
        self.name = name
        self._frame, self._batch_size, self._row = frame, check_positive_int("batch_size", batch_size), 0
        self._part(0, 0)  # an error now where the columns are others

    def open(self, position: Position | None) -> None:
        """Begin behind the row of this position."""
        self._row = (position or {"row": 0})["row"]

    def read(self, timeout: float) -> ReadResult | None:
        """The next rows."""
        first, last = self._row, min(self._row + self._batch_size, len(self._frame))
        if first >= last:
            raise EOFError(f"all {len(self._frame):,} rows of {self.name} have been read")
        batch, bad_messages = self._events(first, last)
        self._row = last
        return ReadResult(batch, {"row": last}, bad_messages)

    def acknowledge(self, position: Position) -> None:
        """A frame keeps its rows."""

    def close(self) -> None:
        """There is nothing to let go of."""

    def _events(self, first: int, last: int) -> tuple[Batch, list[BadMessage]]:
        try:
            return self._part(first, last), []
        except InvalidValueError:
            batches, bad_messages = [], []
        for row in range(first, last):  # to find out which
            try:
                batches.append(self._part(row, row + 1))
            except InvalidValueError as error:
                bad_messages.append(BadMessage(self._shown(row), f"{self.name}, row {row + 1:,}", str(error)))
        return concatenate(batches), bad_messages

    def _part(self, first: int, last: int) -> Batch:
        return Batch.from_any(self._rows(first, last))

    def _rows(self, first: int, last: int) -> Any:
        return self._frame.iloc[first:last] if hasattr(self._frame, "iloc") else self._frame[first:last]

    def _shown(self, row: int) -> str:
        rows = self._rows(row, row + 1)
        if hasattr(rows, "iloc"):
            values = rows.to_dict(orient="records")
        else:
            values = rows.to_pylist() if isinstance(rows, pa.Table | pa.RecordBatch) else rows.to_dicts()
        return to_display_text(repr(values[0]).encode(errors="backslashreplace"))
