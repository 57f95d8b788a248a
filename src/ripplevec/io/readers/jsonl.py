"""Edges as lines of JSON: an object {"src": …, "dst": …, "weight": …, "time": …, "op": …} or a list [src, dst, weight,
time].

JSON knows numbers from text, so 1 and "1" are different ids here unless the options ask for one kind.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from ripplevec.batch import Batch, Id, Op
from ripplevec.io.readers.byte_stream import ByteStream
from ripplevec.io.readers.edge_rows import (
    COLUMN_NAMES,
    POSITIONAL_COLUMNS,
    BadRowHandler,
    ReadOptions,
    RowError,
    find_columns,
    parse_id,
    parse_op,
    parse_time,
    parse_weight,
)

Edge: TypeAlias = tuple[Id, Id, float | None, float | None, Op | None]


def read(source: ByteStream, options: ReadOptions, bad: BadRowHandler) -> Iterator[Batch]:
    """The edges of a JSON-lines file; a weight that is left out is 1, a time that is left out is no time."""
    values = EdgeFieldExtractor(options)
    for block in source.line_blocks():
        edges = []
        for number, line in enumerate(block.data.split(b"\n"), block.first):
            if line.strip():
                try:
                    edges.append(_edge(values(_load(line)), options.ids))
                except RowError as error:
                    bad.report(number, error, line.decode(errors="replace"))
        yield _batch(edges)


def _load(line: bytes) -> Any:
    try:
        return json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise RowError("UTF-8 text") from error
    except (ValueError, RecursionError) as error:
        raise RowError(f"a JSON object or list ({error})") from error


def _edge(values: Sequence[Any], ids: str) -> Edge:
    src, dst, weight, time, op = values
    done = None if op is None else parse_op(op)
    alone = done is not None and done >= Op.VERTEX
    return (
        parse_id(src, ids),
        parse_id(src if alone else dst, ids),
        None if weight is None else parse_weight(weight),
        None if time is None else parse_time(time),
        done,
    )


def _batch(edges: list[Edge]) -> Batch:
    if not edges:
        return Batch.of([], [])
    src, dst, weight, time, op = zip(*edges, strict=True)
    return Batch.of(src, dst, _filled(weight, 1.0), _filled(op, Op.ADD), _filled(time, math.nan))


def _filled(column: Sequence[float | None], fill: float) -> list[float] | None:
    if all(value is None for value in column):
        return None
    return [fill if value is None else value for value in column]


class EdgeFieldExtractor:
    """Finds src, dst, weight, time and op in one JSON value after another; the same keys are looked up once.

    `plain`: a list is taken as it stands, no part of it being left out.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._wanted = [getattr(options, role) != "none" for role in POSITIONAL_COLUMNS]
        self.plain = all(self._wanted)
        self._keys: dict[tuple[str, ...], list[str | None]] = {}

    def __call__(self, value: Any) -> list[Any]:
        """The five values, None where one is left out."""
        if isinstance(value, list) and 2 <= len(value) <= len(POSITIONAL_COLUMNS):
            filled = value + [None] * (len(POSITIONAL_COLUMNS) - len(value))
            return [*(item if wanted else None for item, wanted in zip(filled, self._wanted, strict=True)), None]
        if not isinstance(value, dict):
            raise self._no_edge()
        names = tuple(value)
        if names not in self._keys:
            found = find_columns(names, self._options)
            if found is None:
                raise self._no_edge()
            self._keys[names] = [names[found[role]] if role in found else None for role in COLUMN_NAMES]
        return [None if key is None else value[key] for key in self._keys[names]]

    def _no_edge(self) -> RowError:
        wanted = ", ".join(f'"{getattr(self._options, role) or role}": …' for role in ("src", "dst"))
        return RowError(f"an edge {{{wanted}}} or [src, dst, weight]")
