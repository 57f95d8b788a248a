"""Request and response models, and the OpenAPI descriptions of request bodies and error responses."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    StringConstraints,
    WithJsonSchema,
)

from ripplevec.batch import MAX_WEIGHT, MIN_WEIGHT
from ripplevec.io.message_schema import MAX_ID_BYTES, MAX_KEY_LENGTH, describe_document
from ripplevec.service.settings import Limits


def _integral_float_to_int(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


TextId = Annotated[StrictStr, StringConstraints(min_length=1, max_length=MAX_ID_BYTES)]
VertexId = StrictInt | TextId
FiniteNumber = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Weight = Annotated[FiniteNumber, Field(ge=MIN_WEIGHT, le=MAX_WEIGHT)]
Integer = Annotated[StrictInt, BeforeValidator(_integral_float_to_int)]  # JSON does not distinguish 10 from 10.0
K_RANGE: dict[str, Any] = {"minimum": 1, "maximum": Limits().neighbors}  # the default limit; settings may change it
IdempotencyKey = Annotated[StrictStr, StringConstraints(min_length=1, max_length=MAX_KEY_LENGTH)]


class _RequestModel(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RemoveEdges(_RequestModel):
    """Edges to remove."""

    key: IdempotencyKey | None = None
    edges: Annotated[list[tuple[VertexId, VertexId]], Field(min_length=1)]


class RemoveVertices(_RequestModel):
    """Vertices to remove."""

    key: IdempotencyKey | None = None
    ids: Annotated[list[VertexId], Field(min_length=1)]


class VectorsRequest(_RequestModel):
    """Vertices whose vectors are requested."""

    ids: list[VertexId]


class NearestRequest(_RequestModel):
    """A query vector and the number of nearest vertices to return."""

    vector: list[FiniteNumber]
    k: Annotated[Integer, Field(ge=1, json_schema_extra=K_RANGE)] = 10


class NearestManyRequest(_RequestModel):
    """Query vertices or query vectors, one of the two, and the vertices to choose from; all vertices by default."""

    vertices: list[VertexId] | None = None
    vectors: list[list[FiniteNumber]] | None = None
    k: Annotated[Integer, Field(ge=1, json_schema_extra=K_RANGE)] = 10
    among: list[VertexId] | None = None


class DegreesRequest(_RequestModel):
    """Ids of the vertices whose degrees are requested."""

    ids: list[VertexId]


class AgesRequest(_RequestModel):
    """Ids of the vertices whose ages are requested."""

    ids: list[VertexId]


class NeighborsRequest(_RequestModel):
    """A vertex whose neighbors are requested, and how many of the latest ones; by default all."""

    vertex: VertexId
    limit: Annotated[Integer, Field(ge=0, json_schema_extra={"minimum": 0})] | None = None


Attributes = Annotated[
    dict[StrictStr, FiniteNumber] | list[FiniteNumber],
    Field(description="attributes of one vertex: values by name, or a list of numbers"),
]


class NearestByAttributesRequest(_RequestModel):
    """Attributes or a vertex, the number of vertices to return, and those to choose from; all vertices by default."""

    attributes: Attributes | None = None
    vertex: VertexId | None = None
    k: Annotated[Integer, Field(ge=1, json_schema_extra=K_RANGE)] = 10
    among: list[VertexId] | None = None


class PreviewRequest(_RequestModel):
    """Neighbors and attributes of a hypothetical new vertex. The spelling `neighbours` is accepted as well."""

    neighbors: Annotated[list[VertexId], Field(validation_alias=AliasChoices("neighbors", "neighbours"))] = []
    weights: list[Weight] | None = None
    attributes: Attributes | None = None


Newcomers = Annotated[
    list[tuple[VertexId, list[VertexId]]],
    Field(description="vertices that are not in the model, each with its neighbors", max_length=10_000),
]


class ScoreRequest(_RequestModel):
    """Pairs of vertices to be scored as candidate edges."""

    pairs: list[tuple[VertexId, VertexId]]
    newcomers: Newcomers = []


class RecommendRequest(_RequestModel):
    """Vertices for which new edges are requested, and the candidates; all vertices by default."""

    vertices: list[VertexId]
    k: Annotated[Integer, Field(ge=1, json_schema_extra=K_RANGE)] = 10
    among: list[VertexId] | None = None
    exclude: Literal["neighbors"] | None = "neighbors"
    newcomers: Newcomers = []


class LabelsRequest(_RequestModel):
    """Labels of vertices; null removes a label."""

    labels: Annotated[
        list[tuple[VertexId, Annotated[StrictStr, StringConstraints(max_length=256)] | None]], Field(max_length=100_000)
    ]


class Error(BaseModel):
    """Reason why a request was rejected; with status 404 also the vertices or edges that do not exist."""

    error: str
    missing: list[Any] | None = None


class Receipt(BaseModel):
    """Result of a batch, once it is on disk and applied."""

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
    """Vectors of the requested vertices that exist, in the order of the request, and the ids that do not exist."""

    sequence: int
    ids: list[int | str]
    vectors: list[list[float]]
    missing: list[int | str]


# An array instead of a tuple: many tools that read OpenAPI descriptions do not support tuples.
_NEAREST_ITEM: dict[str, Any] = {
    "type": "array",
    "items": {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "number"}]},
    "minItems": 2,
    "maxItems": 2,
    "description": "an id and its cosine",
}

_NEIGHBOR_ITEM = _NEAREST_ITEM | {"description": "an id and the weight of the edge"}


class Neighbors(BaseModel):
    """The nearest vertices with their cosines, highest first."""

    sequence: int
    nearest: list[Annotated[tuple[int | str, float], WithJsonSchema(_NEAREST_ITEM)]]


class NeighborLists(BaseModel):
    """For each query, the nearest vertices with their cosines, highest first."""

    sequence: int
    nearest: list[list[Annotated[tuple[int | str, float], WithJsonSchema(_NEAREST_ITEM)]]]


class Degrees(BaseModel):
    """The numbers of edges of vertices, in the order of the request."""

    sequence: int
    degrees: list[int]


class Ages(BaseModel):
    """For each requested vertex, the number of vertices that arrived after it."""

    sequence: int
    ages: list[int]


class WeightedNeighbors(BaseModel):
    """The neighbors of a vertex with the weights of the edges, latest edge first."""

    sequence: int
    neighbors: list[Annotated[tuple[int | str, float], WithJsonSchema(_NEIGHBOR_ITEM)]]


class LinkScores(BaseModel):
    """The scores of pairs, in the order of the request."""

    sequence: int
    scores: list[float]


class Recommendations(BaseModel):
    """For each requested vertex, the recommended vertices with their scores, highest first."""

    sequence: int
    recommended: list[list[Annotated[tuple[int | str, float], WithJsonSchema(_NEAREST_ITEM)]]]


class Previewed(BaseModel):
    """The vector that a new vertex would get."""

    sequence: int
    vector: list[float]


_EXAMPLES: dict[str, dict[str, Any]] = {
    "edges": {"key": "order-17", "edges": [["ann", "bob"], ["ann", "carol", 2.0]]},
    "arrivals": {"arrivals": [{"id": "dave", "neighbors": ["ann", "bob"]}]},
    "attributes": {"attributes": [{"id": "dave", "attributes": {"jazz": 2.0, "chess": 1.0}}]},
}


def describe_events_body(required: str) -> dict[str, Any]:
    """Describe the body of a write for OpenAPI; the list named `required` must not be empty."""
    lines = {"type": "string", "description": 'one JSON edge per line, `["a","b",2.0]` or `{"src":"a","dst":"b"}`'}
    arrow = {"type": "string", "format": "binary", "description": "columns src, dst[, weight, op, time, attributes]"}
    content = {
        "application/json": {"schema": describe_document(required), "example": _EXAMPLES[required]},
        "application/x-ndjson": {"schema": lines},
        "application/vnd.apache.arrow.stream": {"schema": arrow},
    }
    return {"requestBody": {"required": True, "content": content}}


def describe_attributes_body() -> dict[str, Any]:
    """Describe the body that sets attributes for OpenAPI: a document with nothing else."""
    schema = describe_document("attributes")
    schema["properties"] = {name: schema["properties"][name] for name in ("key", "attributes")}
    content = {"application/json": {"schema": schema, "example": _EXAMPLES["attributes"]}}
    return {"requestBody": {"required": True, "content": content}}


def describe_json_body(model: type[BaseModel]) -> dict[str, Any]:
    """Describe a JSON body for OpenAPI by its request model."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": model.model_json_schema()}}}}


