"""JSON messages, declared as msgspec structs: documents, arrivals, edges and attributes.

Decoding, the expected values in error messages and the OpenAPI description of request bodies all follow from the
declarations.

A document has any of `arrivals`, `edges`, `attributes`, `remove_edges`, `remove_vertices`, applied in this order, and
optionally a `key` (its idempotency key). An unknown name in an object is an error, because ignoring it could lose
events silently.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from ripplevec.batch import MAX_TIME, MAX_WEIGHT, MIN_WEIGHT
from ripplevec.errors import RipplevecError, shorten
from ripplevec.io.readers.jsonl import EdgeFieldExtractor

MAX_ID_BYTES = 1024
"""Longest id in bytes of UTF-8 (of decimal digits, for an integer)."""

MAX_KEY_LENGTH = 256
"""Longest idempotency key in characters, wherever it is given."""

EDGE_LIST_FIELDS = ("src", "dst", "weight", "time")

T = TypeVar("T")


class MessageError(RipplevecError, ValueError):
    """A message cannot be decoded into events."""


# Declarations of the JSON forms. `extra_json_schema` holds what decoding cannot check: lengths are limited in bytes
# (by `decode_message`), and times may be text (`parse_time`).

_TextId = Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": MAX_ID_BYTES})]
_VertexId = Annotated[int | _TextId, Meta(description="an id that is int or str")]
_Weight = Annotated[
    Annotated[float, Meta(ge=MIN_WEIGHT, le=MAX_WEIGHT)] | None,
    Meta(description=f"positive finite numbers from {MIN_WEIGHT:g} to {MAX_WEIGHT:g}, or null for 1"),
]
_Time = Annotated[
    Annotated[float, Meta(extra_json_schema={"minimum": -MAX_TIME, "maximum": MAX_TIME})]
    | Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
    | None,
    Meta(description="a time as a number or in ISO 8601, or null for none"),
]
_Key = Annotated[
    Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": MAX_KEY_LENGTH})] | None,
    Meta(description=f"text of 1 to {MAX_KEY_LENGTH} characters: a batch is applied once per key"),
]
_EXPECTED_ATTRIBUTES = 'an object {"name": value} or a list of numbers'
_Attributes = Annotated[
    dict[str, float] | list[float] | None, Meta(description=f"{_EXPECTED_ATTRIBUTES}, or null for none")
]
_ARRIVAL_FORM = '{"id": …, "neighbors": […], "weights": […]}'


class Edge(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """An edge as a JSON list: two ids, and optionally a weight and a time."""

    src: _VertexId
    dst: _VertexId
    weight: _Weight = None
    time: _Time = None


class Arrival(Struct, forbid_unknown_fields=True, gc=False):
    """A vertex with its edges. The spelling `neighbours` is accepted as well."""

    id: _VertexId
    neighbors: Annotated[list[_VertexId] | UnsetType, Meta(description="a list of ids that are int or str")] = UNSET
    weights: Annotated[list[_Weight] | None, Meta(description="a list of weights, one per neighbor, or null")] = None
    time: _Time = None
    attributes: _Attributes = None
    neighbours: Annotated[list[_VertexId] | UnsetType, Meta(description="a list of ids that are int or str")] = UNSET

    def __post_init__(self) -> None:
        if self.neighbours is not UNSET:
            if self.neighbors is not UNSET:
                raise ValueError('expected one of "neighbors" and "neighbours", got both. Remove one of them.')
            self.neighbors, self.neighbours = self.neighbours, UNSET
        count = 0 if self.neighbors is UNSET else len(self.neighbors)
        if self.weights is not None and len(self.weights) != count:
            raise ValueError(f"expected {count:,} weights, one per neighbor, got {len(self.weights):,}")


class VertexAttributes(Struct, forbid_unknown_fields=True, gc=False):
    """The attributes of a vertex, which replace earlier ones; an empty object removes them."""

    id: _VertexId
    attributes: Annotated[dict[str, float] | list[float], Meta(description=_EXPECTED_ATTRIBUTES)]


class Document(Struct, forbid_unknown_fields=True):
    """One batch: its parts are applied in this order, all together or not at all."""

    key: _Key = None
    arrivals: Annotated[list[Arrival] | UnsetType, Meta(description=f"a list of {_ARRIVAL_FORM}")] = UNSET
    edges: Annotated[
        list[Edge | dict[str, Any]] | UnsetType, Meta(description="a list of edges [src, dst, weight, time]")
    ] = UNSET
    attributes: Annotated[
        list[VertexAttributes] | UnsetType, Meta(description='a list of {"id": …, "attributes": …}')
    ] = UNSET
    remove_edges: Annotated[
        list[tuple[_VertexId, _VertexId]] | UnsetType, Meta(description="a list of pairs [src, dst]")
    ] = UNSET
    remove_vertices: Annotated[list[_VertexId] | UnsetType, Meta(description="a list of ids that are int or str")] = (
        UNSET
    )


def describe_document(required: str) -> dict[str, Any]:
    """Return the JSON schema of a document whose list named `required` must not be empty, without references."""
    (reference,), definitions = msgspec.json.schema_components([Document])
    schema: dict[str, Any] = _resolve_references(reference, definitions)
    edges, arrivals = schema["properties"]["edges"], schema["properties"]["arrivals"]
    edges["items"] = edges["items"]["anyOf"][0]  # objects, whose keys depend on the options of a source, are not shown
    edges["items"]["items"] = False
    del arrivals["items"]["properties"]["neighbours"]
    schema["properties"][required]["minItems"] = 1
    return schema | {"required": [required]}


def _resolve_references(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """Return a schema with every reference replaced by its definition, and without titles and defaults."""
    if isinstance(schema, list):
        return [_resolve_references(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _resolve_references(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    properties = {name: _resolve_references(item, definitions) for name, item in schema.get("properties", {}).items()}
    kept = {key: _resolve_references(item, definitions) for key, item in schema.items() if key not in _LEFT_OUT}
    return kept | ({"properties": properties} if properties else {})


_LEFT_OUT = ("title", "default", "properties")
_EXPECTED: dict[str, str] = {
    name: hint.__metadata__[0].description
    for declared in (VertexAttributes, Arrival, Edge, Document)
    for name, hint in get_type_hints(declared, include_extras=True).items()
}
_ERROR_PATH = re.compile(r" - at `\$(.*)`$")
DOCUMENT_DECODER = msgspec.json.Decoder(Document)


def convert(value: Any, declared: type[T], extractor: EdgeFieldExtractor) -> T:
    """Convert a JSON value to its declared form; raise `MessageError` that names the first value that does not fit."""
    try:
        return msgspec.convert(value, declared)
    except msgspec.ValidationError as error:
        raise _explain(value, error, extractor) from None


def _explain(value: Any, error: msgspec.ValidationError, extractor: EdgeFieldExtractor) -> MessageError:
    """Describe a value that does not fit its declaration: its name, the expected and the given value, and its row."""
    match = _ERROR_PATH.search(str(error))
    steps = re.findall(r"\w+", match[1]) if match else []
    names = [step for step in steps if not step.isdigit()]
    name = names[-1] if names else "edges"
    rows = [int(step) for step in steps if step.isdigit()]
    for step in steps:
        value = value[int(step) if step.isdigit() else step]
    if name == "attributes" and len(names) == 2:
        return _explain_attributes(value, rows)
    if name == "edges" and len(rows) == 1:
        return MessageError(f"expected {extractor.not_an_edge_error()}, got {shorten(value)}")
    if name == "edges" and len(rows) == 2:
        name = EDGE_LIST_FIELDS[rows[1]]
    if unknown := re.match(r"Object contains unknown field `(.*?)`", str(error)):
        declared = {"arrivals": Arrival, "attributes": VertexAttributes}[names[0]] if names else Document
        name = names[0] if names else "document"
        keys = ", ".join(key for key in declared.__struct_fields__ if key != "neighbours")
        return MessageError(
            f"{name}: expected only the keys {keys}, got {shorten(unknown[1])}. Remove the key or correct its spelling."
        )
    row = f" in row {rows[0]}" if rows else ""
    if isinstance(error.__cause__, ValueError):
        return MessageError(f"{name}: {error.__cause__}{row}")
    return MessageError(f"{name}: expected {_EXPECTED[name]}, got {shorten(value)}{row}")


def _explain_attributes(value: Any, rows: list[int]) -> MessageError:
    """Describe attributes of a vertex that do not fit: the bad value with its row and column, if it is a value."""
    column: Any = rows[1] if len(rows) == 2 else None
    if isinstance(value, dict):
        column = next((name for name, number in value.items() if not _is_number(number)), None)
        value = value if column is None else value[column]
    if column is None:
        return MessageError(f"attributes: expected {_EXPECTED_ATTRIBUTES}, got {shorten(value)} in row {rows[0]}")
    return MessageError(f"attributes: expected numbers, got {shorten(value)} in row {rows[0]}, column {column!r}")


def _is_number(value: Any) -> bool:
    """Return whether a JSON value is a number that a float can hold."""
    return type(value) is float or (type(value) is int and value.bit_length() < 1024)
