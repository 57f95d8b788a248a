"""What is asked of the service and how its answers are read, whoever does the asking."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import quote

import httpx
import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch, Id, as_list, id_column, known_times, time_column
from ripplevec.errors import InvalidValueError, RipplevecError, UnknownVertexError

Vector: TypeAlias = NDArray[np.float32]
Weights: TypeAlias = Sequence[float] | None

EVENTS = "text/event-stream"
PATIENCE = 90.0
"""Seconds of silence after which a stream of changes is taken for dead; the service says something every 15."""

_LONGEST_PAUSE = 30.0
_AGAIN = frozenset({429, 502, 503, 504})


class ServiceError(RipplevecError):
    """The service refused a request; its status, and the reason it gave."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status, reason)
        self.status, self.reason = status, reason

    def __str__(self) -> str:
        return f"the service answered {self.status}: {self.reason}"


class NotThereError(ServiceError, KeyError):
    """A vertex or an edge was named that the service does not hold."""


class TooOldError(ServiceError):
    """The changes asked for are no longer kept: read the vectors anew, and follow from there."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request; one that is sent again is applied once, by its key."""

    method: str
    path: str
    body: Any = None
    query: Mapping[str, Any] = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        """What httpx is given."""
        sent: dict[str, Any] = {"method": self.method, "url": self.path, "params": dict(self.query)}
        if self.body is not None:
            sent["content"] = json.dumps(self.body, separators=(",", ":")).encode()
            sent["headers"] = {"Content-Type": "application/json"}
        return sent


@dataclass(frozen=True, slots=True)
class BatchChanges:
    """What one batch changed, or a part of it where it changed much; the last part has `last`."""

    sequence: int
    ids: list[Id]
    vectors: Vector
    arrived: list[bool]
    removed: list[Id]
    anchored: bool
    last: bool = True


def add_vertex(
    vertex: Id, neighbors: Sequence[Id], weights: Weights, key: str | None, time: float | None = None
) -> Call:
    """A vertex arrives."""
    arrival: dict[str, Any] = {"id": vertex, "neighbors": _ids(neighbors, "neighbors")}
    if weights is not None:
        arrival["weights"] = list(weights)
    if time is not None:
        (arrival["time"],) = known_times(time_column([time], 1))
    return Call("POST", "/v1/arrivals", {"key": key or new_key(), "arrivals": [arrival]})


def _ids(values: Iterable[Id], name: str = "ids") -> list[Id]:
    """Ids as JSON has them; a text is no list of its letters."""
    return as_list(id_column(values, name))


def add_edges(edges: Any, key: str | None) -> Call:
    """Edges come, in any form that `Embedder.fit` takes."""
    batch = Batch.from_any(edges)
    if batch.op is not None:
        raise InvalidValueError.of("edges", "edges to add; removals have methods of their own", "a batch of operations")
    columns: list[list[Any]] = [as_list(batch.src), as_list(batch.dst)]
    if batch.weight is not None or batch.time is not None:
        columns.append([1.0] * len(batch) if batch.weight is None else batch.weight.tolist())
    if batch.time is not None:
        columns.append(known_times(batch.time))
    return Call("POST", "/v1/edges", {"key": key or new_key(), "edges": list(zip(*columns, strict=True))})


def remove_edges(edges: Iterable[Sequence[Id]], key: str | None) -> Call:
    """Edges go."""
    return Call("DELETE", "/v1/edges", {"key": key or new_key(), "edges": [list(edge)[:2] for edge in edges]})


def remove_vertices(vertices: Iterable[Id], key: str | None) -> Call:
    """Vertices go."""
    return Call("DELETE", "/v1/vertices", {"key": key or new_key(), "ids": _ids(vertices)})


def vectors(ids: Iterable[Id]) -> Call:
    """The vectors of vertices are asked for."""
    return Call("POST", "/v1/vectors", {"ids": _ids(ids)})


def nearest(vertex: Id | Sequence[float] | Vector, k: int) -> Call:
    """Who is near a vertex or a vector is asked for."""
    if isinstance(vertex, int | str):
        kind = "text" if isinstance(vertex, str) else "integer"
        return Call("GET", f"{address(vertex)}/nearest", query={"k": k, "kind": kind})
    return Call("POST", "/v1/nearest", {"vector": np.asarray(vertex, np.float64).tolist(), "k": k})


