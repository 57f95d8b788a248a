"""The forms of requests and answers that are not streams of events, and how all of them are described."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    StringConstraints,
    WithJsonSchema,
)

from ripplevec.batch import MAX_TIME, MAX_WEIGHT, MIN_WEIGHT
from ripplevec.io.messages import MAX_ID_BYTES
from ripplevec.service.settings import Limits

TextId = Annotated[StrictStr, StringConstraints(min_length=1, max_length=MAX_ID_BYTES)]
VertexId = StrictInt | TextId
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Weight = Annotated[Number, Field(ge=MIN_WEIGHT, le=MAX_WEIGHT)]
Whole = Annotated[StrictInt, BeforeValidator(lambda given: _whole(given))]  # JSON knows no difference from 10.0
COUNT: dict[str, Any] = {"minimum": 1, "maximum": Limits().neighbors}  # as described; settings may say otherwise
Key = Annotated[StrictStr, StringConstraints(min_length=1, max_length=256)]


def _whole(given: Any) -> Any:
    return int(given) if isinstance(given, float) and given.is_integer() else given


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RemoveEdges(_Form):
    """Edges to remove."""

    key: Key | None = None
    edges: Annotated[list[tuple[VertexId, VertexId]], Field(min_length=1)]


class RemoveVertices(_Form):
    """Vertices to remove."""

    key: Key | None = None
    ids: Annotated[list[VertexId], Field(min_length=1)]


class Ids(_Form):
    """Vertices whose vectors are asked for."""

    ids: list[VertexId]


class Near(_Form):
    """A vector whose neighbors are asked for."""

    vector: list[Number]
    k: Annotated[Whole, Field(ge=1, json_schema_extra=COUNT)] = 10


class Preview(_Form):
    """The neighbors a newcomer would have."""

    neighbors: list[VertexId]
    weights: list[Weight] | None = None


class LabelPairs(_Form):
    """Labels of vertices; null takes one away."""

    labels: Annotated[
        list[tuple[VertexId, Annotated[StrictStr, StringConstraints(max_length=256)] | None]], Field(max_length=100_000)
    ]


class Error(BaseModel):
    """Why a request was refused."""

    error: str


class Receipt(BaseModel):
    """What became of a batch, once it is on disk."""

    sequence: int
    repeated: bool
    events: int
    arrived: int
    changed: int
    removed: int
    anchored: bool


class Vertex(BaseModel):
    """One vertex."""

    id: int | str
    vector: list[float]
    degree: int
    strength: float
    placed: bool
    arrival: int
    age: int
    label: str | None
    sequence: int


class Vectors(BaseModel):
    """Vectors of the vertices that are known, in the order asked for, and those that are not."""

    sequence: int
    ids: list[int | str]
    vectors: list[list[float]]
    missing: list[int | str]


_NEAR: dict[str, Any] = {
    "type": "array",
    "items": {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "number"}]},
    "minItems": 2,
    "maxItems": 2,
    "description": "an id and its cosine",
}  # and no tuple, which many tools that read descriptions do not know


class Neighbors(BaseModel):
    """The nearest vertices with their cosines, best first."""

    sequence: int
    nearest: list[Annotated[tuple[int | str, float], WithJsonSchema(_NEAR)]]


class Previewed(BaseModel):
    """The vector a newcomer would get."""

    sequence: int
    vector: list[float]


_ID: dict[str, Any] = {"anyOf": [{"type": "integer"}, {"type": "string", "minLength": 1, "maxLength": MAX_ID_BYTES}]}
_WEIGHT: dict[str, Any] = {
    "anyOf": [{"type": "number", "minimum": MIN_WEIGHT, "maximum": MAX_WEIGHT}, {"type": "null"}],
    "description": "null for 1",
}
_TIME: dict[str, Any] = {
    "anyOf": [
        {"type": "number", "minimum": -MAX_TIME, "maximum": MAX_TIME},
        {"type": "string", "format": "date-time"},
        {"type": "null"},
    ],
    "description": "a number, or a date or time in ISO 8601; null for none",
}
_EDGE = {"type": "array", "prefixItems": [_ID, _ID, _WEIGHT, _TIME], "items": False, "minItems": 2, "maxItems": 4}
_PAIR = {"type": "array", "prefixItems": [_ID, _ID], "items": False, "minItems": 2, "maxItems": 2}
_ARRIVAL = {
    "type": "object",
    "properties": {
        "id": _ID,
        "neighbors": {"type": "array", "items": _ID},
        "weights": {
            "anyOf": [{"type": "array", "items": _WEIGHT}, {"type": "null"}],
            "description": "one per neighbor",
        },
        "time": _TIME,
    },
    "required": ["id"],
    "additionalProperties": False,
}
_KEY = {
    "anyOf": [{"type": "string", "minLength": 1, "maxLength": 256}, {"type": "null"}],
    "description": "a batch with a known key is not applied again",
}


def _document(required: str) -> dict[str, Any]:
    forms = {"arrivals": _ARRIVAL, "edges": _EDGE, "remove_edges": _PAIR, "remove_vertices": _ID}
    lists: dict[str, Any] = {name: {"type": "array", "items": form} for name, form in forms.items()}
    lists[required]["minItems"] = 1
    return {
        "type": "object",
        "properties": {"key": _KEY, **lists},
        "required": [required],
        "additionalProperties": False,
        "description": "One batch: what is in it is applied in this order, together, or not at all.",
    }


def events_body(form: str) -> dict[str, Any]:
    """How the body of a write is described."""
    lines = {"type": "string", "description": 'a JSON edge per line, `["a","b",2.0]` or `{"src":"a","dst":"b"}`'}
    arrow = {"type": "string", "format": "binary", "description": "columns src, dst[, weight, op, time]"}
    content = {
        "application/json": {"schema": _document(form)},
        "application/x-ndjson": {"schema": lines},
        "application/vnd.apache.arrow.stream": {"schema": arrow},
    }
    return {"requestBody": {"required": True, "content": content}}


def json_body(kind: type[BaseModel]) -> dict[str, Any]:
    """How the body of a small request is described."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": kind.model_json_schema()}}}}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How the refusals of an endpoint are described; some may come from any of them."""
    return {status: {"model": Error} for status in (400, 401, 403, *statuses, 421, 503)}