STATUS_MEANINGS = {
    400: "The request has two Host headers or cannot be parsed as HTTP.",
    401: "A token is required, or the token is unknown.",
    403: "The token permits reads only, or the request comes from another website.",
    404: "A vertex or an edge does not exist. Nothing of the batch was stored.",
    408: "The body did not arrive in time.",
    409: "The document and the header have different keys.",
    410: "Changes after `since` are no longer available: read the vectors again, and follow from their number.",
    413: "The body, or the number of events or ids in it, is above the limit.",
    415: "The content type is not supported, or the body is compressed.",
    421: "The name in the Host header is not allowed (`--allow-host`).",
    422: "The body or a parameter has a value that cannot be used. Nothing of the batch was stored.",
    429: "Too many requests are waiting: retry after the seconds in `Retry-After`.",
    500: "An unexpected error; the log of the service has the details.",
    503: "The service is recovering, closing or busy, or the disk cannot be written: retry after `Retry-After`.",
}
"""The meaning of every error status, for OpenAPI."""

DESCRIPTION = """
Every response has the sequence number of the state that it was read from. Every error is `{"error": "…"}`, with a
message that tells what was expected and what was received; status 404 also has the ids that are `missing`.
"""

TAGS = [
    {"name": "reads", "description": "Vectors, nearest vertices, and scores of edges."},
    {"name": "writes", "description": "Batches: each is applied as a whole or not at all, and is on disk afterwards."},
    {"name": "labels", "description": "Labels of vertices, by which the live page colors them; vectors ignore them."},
    {"name": "changes", "description": "Vectors that moved, batch by batch."},
    {"name": "operations", "description": "Statistics, metrics and health of the service."},
]
"""The groups of endpoints, in the order of the API page."""


def describe_errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the error responses of an endpoint for OpenAPI: these, and those that any endpoint may send."""
    described = (400, 401, 403, *statuses, 421, 500, 503)
    return {status: {"model": Error, "description": STATUS_MEANINGS[status]} for status in described}
