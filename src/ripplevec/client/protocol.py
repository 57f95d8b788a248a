"""Requests to the service and parsing of its responses, shared by both clients."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeAlias, TypeVar, cast
from urllib.parse import quote

import httpx
import numpy as np
from httpx_sse import ServerSentEvent, SSEError
from numpy.typing import ArrayLike, NDArray

from ripplevec.attributes.input import (
    AttributesLike,
    attributes_to_json,
    read_attributes,
    read_one,
    read_values,
    split_attributes,
)
from ripplevec.batch import (
    Batch,
    EdgeListLike,
    Id,
    IdsLike,
    Op,
    id_column,
    ids_to_list,
    normalize_id,
    read_pairs,
    read_removals,
    refuse_attributes,
    time_column,
    times_to_json,
)
from ripplevec.errors import (
    InvalidValueError,
    RipplevecError,
    StateError,
    UnknownEdgeError,
    UnknownVertexError,
    shorten,
)
from ripplevec.times import TimeLike
from ripplevec.util.retry_policy import RetryPolicy
from ripplevec.vector_reads import ID_TYPES

Vector: TypeAlias = NDArray[np.float32]
Weights: TypeAlias = ArrayLike | None
Newcomers: TypeAlias = Mapping[Id, IdsLike]

Receipt: TypeAlias = dict[str, Any]
"""Response to a write: sequence number of the batch and its counts."""

T = TypeVar("T")

STREAM_TIMEOUT = 90.0
"""Seconds of silence after which a change stream counts as dead; the service sends a heartbeat every 15 s."""

_INITIAL_DELAY, _MAX_DELAY = 0.2, 30.0
_MAX_TIMEOUT = 1_000_000_000
_PARSE_ERRORS = (ValueError, LookupError, TypeError, AttributeError)
_RETRYABLE_STATUSES = frozenset({429, 502, 503, 504})


class ServiceError(RipplevecError):
    """A request was refused by the service.

    Attributes
    ----------
    status : int
        HTTP status of the response.
    reason : str
        The error message of the service.
    retry_after : float
        Seconds after which the service asks to repeat the request; 0 if it does not.
    """

    def __init__(self, status: int, reason: str, retry_after: float = 0.0) -> None:
        Exception.__init__(self, status, reason)  # not super: subclasses are also errors with other arguments
        self.status, self.reason, self.retry_after = status, reason, retry_after

    def __str__(self) -> str:
        return f"the service answered {self.status}: {self.reason}"


class RefusedValueError(ServiceError, InvalidValueError):
    """The service refused a value of the request. Also an `InvalidValueError`, the error of a model."""


class NotFoundError(ServiceError, KeyError):
    """The service does not know a vertex or an edge of the request.

    Also an `UnknownVertexError` or an `UnknownEdgeError`, the error of a model in the same case.
    """


class NotFoundVertexError(NotFoundError, UnknownVertexError):
    """A vertex of the request is unknown."""

    def __init__(self, status: int, reason: str, missing: Sequence[Id]) -> None:
        NotFoundError.__init__(self, status, reason)
        self.missing, self.similar = list(missing), None
        self.args = (status, reason, self.missing)  # the constructor's arguments, so that the error can be pickled


class NotFoundEdgeError(NotFoundError, UnknownEdgeError):
    """An edge of the request is unknown."""

    def __init__(self, status: int, reason: str, missing: Sequence[Sequence[Id]]) -> None:
        NotFoundError.__init__(self, status, reason)
        self.missing = [(source, target) for source, target in missing]
        self.args = (status, reason, missing)


class TooOldError(ServiceError):
    """The requested changes are no longer kept: read the vectors again and follow from their sequence number."""


class UnreachableServiceError(RipplevecError, ConnectionError):
    """The service cannot be reached, or the connection was lost and no retry is left. Also a `ConnectionError`."""


class UnexpectedResponseError(RipplevecError):
    """A response does not come from a service of this package, or is damaged."""

    @classmethod
    def of(cls, url: httpx.URL, got: str) -> UnexpectedResponseError:
        """Create the error for what the server at an address has sent."""
        advice = "Check the address: another program may answer there, or a proxy on the way"
        return cls(f"{url}: expected a response of `ripplevec serve`, got {got}. {advice}.")


@contextmanager
def translate_errors(http: httpx.Client | httpx.AsyncClient) -> Iterator[None]:
    """Raise errors of the HTTP libraries as errors of this package."""
    try:
        yield
    except (httpx.DecodingError, SSEError) as error:
        raise UnexpectedResponseError.of(http.base_url, f"one that cannot be decoded ({error})") from error
    except httpx.TransportError as error:
        advice = "Check the address, and that `ripplevec serve` is running"
        reason = str(error) or type(error).__name__
        raise UnreachableServiceError(f"{http.base_url} cannot be reached: {reason}. {advice}.") from error
    except httpx.InvalidURL as error:
        raise InvalidValueError.of("request", "an id that fits in an address", str(error)) from error
    except RuntimeError as error:  # closed, before or meanwhile; with asyncio also after another event loop
        reason = "is closed" if http.is_closed else f"belongs to another event loop ({error})"
        raise StateError(f"the client {reason}. Create another client.") from error


def _require_sequence(body: Any) -> Any:
    """Return a response body with a sequence number, as every document of the service has one."""
    body["sequence"]
    return body


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One HTTP request and the parser of its response.

    Writes carry an idempotency key, so a repeated request is applied once.
    """

    method: str
    path: str
    body: Any = None
    query: Mapping[str, Any] = field(default_factory=dict)
    parse: Callable[[Any], T] = _require_sequence

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments for `httpx.Client.request`."""
        arguments: dict[str, Any] = {"method": self.method, "url": self.path, "params": dict(self.query)}
        if self.body is not None:
            arguments["content"] = _encode(self.body)
            arguments["headers"] = {"Content-Type": "application/json"}
        return arguments

    def parse_response(self, response: httpx.Response) -> T:
        """Return the result of a successful response; raise the matching error otherwise."""
        return parse_response(response, self.parse)


@dataclass(frozen=True, slots=True)
class BatchChanges:
    """The changes of one batch, or a part of them if there are many.

    Attributes
    ----------
    sequence : int
        Sequence number of the batch.
    ids : list of int or str
        Vertices with a new vector.
    vectors : ndarray of shape (len(ids), dim)
        Their vectors.
    arrived : list of bool
        Whether each vertex is new.
    removed : list of int or str
        Vertices that were removed.
    anchored : bool
        Whether the batch includes an anchor (a global correction of all vectors).
    last : bool
        Whether this is the last part of the batch.
    """

    sequence: int
    ids: list[Id]
    vectors: Vector
    arrived: list[bool]
    removed: list[Id]
    anchored: bool
    last: bool = True


def add_vertex(
    vertex: Id,
    neighbors: IdsLike,
    weights: Weights,
    key: str | None,
    time: TimeLike | None = None,
    attributes: Any = None,
) -> Call[Receipt]:
    """Return the request that adds a vertex with its edges."""
    arrival: dict[str, Any] = {"id": normalize_id(vertex, "vertex"), "neighbors": _list_ids(neighbors, "neighbors")}
    if weights is not None:
        arrival["weights"] = _list_numbers(weights, "weights", "numbers, one per neighbor")
    if time is not None:
        (arrival["time"],) = times_to_json(time_column([time], 1))
    if attributes is not None:
        arrival["attributes"] = _one_to_json(vertex, attributes)
    return Call("POST", "/v1/arrivals", {"key": key or new_key(), "arrivals": [arrival]})


def set_attributes(ids: IdsLike, attributes: Any, key: str | None) -> Call[Receipt]:
    """Return the request that sets the attributes of vertices."""
    rows = attributes_to_json(read_values(ids, attributes))
    return Call("PUT", "/v1/attributes", {"key": key or new_key(), "attributes": rows})


def _one_to_json(vertex: Id, attributes: Any) -> Any:
    """Return the attributes of one vertex for JSON."""
    return attributes_to_json(read_one(vertex, attributes))[0]["attributes"]


def _list_ids(values: IdsLike, name: str = "ids") -> list[Id]:
    """Convert ids to a list for JSON. A string is refused: it is one id, not a list of letters."""
    return ids_to_list(id_column(values, name))


def _is_id(value: Any) -> bool:
    return isinstance(value, ID_TYPES)


def _list_newcomers(newcomers: Newcomers | None) -> list[tuple[Id, list[Id]]]:
    """Convert newcomers to a list for JSON, whose keys cannot be integers."""
    return [
        (normalize_id(vertex, "newcomers"), _list_ids(neighbors, "newcomers"))
        for vertex, neighbors in (newcomers or {}).items()
    ]


def _list_numbers(values: Any, name: str, expected: str, dimensions: int = 1) -> list[Any]:
    """Convert numbers to a list for JSON. The service checks their range."""
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidValueError.of(name, expected, values) from error
    if numbers.ndim != dimensions or not np.isfinite(numbers).all():
        raise InvalidValueError.of(name, f"finite {expected}", values)
    return cast(list[Any], numbers.tolist())


def _list_vector(vector: Any) -> list[float]:
    """Convert a query vector to a list for JSON."""
    return _list_numbers(vector, "vertex", "numbers of a vector, or an id (for several of them: nearest_many)")


def whole_number(value: Any, name: str) -> int:
    """Convert a whole number, also one of NumPy, for JSON. The service checks its range."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidValueError.of(name, "a whole number", value)
    return int(value)


