"""Event messages decoded into batches: JSON, Arrow streams and broker fields, from brokers, requests and text lines.

A JSON message is one edge, `{"src": …, "dst": …, "weight": …, "op": …, "time": …}` or `[src, dst, weight, time]`, or a
document as `message_schema` declares it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET

from ripplevec.attributes.input import (
    attach_attributes,
    detach_attributes,
    drop_removed_attributes,
    merge_attributes,
    read_values,
)
from ripplevec.batch import AttributeRows, Batch, Id, IdColumn, Op, take_ids
from ripplevec.errors import InvalidValueError, shorten
from ripplevec.io.arrow_ipc import decoded_text_size, unpacked_size
from ripplevec.io.message_schema import (
    DOCUMENT_DECODER,
    MAX_ID_BYTES,
    MAX_KEY_LENGTH,
    Arrival,
    Document,
    Edge,
    MessageError,
    VertexAttributes,
    convert,
)
from ripplevec.io.protocols import BadMessage
from ripplevec.io.readers.edge_rows import ReadOptions, RowError, parse_id, parse_op, parse_time, parse_weight
from ripplevec.io.readers.jsonl import EdgeFieldExtractor
from ripplevec.io.readers.parquet import to_seconds
from ripplevec.io.rebatch import concatenate

MAX_ARROW_BYTES = 1 << 27
"""Largest size of an Arrow stream, with dictionary-encoded text written out."""

MAX_DISPLAY_CHARS = 1 << 16
"""Characters of a bad message that are kept."""

DOCUMENT_LISTS = ("arrivals", "edges", "attributes", "remove_edges", "remove_vertices")
EDGE_FIELDS = ("src", "dst", "weight", "op", "time")
ATTRIBUTES = "attributes"

ARROW_MAGIC = b"\xff\xff\xff\xff"
"""First bytes of an Arrow stream; no JSON text starts with them."""

Payload: TypeAlias = bytes | Mapping[str, bytes]
"""A message: bytes with JSON or Arrow, or the fields of a broker entry."""


@dataclass(frozen=True, slots=True)
class Message:
    """The events of one message, and its idempotency key: a message sent again with the same key is applied once."""

    batch: Batch
    key: str | None = None


class DecodedMessages(NamedTuple):
    """The events of several messages in their order, the bad messages, and attributes, to be set after the events."""

    batch: Batch
    bad_messages: list[BadMessage]
    attributes: Sequence[AttributeRows] = ()

    def to_batch(self) -> Batch:
        """Return a batch with all attributes; raise `MessageError` if they differ in kind or width."""
        try:
            return attach_attributes(self.batch, merge_attributes(self.attributes)) if self.attributes else self.batch
        except InvalidValueError as error:
            raise MessageError(str(error)) from None


@dataclass(slots=True)
class _EventColumns:
    """Columns of a batch before validation; None marks a missing value."""

    src: list[Any] = field(default_factory=list)
    dst: list[Any] = field(default_factory=list)
    weight: list[Any] = field(default_factory=list)
    time: list[Any] = field(default_factory=list)
    op: list[Any] = field(default_factory=list)
    attributes: list[Arrival | VertexAttributes] = field(default_factory=list)

    def extend(
        self, src: Sequence[Any], dst: Sequence[Any], weight: Any = None, time: Any = None, op: Any = None
    ) -> None:
        """Append rows; a column that is not given is None in every row."""
        missing = [None] * len(src)
        self.src += src
        self.dst += dst
        self.weight += missing if weight is None else weight
        self.time += missing if time is None else time
        self.op += missing if op is None else op

    def extend_edges(self, edges: Sequence[Edge], op: Any = None) -> None:
        """Append edges."""
        src, dst = [edge.src for edge in edges], [edge.dst for edge in edges]
        self.extend(src, dst, [edge.weight for edge in edges], [edge.time for edge in edges], op)


def decode_message(data: bytes, options: ReadOptions | None = None) -> Message:
    """Decode a JSON or Arrow message; raise `MessageError` if it is neither or has invalid events."""
    return Message(decode_arrow(data)) if data[:4] == ARROW_MAGIC else decode_json(data, options)


def decode_json(data: bytes, options: ReadOptions | None = None) -> Message:
    """Decode a JSON message; the options name the columns and the id type of single edges."""
    try:
        if options is None and (document := _try_document(data)) is not None:
            return build_message(document)
        return _decode_value(_load_json(data), options)
    except RecursionError:  # may also come from formatting a deeply nested value for an error message
        raise MessageError("expected JSON of moderate depth, got values nested too deeply") from None


def build_message(document: Document) -> Message:
    """Return the events of a document and its key; raise `MessageError` if a value is out of range."""
    columns = _EventColumns()
    _append_document(document, columns, None)
    return Message(_build_batch(columns, None), check_message_key(document.key))


def _try_document(data: bytes) -> Document | None:
    """Decode a document in one step; None for another or an invalid message, which is decoded again to explain it."""
    try:
        document = DOCUMENT_DECODER.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):  # ValueError: not UTF-8
        return None
    return document if any(getattr(document, name) is not UNSET for name in DOCUMENT_LISTS) else None


def decode_fields(fields: Mapping[str, bytes], options: ReadOptions | None = None) -> Message:
    """Decode a broker entry: the fields src, dst[, weight, op, time], or one field `data` with JSON or Arrow."""
    if "data" in fields:
        return decode_message(_data_field(fields), options)
    return _decode_value(_edge_from_fields(fields), options)


def decode_messages(items: Iterable[tuple[str, Payload]], options: ReadOptions | None = None) -> DecodedMessages:
    """Decode messages, each with its place in the stream, into one batch in their order, and the bad messages.

    They are decoded together for speed. If one of them is bad, is Arrow or has attributes, all of them are decoded one
    by one.
    """
    items, extractor = list(items), EdgeFieldExtractor(options or ReadOptions())
    columns, edges = _EventColumns(), list[Any]()
    try:
        for _, payload in items:
            value = _payload_to_json(payload)
            if not _is_document(value):
                edges.append(value)
                continue
            _append_values(edges, columns, extractor)
            edges = []
            _append_document(convert(value, Document, extractor), columns, extractor)
        _append_values(edges, columns, extractor)
        if not columns.attributes:
            return DecodedMessages(_build_batch(columns, options), [])
    except (MessageError, RecursionError):
        pass
    return _decode_one_by_one(items, options)


def _payload_to_json(payload: Payload) -> Any:
    """Return a payload as a JSON value."""
    if isinstance(payload, Mapping):
        if "data" not in payload:
            return _edge_from_fields(payload)
        payload = _data_field(payload)
    if payload[:4] == ARROW_MAGIC:
        raise MessageError("expected JSON, got Arrow")
    return _load_json(payload)


def _decode_one_by_one(items: list[tuple[str, Payload]], options: ReadOptions | None) -> DecodedMessages:
    batches, bad_messages, attributes, length = [], [], list[tuple[int, AttributeRows]](), 0
    for where, payload in items:
        try:
            batch, rows = detach_attributes(_decode_payload(payload, options).batch)
        except MessageError as error:
            bad_messages.append(BadMessage(to_display_text(payload), where, str(error)))
            continue
        batches.append(batch)
        length += len(batch)
        if rows is not None:
            attributes.append((length, rows))
    joined = concatenate(batches)
    return DecodedMessages(joined, bad_messages, drop_removed_attributes(joined, attributes))


def _decode_payload(payload: Payload, options: ReadOptions | None) -> Message:
    return decode_fields(payload, options) if isinstance(payload, Mapping) else decode_message(payload, options)


def to_display_text(payload: Payload) -> str:
    """Return a payload as text of bounded length, with invalid bytes escaped."""
    if isinstance(payload, Mapping):
        payload = json.dumps({name: to_display_text(value) for name, value in payload.items()}).encode()
    return payload[:MAX_DISPLAY_CHARS].decode(errors="backslashreplace")


# Idempotency keys


def check_idempotency_key(key: Any) -> None:
    """Raise `InvalidValueError` if the key is neither None nor text of a valid length."""
    if key is not None and not (isinstance(key, str) and 0 < len(key) <= MAX_KEY_LENGTH and _is_utf8(key)):
        raise InvalidValueError.of("key", f"text of 1 to {MAX_KEY_LENGTH} characters", key)


def check_message_key(key: str | None) -> str | None:
    """Return the key of a message; raise `MessageError` if it is invalid."""
    try:
        check_idempotency_key(key)
    except InvalidValueError as error:
        raise MessageError(str(error)) from None
    return key


def _is_utf8(key: str) -> bool:
    """Return whether text can be encoded as UTF-8; unpaired surrogates cannot."""
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True


# Arrow


def decode_arrow(data: bytes) -> Batch:
    """Decode an Arrow stream with the columns src, dst[, weight, op, time, attributes]; other columns are ignored."""
    try:
        _check_arrow_size(unpacked_size(data))
        with pa.ipc.open_stream(pa.BufferReader(data)) as reader:
            table = reader.read_all()
        return decode_table(table)
    except MessageError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:  # ValueError: column names that are not UTF-8
        raise MessageError(f"expected an Arrow stream, got {len(data):,} other bytes ({error})") from error


def decode_table(table: pa.Table) -> Batch:
    """Decode an untrusted Arrow table; it is validated before use."""
    names = table.column_names
    used = [name for name in (*EDGE_FIELDS, ATTRIBUTES) if name in names]
    if used[:2] != ["src", "dst"] or any(names.count(name) > 1 for name in used):
        raise MessageError(f"expected columns src, dst[, weight, op, time, attributes], got {shorten(names)}")
    table = table.select(used)
    try:
        table.validate(full=True)
        _check_arrow_size(decoded_text_size(table["src"]) + decoded_text_size(table["dst"]))
        columns = {name: _convert_arrow_column(name, table[name]) for name in used if name != ATTRIBUTES}
        with np.errstate(invalid="ignore"):  # signaling NaNs would warn; they are rejected anyway
            batch = Batch.of(**columns)
        if ATTRIBUTES in used:
            batch = _attach_arrow_attributes(batch, table[ATTRIBUTES])
    except (pa.ArrowException, InvalidValueError) as error:
        raise MessageError(str(error)) from error
    return _check_id_lengths(batch)


def _check_arrow_size(size: int) -> None:
    if size > MAX_ARROW_BYTES:
        raise MessageError(f"expected an Arrow stream that unpacks to {MAX_ARROW_BYTES:,} bytes at most, got {size:,}")


def _convert_arrow_column(name: str, column: pa.ChunkedArray) -> Any:
    column_type = column.type
    is_number = pa.types.is_integer(column_type) or pa.types.is_floating(column_type)
    if name == "op" and (pa.types.is_string(column_type) or pa.types.is_large_string(column_type)):
        return [_convert_op(value) for value in column.to_pylist()]
    if name == "time":
        if not pa.types.is_temporal(column_type) and not is_number:
            raise MessageError(f"time: expected numbers or timestamps, got a column of type {column_type}")
        return np.asarray(to_seconds(column), np.float64)
    if name in ("weight", "op") and not is_number:
        raise MessageError(f"{name}: expected numbers, got a column of type {column_type}")
    return column


def _attach_arrow_attributes(batch: Batch, column: pa.ChunkedArray) -> Batch:
    """Attach a column of attributes, lists of numbers or maps of names to numbers: those of the source of each row."""
    kind, is_map = column.type, pa.types.is_map(column.type)
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    number = kind.item_type if is_map else kind.value_type if is_list else pa.null()
    is_named = not is_map or pa.types.is_string(kind.key_type)
    if not is_named or not (pa.types.is_integer(number) or pa.types.is_floating(number)):
        raise MessageError(f"attributes: expected lists of numbers, or maps of texts to numbers, got {kind}")
    given = np.flatnonzero(column.is_valid().to_numpy())
    if not given.size:
        return batch
    values = column.take(pa.array(given)).to_pylist()
    values = [_map_to_dict(row) for row in values] if is_map else values
    return attach_attributes(batch, _check_name_lengths(read_values(take_ids(batch.src, given), values)))


def _map_to_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) != len(pairs):
        raise MessageError(f"attributes: expected every name once, got {shorten(pairs)}")
    return row


# JSON


def _reject_constant(name: str) -> None:
    raise MessageError(f"expected numbers that JSON defines, got {name}")


_JSON_DECODER = json.JSONDecoder(parse_constant=_reject_constant)


def _load_json(data: bytes) -> Any:
    try:
        return _JSON_DECODER.decode(data.decode())
    except UnicodeDecodeError:
        raise MessageError("expected UTF-8 text, got other bytes") from None
    except ValueError as error:
        raise MessageError(f"expected JSON, got {shorten(to_display_text(data))} ({error})") from None


def _decode_value(value: Any, options: ReadOptions | None) -> Message:
    columns, extractor = _EventColumns(), EdgeFieldExtractor(options or ReadOptions())
    key = None
    if _is_document(value):
        document = convert(value, Document, extractor)
        _append_document(document, columns, extractor)
        key = check_message_key(document.key)
    else:
        _append_values([value], columns, extractor)
    return Message(_build_batch(columns, options), key)


def _is_document(value: Any) -> bool:
    return isinstance(value, dict) and not value.keys().isdisjoint(DOCUMENT_LISTS)


def _append_document(document: Document, columns: _EventColumns, extractor: EdgeFieldExtractor | None) -> None:
    """Append the events of a document."""
    for arrival in document.arrivals or ():
        _append_arrival(arrival, columns)
    if document.edges:
        _append_edges(document.edges, columns, extractor)
    columns.attributes += document.attributes or ()
    if document.remove_edges:
        src, dst = map(list, zip(*document.remove_edges, strict=True))
        columns.extend(src, dst, op=[Op.REMOVE] * len(src))
    if removed := document.remove_vertices:
        columns.extend(removed, removed, op=[Op.REMOVE_VERTEX] * len(removed))


def _append_arrival(arrival: Arrival, columns: _EventColumns) -> None:
    """Append the edges of an arrival, or a vertex event if it has no neighbors."""
    neighbors: list[Id] = arrival.neighbors or []
    if arrival.attributes is not None:
        columns.attributes.append(arrival)
    times = [arrival.time] * max(len(neighbors), 1)
    if neighbors:
        columns.extend([arrival.id] * len(neighbors), neighbors, arrival.weights, times)
    else:
        columns.extend([arrival.id], [arrival.id], None, times, [Op.VERTEX])


def _append_edges(
    edges: Sequence[Edge | dict[str, Any]], columns: _EventColumns, extractor: EdgeFieldExtractor | None
) -> None:
    """Append edges of a document. Edges as JSON objects, or with columns that the options ignore, are extracted."""
    if all(type(edge) is Edge for edge in edges) and (extractor is None or extractor.keeps_lists):
        columns.extend_edges(edges)  # type: ignore[arg-type]  # all of them are `Edge`
    else:
        rows = [list(msgspec.structs.astuple(edge)) if isinstance(edge, Edge) else edge for edge in edges]
        _append_values(rows, columns, extractor or EdgeFieldExtractor(ReadOptions()))


def _append_values(rows: list[Any], columns: _EventColumns, extractor: EdgeFieldExtractor) -> None:
    """Append edges given as JSON lists or objects."""
    ops: list[Any] | None = None
    if not extractor.keeps_lists or any(type(row) is not list for row in rows):
        rows, ops = _extract_fields(rows, extractor)
    edges = convert(rows, list[Edge], extractor)
    columns.extend_edges(edges, ops)


def _extract_fields(rows: list[Any], extractor: EdgeFieldExtractor) -> tuple[list[list[Any]], list[Any]]:
    """Return edges as lists [src, dst, weight, time], and their operations."""
    edges, ops = [], []
    for row in rows:
        try:
            *fields, op = extractor.extract(row)
        except RowError as error:
            raise MessageError(f"expected {error}, got {shorten(row)}") from None
        edges.append(fields)
        ops.append(op)
    return edges, ops


# Broker fields


def _data_field(fields: Mapping[str, bytes]) -> bytes:
    if len(fields) > 1:
        raise _unexpected_fields_error(fields)
    return fields["data"]


def _edge_from_fields(fields: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the fields of one edge as the equivalent JSON object."""
    if not {"src", "dst"} <= fields.keys() or fields.keys() - set(EDGE_FIELDS):
        raise _unexpected_fields_error(fields)
    try:
        edge: dict[str, Any] = {name: value.decode() for name, value in fields.items()}
        if "weight" in edge:
            edge["weight"] = parse_weight(edge["weight"])
    except UnicodeDecodeError:
        raise MessageError("expected UTF-8 text in every field, got other bytes") from None
    except RowError as error:
        raise MessageError(f"expected {error}") from None
    return edge