def vertex(name: Id) -> Call:
    """All about a vertex is asked for."""
    return Call("GET", address(name), query={"kind": "text" if isinstance(name, str) else "integer"})


def preview(neighbors: Sequence[Id], weights: Weights) -> Call:
    """What a newcomer would get is asked for."""
    near = {"neighbors": _ids(neighbors, "neighbors"), "weights": None if weights is None else [*weights]}
    return Call("POST", "/v1/preview", near)


def put_labels(labels: Mapping[Id, str | None]) -> Call:
    """Labels are set."""
    return Call("PUT", "/v1/labels", {"labels": list(labels.items())})


def stats(digest: bool, full: bool) -> Call:
    """How the service stands is asked for."""
    return Call("GET", "/v1/stats", query={"digest": digest, "full": full})


def address(vertex: Id) -> str:
    """Where a vertex is."""
    part = quote(str(vertex), safe="")
    if part in (".", ".."):  # which would be taken for a way through the address
        part = part.replace(".", "%2E")
    return f"/v1/vertices/{part}"


def new_key() -> str:
    """A key that no other batch has."""
    return uuid.uuid4().hex


# answers


def checked(response: httpx.Response) -> Any:
    """What an answer holds, or the error that it is."""
    if response.is_success:
        return response.json()
    raise refusal(response)


def refusal(response: httpx.Response) -> ServiceError:
    """The error that an answer is."""
    try:
        reason = str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        reason = response.reason_phrase
    kind = {404: NotThereError, 410: TooOldError}.get(response.status_code, ServiceError)
    return kind(response.status_code, reason)


def vectors_of(answer: Mapping[str, Any]) -> Vector:
    """The vectors in an answer; the error that names those not known, if there are any."""
    if answer["missing"]:
        raise UnknownVertexError(answer["missing"])
    return np.array(answer["vectors"], np.float32)


def nearest_of(answer: Mapping[str, Any]) -> list[tuple[Id, float]]:
    """The vertices in an answer with their cosines."""
    return [(name, cosine) for name, cosine in answer["nearest"]]


def vector_of(answer: Mapping[str, Any]) -> Vector:
    """The one vector in an answer."""
    return np.array(answer["vector"], np.float32)


def stream_refusal(response: httpx.Response) -> Exception:
    """Why there is no stream: an error that is final, or, where it may pass, one like a lost connection."""
    if response.status_code in _AGAIN:
        return httpx.TransportError(str(refusal(response)), request=response.request)
    return refusal(response)


def changes_of_event(event: str, data: str) -> BatchChanges:
    """What an event of the stream says; `TooOldError` where it says that this reader was overtaken."""
    if event == "gone":
        raise TooOldError(410, "the stream has gone on beyond what is kept; read the vectors anew")
    message = json.loads(data)
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


class EventLines:
    """Server-sent events out of their lines."""

    def __init__(self) -> None:
        self._event, self._data = "", ""

    def take(self, line: str) -> Iterator[tuple[str, str]]:
        """An event and its data, where this line ends one."""
        if line.startswith("event: "):
            self._event = line[7:]
        elif line.startswith("data: "):
            self._data += line[6:]
        elif not line:
            if self._event:
                yield self._event, self._data
            self._event, self._data = "", ""


@dataclass(slots=True)
class Patience:
    """How often to try again, and how long to wait before it."""

    retries: int
    tried: int = 0

    def pause(self, response: httpx.Response | None = None) -> float | None:
        """Seconds until the next try; None where there is none: the answer is final, or it was the last one."""
        if self.tried >= self.retries or (response is not None and response.status_code not in _AGAIN):
            return None
        self.tried += 1
        pause = random.uniform(0.5, 1.0) * min(0.1 * 2**self.tried, _LONGEST_PAUSE)  # apart from other clients
        asked = "" if response is None else response.headers.get("retry-after", "")
        return max(pause, min(float(asked), _LONGEST_PAUSE)) if asked.isdigit() else pause


def settings(url: str, token: str | None, timeout: float) -> dict[str, Any]:
    """What a client of httpx is made with."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return {"base_url": url, "headers": headers, "timeout": timeout}