def _encode(body: Any) -> bytes:
    """Encode a request body as JSON."""
    try:
        return json.dumps(body, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise InvalidValueError.of("request", "values that JSON can represent", str(error)) from error


def add_edges(
    edges: EdgeListLike, key: str | None, attributes: AttributesLike | None = None, **columns: Any
) -> Call[Receipt]:
    """Return the request that applies a batch, given in any form that `Embedder.partial_fit` accepts."""
    batch, own_attributes = split_attributes(Batch.from_any(edges, **columns))
    body: dict[str, Any] = {"key": key or new_key(), "edges": _list_edges(batch)}
    rows = own_attributes if attributes is None else read_attributes(attributes)
    if rows is not None:
        body["attributes"] = attributes_to_json(rows)
    return Call("POST", "/v1/edges", body)


def _list_edges(batch: Batch) -> list[Any]:
    """Convert the rows of a batch for JSON: to lists, or to objects if they have operations."""
    columns: dict[str, list[Any]] = {"src": ids_to_list(batch.src), "dst": ids_to_list(batch.dst)}
    if batch.weight is not None or batch.time is not None:
        columns["weight"] = [1.0] * len(batch) if batch.weight is None else batch.weight.tolist()
    if batch.time is not None:
        columns["time"] = times_to_json(batch.time)
    if batch.op is None:
        return list(zip(*columns.values(), strict=True))
    columns["op"] = [Op(op).name.lower() for op in batch.op.tolist()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _list_pairs(batch: Batch) -> list[tuple[Id, Id]]:
    """Convert the rows of a batch to pairs of ids for JSON."""
    return list(zip(ids_to_list(batch.src), ids_to_list(batch.dst), strict=True))


def remove_edges(edges: EdgeListLike, key: str | None) -> Call[Receipt]:
    """Return the request that removes edges, given in any form that `Embedder.remove_edges` accepts."""
    batch = read_removals(edges)
    refuse_attributes(batch, "sent with removals")
    return Call("DELETE", "/v1/edges", {"key": key or new_key(), "edges": _list_pairs(batch)})


def remove_vertices(vertices: IdsLike, key: str | None) -> Call[Receipt]:
    """Return the request that removes vertices with all their edges."""
    return Call("DELETE", "/v1/vertices", {"key": key or new_key(), "ids": _list_ids(vertices)})


def vectors(ids: IdsLike) -> Call[Vector]:
    """Return the request for the vectors of vertices."""
    return Call("POST", "/v1/vectors", {"ids": _list_ids(ids)}, parse=parse_vectors)


def nearest(
    vertex: Id | Sequence[float] | Vector, k: int, among: IdsLike | None = None
) -> Call[list[tuple[Id, float]]]:
    """Return the request for the nearest vertices of a vertex or a vector."""
    if among is not None:
        queries = [vertex] if _is_id(vertex) else np.array([_list_vector(vertex)])
        call = nearest_many(cast(Any, queries), k, among)
        return Call(call.method, call.path, call.body, parse=lambda body: parse_nearest_lists(body)[0])
    if _is_id(vertex):
        query = {"k": whole_number(k, "k"), "kind": id_kind(vertex)}
        return Call("GET", f"{vertex_path(cast(Id, vertex))}/nearest", query=query, parse=parse_nearest)
    body = {"vector": _list_vector(vertex), "k": whole_number(k, "k")}
    return Call("POST", "/v1/nearest", body, parse=parse_nearest)


def nearest_many(
    vertices: IdsLike | Vector, k: int, among: IdsLike | None = None
) -> Call[list[list[tuple[Id, float]]]]:
    """Return the request for the nearest vertices of each of several vertices or vectors."""
    body: dict[str, Any] = {"k": whole_number(k, "k")}
    if isinstance(vertices, np.ndarray) and vertices.ndim == 2:
        body["vectors"] = _list_numbers(vertices, "vertices", "numbers, one vector per row", dimensions=2)
    else:
        body["vertices"] = _list_ids(vertices, "vertices")
    if among is not None:
        body["among"] = _list_ids(among, "among")
    return Call("POST", "/v1/nearest/many", body, parse=parse_nearest_lists)


def degree(ids: Id | IdsLike) -> Call[Any]:
    """Return the request for the number of edges of one vertex or several."""
    if _is_id(ids):
        return replace(degree([cast(Id, ids)]), parse=lambda body: int(body["degrees"][0]))
    body = {"ids": _list_ids(cast(IdsLike, ids), "ids")}
    return Call("POST", "/v1/degrees", body, parse=lambda body: np.array(body["degrees"], np.int64))


def age(ids: IdsLike) -> Call[NDArray[np.int64]]:
    """Return the request for the number of vertices that arrived after each of several vertices."""
    return Call("POST", "/v1/ages", {"ids": _list_ids(ids)}, parse=lambda body: np.array(body["ages"], np.int64))


def neighbors(vertex: Id, limit: int | None) -> Call[list[tuple[Id, float]]]:
    """Return the request for the neighbors of a vertex with the weights of the edges."""
    maximum = None if limit is None else whole_number(limit, "limit")
    body = {"vertex": normalize_id(vertex, "vertex"), "limit": maximum}
    return Call("POST", "/v1/neighbors", body, parse=parse_neighbors)


def vertex(vertex_id: Id) -> Call[dict[str, Any]]:
    """Return the request for a vertex: vector, degree, age and label."""
    return Call("GET", vertex_path(vertex_id), query={"kind": id_kind(vertex_id)})


def nearest_by_attributes(attributes: Any, k: int, among: IdsLike | None = None) -> Call[list[tuple[Id, float]]]:
    """Return the request for the vertices with the attributes that are nearest to given ones or those of a vertex."""
    body: dict[str, Any] = {"k": whole_number(k, "k")}
    if _is_id(attributes):
        body["vertex"] = normalize_id(attributes, "vertex")
    else:
        body["attributes"] = _one_to_json("query", attributes)
    if among is not None:
        body["among"] = _list_ids(among, "among")
    return Call("POST", "/v1/attributes/nearest", body, parse=parse_nearest)


def preview(neighbors: IdsLike, weights: Weights, attributes: Any = None) -> Call[Vector]:
    """Return the request for the vector that a new vertex with these neighbors and attributes would receive."""
    body: dict[str, Any] = {
        "neighbors": _list_ids(neighbors, "neighbors"),
        "weights": None if weights is None else _list_numbers(weights, "weights", "numbers, one per neighbor"),
    }
    if attributes is not None:
        body["attributes"] = _one_to_json("newcomer", attributes)
    return Call("POST", "/v1/preview", body, parse=parse_vector)


def score(pairs: EdgeListLike, newcomers: Newcomers | None) -> Call[Vector]:
    """Return the request for the scores of candidate edges."""
    body = {
        "pairs": _list_pairs(read_pairs(pairs)),
        "newcomers": _list_newcomers(newcomers),
    }
    return Call("POST", "/v1/score", body, parse=lambda answer: np.array(answer["scores"], np.float32))


def recommend(
    vertex: Id | Sequence[Id], k: int, among: IdsLike | None, exclude: str | None, newcomers: Newcomers | None
) -> Call[list[Any]]:
    """Return the request for the most expected new edges of a vertex, or of each of several vertices."""
    single = _is_id(vertex)
    body = {
        "vertices": _list_ids(cast(IdsLike, [vertex] if single else vertex), "vertices"),
        "k": whole_number(k, "k"),
        "among": None if among is None else _list_ids(among, "among"),
        "exclude": exclude,
        "newcomers": _list_newcomers(newcomers),
    }
    parse = (lambda answer: parse_recommended(answer)[0]) if single else parse_recommended
    return Call("POST", "/v1/recommend", body, parse=parse)


def put_labels(labels: Mapping[Id, str | None]) -> Call[int]:
    """Return the request that sets labels."""
    rows = [(normalize_id(vertex, "labels"), label) for vertex, label in labels.items()]
    return Call("PUT", "/v1/labels", {"labels": rows}, parse=lambda body: int(body["labels"]))


def stats(digest: bool, full: bool) -> Call[dict[str, Any]]:
    """Return the request for the statistics of the service."""
    return Call("GET", "/v1/stats", query={"digest": digest, "full": full})


def vertex_path(vertex: Id) -> str:
    """Return the URL path of a vertex."""
    segment = quote(str(normalize_id(vertex, "vertex")), safe="")
    if segment in (".", ".."):  # a URL parser would resolve them as relative paths
        segment = segment.replace(".", "%2E")
    return f"/v1/vertices/{segment}"


def id_kind(vertex: Any) -> str:
    """Return the kind of an id in a URL path; a UUID becomes text."""
    return "text" if isinstance(vertex, str | uuid.UUID) else "integer"


def new_key() -> str:
    """Return a new unique idempotency key."""
    return uuid.uuid4().hex


def parse_response(response: httpx.Response, parse: Callable[[Any], T]) -> T:
    """Return what `parse` makes of the JSON body of a successful response; raise the matching error otherwise."""
    if not response.is_success:
        raise error_of(response)
    try:
        return parse(response.json())
    except RipplevecError:
        raise
    except _PARSE_ERRORS as error:
        got = f"{shorten(response.text)} of type {response.headers.get('content-type', '')!r}"
        raise UnexpectedResponseError.of(response.url, got) from error


def error_of(response: httpx.Response) -> ServiceError:
    """Return the exception for an error response."""
    try:
        body = response.json()
        reason, missing = str(body["error"]), body.get("missing")
    except (ValueError, KeyError, TypeError, AttributeError):
        reason, missing = response.reason_phrase, None
    if response.status_code == 404 and missing:
        kind = NotFoundEdgeError if isinstance(missing[0], list) else NotFoundVertexError
        return kind(response.status_code, reason, missing)
    error_class = {404: NotFoundError, 410: TooOldError, 422: RefusedValueError}.get(response.status_code, ServiceError)
    retry_after = response.headers.get("retry-after", "")
    return error_class(response.status_code, reason, float(retry_after) if retry_after.isdigit() else 0.0)


def parse_vectors(body: Mapping[str, Any]) -> Vector:
    """Return the vectors in a response body; raise `UnknownVertexError` if some vertices are unknown."""
    if body["missing"]:
        raise UnknownVertexError(body["missing"])
    return np.array(body["vectors"], np.float32)


def parse_nearest(body: Mapping[str, Any]) -> list[tuple[Id, float]]:
    """Return the vertices in a response body with their cosines."""
    return [(name, cosine) for name, cosine in body["nearest"]]


def parse_neighbors(body: Mapping[str, Any]) -> list[tuple[Id, float]]:
    """Return the neighbors in a response body with the weights of the edges."""
    return [(name, weight) for name, weight in body["neighbors"]]


def parse_nearest_lists(body: Mapping[str, Any]) -> list[list[tuple[Id, float]]]:
    """Return, for each query of the request, the nearest vertices with their cosines."""
    return [parse_nearest({"nearest": found}) for found in body["nearest"]]


def parse_recommended(body: Mapping[str, Any]) -> list[list[tuple[Id, float]]]:
    """Return, for each vertex of the request, the recommended vertices with their scores."""
    return [[(name, score) for name, score in pairs] for pairs in body["recommended"]]


def parse_vector(body: Mapping[str, Any]) -> Vector:
    """Return the single vector in a response body."""
    return np.array(body["vector"], np.float32)


def parse_event(event: ServerSentEvent, url: httpx.URL) -> BatchChanges | None:
    """Parse one server-sent event; None for a heartbeat. Raise `TooOldError` if the reader fell too far behind."""
    if event.event == "gone":
        raise TooOldError(410, "the requested changes are no longer kept; read the vectors again")
    if event.event != "changes":
        return None
    try:
        message = event.json()
        rows = message["changes"]
        return BatchChanges(
            message["sequence"],
            [row["id"] for row in rows],
            np.array([row["vector"] for row in rows], np.float32),
            [row["arrived"] for row in rows],
            message["removed"],
            message["anchored"],
            message.get("part", 0) + 1 == message.get("parts", 1),
        )
    except _PARSE_ERRORS as error:
        raise UnexpectedResponseError.of(url, f"the event {shorten(event.data)}") from error


def retry_policy(retries: int) -> RetryPolicy:
    """Return the policy for requests: repeat after a lost connection or a temporary refusal of the service."""
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise InvalidValueError.of("retries", "a whole number ≥ 0", retries)
    return RetryPolicy(
        is_temporary=_is_temporary,
        initial_delay=_INITIAL_DELAY,
        max_delay=_MAX_DELAY,
        jitter=0.5,
        retries=retries,
        requested_delay=lambda error: getattr(error, "retry_after", 0.0),
    )


def _is_temporary(error: BaseException) -> bool:
    if isinstance(error, ServiceError):
        return error.status in _RETRYABLE_STATUSES
    return isinstance(error, httpx.TransportError) and not isinstance(error, SSEError)


def client_options(url: str, token: str | None, timeout: float) -> dict[str, Any]:
    """Return the keyword arguments for `httpx.Client` and `httpx.AsyncClient`."""
    if token and not (isinstance(token, str) and token.isascii() and token.isprintable() and " " not in token):
        raise InvalidValueError("token: expected ASCII text without spaces and line ends, got other characters")
    if not (isinstance(timeout, int | float) and 0 < timeout <= _MAX_TIMEOUT):
        raise InvalidValueError.of("timeout", f"a number of seconds > 0 and ≤ {_MAX_TIMEOUT:,}", timeout)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return {"base_url": _read_address(url), "headers": headers, "timeout": timeout}


def _read_address(url: Any) -> httpx.URL:
    """Return the address of a service."""
    try:
        address = httpx.URL(url)
        if address.scheme in ("http", "https") and address.host and (address.port or 1) < 1 << 16:
            return address
    except (httpx.InvalidURL, TypeError):
        pass
    raise InvalidValueError.of("url", "an address such as http://127.0.0.1:8080", url)