def _unexpected_fields_error(fields: Mapping[str, bytes]) -> MessageError:
    return MessageError(
        f"expected fields src, dst[, weight, op, time], or data alone, got {shorten(list(fields))}. "
        "Remove other fields or correct their spelling."
    )


# Values


def _build_batch(columns: _EventColumns, options: ReadOptions | None) -> Batch:
    ids = "auto" if options is None else options.ids
    try:
        endpoints = (columns.src, columns.dst)
        src, dst = endpoints if ids == "auto" else ([parse_id(name, ids) for name in column] for column in endpoints)
        weight, op, time = _convert_weights(columns.weight), _convert_ops(columns.op), _convert_times(columns.time)
        batch = Batch(src, dst, weight, op, time)
        if columns.attributes:
            batch = _attach_attributes(batch, columns.attributes, ids)
    except RowError as error:
        raise MessageError(f"expected {error}") from None
    except InvalidValueError as error:
        raise MessageError(str(error)) from None
    return _check_id_lengths(batch)


def _attach_attributes(batch: Batch, given: list[Arrival | VertexAttributes], ids: str) -> Batch:
    """Attach the attributes of a document to its batch. It must not remove a vertex that it sets attributes of."""
    vertices = [row.id if ids == "auto" else parse_id(row.id, ids) for row in given]
    rows = _check_name_lengths(read_values(vertices, [row.attributes for row in given]))
    if drop_removed_attributes(batch, [(0, rows)]) != [rows]:
        raise MessageError("attributes: expected vertices that remain, got one that the document removes")
    return attach_attributes(batch, rows)


