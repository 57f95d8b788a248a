"""JSON Lines edge files, and the extraction of an edge's fields from a JSON value.

A line is an object {"src": …, "dst": …, "weight": …, "time": …, "op": …} or a list [src, dst, weight, time]. JSON
distinguishes numbers from text, so 1 and "1" are different ids here unless the options ask for one type.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ripplevec.batch import Batch, Id, Op
from ripplevec.edge_lists import COLUMN_NAMES, POSITIONAL_COLUMNS
from ripplevec.errors import shorten
from ripplevec.io.readers.byte_stream import ByteStream
from ripplevec.io.readers.edge_rows import (
    BadRowHandler,
    FileColumns,
    ReadOptions,
    RowError,
    find_columns,
    parse_id,
    parse_op,
    parse_time,
    parse_weight,
)

Edge: TypeAlias = tuple[Id, Id, float | None, float | None, Op | None]


def read_batches(
    stream: ByteStream, options: ReadOptions, bad_rows: BadRowHandler, columns: FileColumns | None = None
) -> Iterator[Batch]:
    """Yield the edges of a JSON Lines file; a missing weight is 1, a missing time is no time."""
    extractor = EdgeFieldExtractor(options)
    for block in stream.line_blocks():
        edges = []
        for number, line in enumerate(block.data.split(b"\n"), block.first):
            if line.strip():
                try:
                    edges.append(_parse_edge(extractor.extract(_load(line)), options.ids))
                except RowError as error:
                    bad_rows.report(number, error, line.decode(errors="replace"))
        yield _build_batch(edges)
    if columns is not None:
        extractor.report_keys(columns)


def _load(line: bytes) -> Any:
    try:
        return json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise RowError("UTF-8 text") from error
    except (ValueError, RecursionError) as error:
        raise RowError(f"a JSON object or list ({error})") from error


def _parse_edge(fields: Sequence[Any], ids: str) -> Edge:
    src, dst, weight, time, op = fields
    parsed_op = None if op is None else parse_op(op)
    is_vertex_op = parsed_op is not None and parsed_op >= Op.VERTEX
    return (
        parse_id(src, ids),
        parse_id(src if is_vertex_op else dst, ids),
        None if weight is None else parse_weight(weight),
        None if time is None else parse_time(time),
        parsed_op,
    )


def _build_batch(edges: list[Edge]) -> Batch:
    if not edges:
        return Batch.of([], [])
    src, dst, weight, time, op = zip(*edges, strict=True)
    return Batch.of(src, dst, _fill_missing(weight, 1.0), _fill_missing(op, Op.ADD), _fill_missing(time, math.nan))


def _fill_missing(column: Sequence[float | None], default: float) -> list[float] | None:
    if all(value is None for value in column):
        return None
    return [default if value is None else value for value in column]


class EdgeFieldExtractor:
    """Extracts src, dst, weight, time and op from JSON values; each set of keys is resolved once.

    `keeps_lists`: no column is ignored, so a list may be used as it is.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._used_positions = [getattr(options, column) != "none" for column in POSITIONAL_COLUMNS]
        self.keeps_lists = all(self._used_positions)
        self._resolved_keys: dict[tuple[str, ...], list[str | None]] = {}

    def extract(self, value: Any) -> list[Any]:
        """Return the five fields of an edge, None for a missing one; raise `RowError` for an unknown key."""
        if isinstance(value, list) and 2 <= len(value) <= len(POSITIONAL_COLUMNS):
            padded = value + [None] * (len(POSITIONAL_COLUMNS) - len(value))
            return [*(item if used else None for item, used in zip(padded, self._used_positions, strict=True)), None]
        if not isinstance(value, dict):
            raise self.not_an_edge_error()
        names = tuple(value)
        if names not in self._resolved_keys:
            self._resolved_keys[names] = self._resolve_keys(names)
        return [None if key is None else value[key] for key in self._resolved_keys[names]]

    def _resolve_keys(self, names: tuple[str, ...]) -> list[str | None]:
        positions = find_columns(names, self._options)
        if positions is None:
            raise self.not_an_edge_error()
        for position, name in enumerate(names):
            if position not in positions.values() and not self._is_ignored(name):
                raise self._unknown_key_error(name, {column: names[at] for column, at in positions.items()})
        return [names[positions[column]] if column in positions else None for column in COLUMN_NAMES]

    def report_keys(self, columns: FileColumns) -> None:
        """Add the keys of the objects extracted so far."""
        for names, keys in self._resolved_keys.items():
            used = zip(COLUMN_NAMES, keys, strict=True)
            columns.add(names, {column: names.index(key) for column, key in used if key is not None})

    def _is_ignored(self, name: str) -> bool:
        """Return whether a key names a column that the options ignore."""
        return any(
            getattr(self._options, column) == "none" and name.lower() in default_names
            for column, default_names in COLUMN_NAMES.items()
        )

    def not_an_edge_error(self) -> RowError:
        """Build the error for a JSON value that is not an edge."""
        keys = ", ".join(f'"{getattr(self._options, column) or column}": …' for column in ("src", "dst"))
        return RowError(f"an edge {{{keys}}} or [src, dst, weight]")

    def _unknown_key_error(self, name: str, used: Mapping[str, str]) -> RowError:
        for column, default_names in COLUMN_NAMES.items():
            if column in used and getattr(self._options, column) is None and name.lower() in default_names:
                return RowError(f"one key for {column}, not both {shorten(used[column])} and {shorten(name)}")
        requested = {column: getattr(self._options, column) for column in COLUMN_NAMES}
        known = ", ".join(name or column for column, name in requested.items() if name != "none")
        return RowError(f"only the keys {known}, not {shorten(name)} (remove the key or correct its spelling)")
