"""What a message holds: JSON or Arrow from a broker, a request or a line, as a batch or as one clear refusal.

JSON forms: one edge, `{"src": …, "dst": …, "weight": …, "op": …, "time": …}` or `[src, dst, weight, time]`, and a
document with any of `arrivals`, `edges`, `remove_edges`, `remove_vertices`, applied in this order, and perhaps a `key`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripplevec.batch import MAX_WEIGHT, MIN_WEIGHT, Batch, IdColumn, Op
from ripplevec.errors import InvalidValueError, RipplevecError, shorten
from ripplevec.io.arrow_ipc import decoded_text_size, unpacked_size
from ripplevec.io.protocols import BadMessage
from ripplevec.io.readers.edge_rows import ReadOptions, RowError, parse_id, parse_op, parse_time, parse_weight
from ripplevec.io.readers.jsonl import EdgeFieldExtractor
from ripplevec.io.readers.parquet import to_seconds
from ripplevec.io.rebatch import concatenate

MAX_ID_BYTES = 1024
"""The longest id, in bytes of UTF-8 (digits, for an integer)."""

MAX_ARROW_BYTES = 1 << 27
"""The most bytes that an Arrow stream may become when what is compressed or referred to in it is written out."""

MAX_DISPLAY_CHARS = 1 << 16
"""How many characters of a refused message are kept."""

DOCUMENT_LISTS = ("arrivals", "edges", "remove_edges", "remove_vertices")
ARROW_MAGIC = b"\xff\xff\xff\xff"
"""How an Arrow stream begins, and no JSON does."""

Payload: TypeAlias = bytes | Mapping[str, bytes]
"""JSON or Arrow, or the fields of one edge."""


class MessageError(RipplevecError, ValueError):
    """A message holds no events; says what was expected of it."""


@dataclass(frozen=True, slots=True)
class Message:
    """The events of one message, and the key under which a sender may send it again without harm."""

    batch: Batch
    key: str | None = None


@dataclass(slots=True)
class _Columns:
    """Rows of a batch before their values are checked; None where a value is left out."""

    src: list[Any] = field(default_factory=list)
    dst: list[Any] = field(default_factory=list)
    weight: list[Any] = field(default_factory=list)
    time: list[Any] = field(default_factory=list)
    op: list[Any] = field(default_factory=list)

    def add(self, src: Sequence[Any], dst: Sequence[Any], weight: Any = None, time: Any = None, op: Any = None) -> None:
        """Put rows behind the others; what is left out is None in every one of them."""
        none = [None] * len(src)
        self.src += src
        self.dst += dst
        self.weight += none if weight is None else weight
        self.time += none if time is None else time
        self.op += none if op is None else op


def decode_message(data: bytes, options: ReadOptions | None = None) -> Message:
    """The events of a message in JSON or as an Arrow stream; `MessageError` where it holds none."""
    return Message(decode_arrow(data)) if data[:4] == ARROW_MAGIC else decode_json(data, options)


def decode_json(data: bytes, options: ReadOptions | None = None) -> Message:
    """The events of one JSON value; the options name the columns and the kind of ids of single edges."""
    try:
        return _message(_load(data), options)
    except RecursionError:  # also where a message would show what was nested
        raise MessageError("expected JSON of moderate depth, got values nested too deeply") from None


def decode_arrow(data: bytes) -> Batch:
    """The events of an Arrow stream with the columns src, dst[, weight, op, time]."""
    try:
        _check_unpacked(unpacked_size(data))
        with pa.ipc.open_stream(pa.BufferReader(data)) as reader:
            table = reader.read_all()
        return decode_table(table)
    except MessageError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:  # the last: names of columns that are no text
        raise MessageError(f"expected an Arrow stream, got {len(data):,} bytes that are none ({error})") from error


def decode_table(table: pa.Table) -> Batch:
    """The events of an Arrow table from outside: nothing in it is trusted before it is checked."""
    names = table.column_names
    known = [name for name in ("src", "dst", "weight", "op", "time") if name in names]
    if known[:2] != ["src", "dst"] or any(names.count(name) > 1 for name in known):
        raise MessageError(f"expected columns src, dst[, weight, op, time], got {shorten(names)}")
    table = table.select(known)
    try:
        table.validate(full=True)
        _check_unpacked(decoded_text_size(table["src"]) + decoded_text_size(table["dst"]))
        columns = {name: _arrow_column(name, table[name]) for name in known}
        with np.errstate(invalid="ignore"):  # some of the many NaNs would be warned of, not only refused
            batch = Batch.of(**columns)
    except (pa.ArrowException, InvalidValueError) as error:
        raise MessageError(str(error)) from error
    return _with_fair_ids(batch)


def _check_unpacked(size: int) -> None:
    if size > MAX_ARROW_BYTES:
        raise MessageError(f"expected an Arrow stream that unpacks to {MAX_ARROW_BYTES:,} bytes at most, got {size:,}")


def _arrow_column(name: str, column: pa.ChunkedArray) -> Any:
    kind = column.type
    if name == "op" and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return [_operation(value) for value in column.to_pylist()]
    if name == "time":
        if not pa.types.is_temporal(kind) and not pa.types.is_integer(kind) and not pa.types.is_floating(kind):
            raise MessageError(f"time: expected numbers or timestamps, got a column of type {kind}")
        return np.asarray(to_seconds(column), np.float64)
    if name in ("weight", "op") and not pa.types.is_integer(kind) and not pa.types.is_floating(kind):
        raise MessageError(f"{name}: expected numbers, got a column of type {kind}")
    return column


def decode_fields(fields: Mapping[str, bytes], options: ReadOptions | None = None) -> Message:
    """The events of an entry: a field `data` with JSON or Arrow in it, or the fields src, dst[, weight, op, time]."""
    return decode_message(fields["data"], options) if "data" in fields else _message(_edge(fields), options)


def decode_messages(
    items: Iterable[tuple[str, Payload]], options: ReadOptions | None = None
) -> tuple[Batch, list[BadMessage]]:
    """Many messages, each with the place it stood, as one batch in their order, and those that hold no events.

    They are taken together; only where one of them is wrong, or is Arrow, they are taken one by one.
    """
    items, values = list(items), EdgeFieldExtractor(options or ReadOptions())
    columns, edges = _Columns(), list[Any]()
    try:
        for _, payload in items:
            value = _value(payload)
            if not _is_document(value):
                edges.append(value)
                continue
            _rows(edges, columns, values)
            edges = []
            _document(value, columns, values)
        _rows(edges, columns, values)
        return _checked(columns, options), []
    except (MessageError, RecursionError):
        return _one_by_one(items, options)


def _value(payload: Payload) -> Any:
    """A message as a JSON value."""
    if isinstance(payload, Mapping):
        if "data" not in payload:
            return _edge(payload)
        payload = payload["data"]
    if payload[:4] == ARROW_MAGIC:
        raise MessageError("expected JSON, got Arrow")
    return _load(payload)


def _one_by_one(items: list[tuple[str, Payload]], options: ReadOptions | None) -> tuple[Batch, list[BadMessage]]:
    batches, bad_messages = [], []
    for where, payload in items:
        try:
            message = (
                decode_fields(payload, options) if isinstance(payload, Mapping) else decode_message(payload, options)
            )
            batches.append(message.batch)
        except MessageError as error:
            bad_messages.append(BadMessage(to_display_text(payload), where, str(error)))
    return concatenate(batches), bad_messages


def to_display_text(payload: Payload) -> str:
    """A message as text, as far as it is shown."""
    if isinstance(payload, Mapping):
        payload = json.dumps({name: to_display_text(value) for name, value in payload.items()}).encode()
    return payload[:MAX_DISPLAY_CHARS].decode(errors="backslashreplace")


# JSON


def _no_constant(name: str) -> None:
    raise MessageError(f"expected numbers as JSON has them, got {name}")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _load(data: bytes) -> Any:
    try:
        return _DECODER.decode(data.decode())
    except UnicodeDecodeError:
        raise MessageError("expected UTF-8 text, got other bytes") from None
    except ValueError as error:
        raise MessageError(f"expected JSON, got {shorten(to_display_text(data))} ({error})") from None


def _message(value: Any, options: ReadOptions | None) -> Message:
    columns, values = _Columns(), EdgeFieldExtractor(options or ReadOptions())
    key = None
    if _is_document(value):
        key = _document(value, columns, values)
    else:
        _rows([value], columns, values)
    return Message(_checked(columns, options), key)


def _is_document(value: Any) -> bool:
    return isinstance(value, dict) and not value.keys().isdisjoint(DOCUMENT_LISTS)


def _document(document: dict[str, Any], columns: _Columns, values: EdgeFieldExtractor) -> str | None:
    unknown = document.keys() - {*DOCUMENT_LISTS, "key"}
    if unknown:
        raise MessageError(f"expected only key, {', '.join(DOCUMENT_LISTS)}, got {shorten(min(unknown))} too")
    for form in DOCUMENT_LISTS:
        rows = document.get(form, [])
        if type(rows) is not list:
            raise MessageError(f"{form}: expected a list, got {shorten(rows)}")
    for row in document.get("arrivals", ()):
        _arrival(row, columns)
    _rows(document.get("edges", []), columns, values)
    _removals(document.get("remove_edges", []), columns)
    gone = document.get("remove_vertices", [])
    columns.add(gone, gone, op=[Op.REMOVE_VERTEX] * len(gone))
    return check_message_key(document.get("key"))


def check_message_key(key: str | None) -> str | None:
    """The key of a message, or an error where it cannot be one."""
    try:
        check_idempotency_key(key)
    except InvalidValueError as error:
        raise MessageError(str(error)) from None
    return key


def _arrival(row: Any, columns: _Columns) -> None:
    if not isinstance(row, dict) or "id" not in row or row.keys() - {"id", "neighbors", "weights", "time"}:
        raise MessageError(f'arrivals: expected {{"id": …, "neighbors": […], "weights": […]}}, got {shorten(row)}')
    neighbors, weights = row.get("neighbors", []), row.get("weights")
    if type(neighbors) is not list or (weights is not None and type(weights) is not list):
        raise MessageError(f"arrivals: expected lists of neighbors and weights, got {shorten(row)}")
    if weights is not None and len(weights) != len(neighbors):
        raise MessageError(f"weights: expected {len(neighbors):,}, one per neighbor, got {len(weights):,}")
    times = [row.get("time")] * max(len(neighbors), 1)
    if neighbors:
        columns.add([row["id"]] * len(neighbors), neighbors, weights, times)
    else:
        columns.add([row["id"]], [row["id"]], None, times, [Op.VERTEX])


def _rows(rows: list[Any], columns: _Columns, values: EdgeFieldExtractor) -> None:
    if set(map(type, rows)) == {list} and values.plain:
        width = set(map(len, rows))
        if width <= {2} or width <= {3}:  # nearly always: all alike
            columns.add(*map(list, zip(*rows, strict=True)))
            return
    for row in rows:
        try:
            src, dst, weight, time, op = values(row)
        except RowError as error:
            raise MessageError(f"expected {error}, got {shorten(row)}") from None
        columns.src.append(src)
        columns.dst.append(dst)
        columns.weight.append(weight)
        columns.time.append(time)
        columns.op.append(op)


def _removals(rows: list[Any], columns: _Columns) -> None:
    for row in rows:
        if type(row) is not list or len(row) != 2:
            raise MessageError(f"remove_edges: expected pairs [src, dst], got {shorten(row)}")
    columns.add([row[0] for row in rows], [row[1] for row in rows], op=[Op.REMOVE] * len(rows))


# Fields


def _edge(fields: Mapping[str, bytes]) -> dict[str, Any]:
    """The fields of one edge as the JSON object they would be."""
    if not {"src", "dst"} <= fields.keys() or fields.keys() - {"src", "dst", "weight", "op", "time"}:
        raise MessageError(f"expected fields src, dst[, weight, op, time], or data, got {shorten(list(fields))}")
    try:
        edge: dict[str, Any] = {name: value.decode() for name, value in fields.items()}
        if "weight" in edge:
            edge["weight"] = parse_weight(edge["weight"])
    except UnicodeDecodeError:
        raise MessageError("expected UTF-8 text in every field, got other bytes") from None
    except RowError as error:
        raise MessageError(f"expected {error}") from None
    return edge


# Values


def _checked(columns: _Columns, options: ReadOptions | None) -> Batch:
    ids = "auto" if options is None else options.ids
    try:
        ends = (columns.src, columns.dst)
        src, dst = ends if ids == "auto" else ([parse_id(name, ids) for name in column] for column in ends)
        batch = Batch.of(src, dst, _weights(columns.weight), _operations(columns.op), _times(columns.time))
    except RowError as error:
        raise MessageError(f"expected {error}") from None
    except InvalidValueError as error:
        raise MessageError(str(error)) from None
    return _with_fair_ids(batch)


def _weights(values: list[Any]) -> list[float] | None:
    kinds = set(map(type, values))
    if kinds <= {type(None)}:
        return None
    if not kinds <= {int, float, type(None)}:
        wrong = next(value for value in values if type(value) not in (int, float, type(None)))
        raise MessageError(f"weight: expected positive finite numbers, got {shorten(wrong)}")
    weights = [1.0 if value is None else value for value in values] if type(None) in kinds else values
    if min(weights) < MIN_WEIGHT or max(weights) > MAX_WEIGHT:  # before they are rounded to what is held
        wrong = next(value for value in weights if not MIN_WEIGHT <= value <= MAX_WEIGHT)
        limits = f"from {MIN_WEIGHT:g} to {MAX_WEIGHT:g}"
        raise MessageError(f"weight: expected positive finite numbers {limits}, got {shorten(wrong)}")
    return weights


def _times(values: list[Any]) -> list[float] | None:
    if set(map(type, values)) <= {type(None)}:
        return None
    return [math.nan if value is None else parse_time(value) for value in values]


def _operations(values: list[Any]) -> list[Op] | None:
    if set(map(type, values)) <= {type(None)}:
        return None
    return [Op.ADD if value is None else _operation(value) for value in values]


def _operation(value: Any) -> Op:
    try:
        return parse_op(value)
    except RowError:
        names = ", ".join(op.name.lower() for op in Op)
        raise MessageError(f"op: expected one of {names}, got {shorten(value)}") from None


def _with_fair_ids(batch: Batch) -> Batch:
    for column in (batch.src, batch.dst):
        length = _longest(column)
        if length == 0 or length > MAX_ID_BYTES:
            got = "empty text" if not length else f"one of {length:,} bytes"
            raise MessageError(f"expected ids of 1 to {MAX_ID_BYTES:,} bytes, got {got}")
    return batch


def _longest(column: IdColumn) -> int:
    """The length of the longest id, but 0 where one is empty; integers of 64 bits are never too long."""
    if isinstance(column, np.ndarray):
        return 1
    if isinstance(column, pa.Array):
        ends = pc.min_max(pc.binary_length(column)).as_py()
        return int(ends["max"] if ends["min"] else 0)
    lengths = [len(str(name).encode()) for name in column]
    return max(lengths) if min(lengths) else 0


MAX_KEY_LENGTH = 256
"""In characters, wherever a key comes in."""


def check_idempotency_key(key: Any) -> None:
    """Refuse what cannot be a key; None is no key, which is fine."""
    if key is not None and not (isinstance(key, str) and 0 < len(key) <= MAX_KEY_LENGTH and _is_text(key)):
        raise InvalidValueError.of("key", f"text of 1 to {MAX_KEY_LENGTH} characters", key)


def _is_text(key: str) -> bool:
    """Whether it can be written as UTF-8; half of a character cannot."""
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True