def _check_name_lengths(rows: AttributeRows) -> AttributeRows:
    if rows.names is not None and len(rows.names):
        length = _max_id_length(rows.names)
        if length == 0 or length > MAX_ID_BYTES:
            got = "an empty one" if not length else f"one of {length:,} bytes"
            raise MessageError(f"attributes: expected names of 1 to {MAX_ID_BYTES:,} bytes, got {got}")
    return rows


def _convert_weights(values: list[float | None]) -> list[float] | None:
    """Return weights with 1 for missing ones; None if all are missing."""
    if set(values) <= {None}:
        return None
    return [1.0 if value is None else value for value in values]


def _convert_times(values: list[Any]) -> list[float] | None:
    if set(map(type, values)) <= {type(None)}:
        return None
    return [math.nan if value is None else parse_time(value) for value in values]


def _convert_ops(values: list[Any]) -> list[Op] | None:
    if set(map(type, values)) <= {type(None)}:
        return None
    return [Op.ADD if value is None else _convert_op(value) for value in values]


def _convert_op(value: Any) -> Op:
    try:
        return parse_op(value)
    except RowError:
        names = ", ".join(op.name.lower() for op in Op)
        raise MessageError(f"op: expected one of {names}, got {shorten(value)}") from None


def _check_id_lengths(batch: Batch) -> Batch:
    for column in (batch.src, batch.dst):
        length = _max_id_length(column)
        if length == 0 or length > MAX_ID_BYTES:
            got = "empty text" if not length else f"one of {length:,} bytes"
            raise MessageError(f"expected ids of 1 to {MAX_ID_BYTES:,} bytes, got {got}")
    return batch


def _max_id_length(column: IdColumn) -> int:
    """Return the length of the longest id in bytes, but 0 if one is empty; 64-bit integers are never too long."""
    if isinstance(column, np.ndarray):
        return 1
    if isinstance(column, pa.Array):
        extremes = pc.min_max(pc.binary_length(column)).as_py()
        return int(extremes["max"] if extremes["min"] else 0)
    lengths = [len(str(name).encode()) for name in column]
    return max(lengths) if min(lengths) else 0
