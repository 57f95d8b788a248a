"""What is read: vectors, neighbors, what a newcomer would get; and the labels of vertices."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from fastapi import APIRouter, Query, Request, Response

from ripplevec.batch import Id
from ripplevec.io.arrow_ipc import encode_arrow_stream
from ripplevec.service import schemas
from ripplevec.service.lifecycle import Runtime
from ripplevec.service.reads import fast_read, vertex_lookup
from ripplevec.service.reads.path_ids import decode_id
from ripplevec.service.request_body import ARROW, parse_body
from ripplevec.service.responses import NotFiniteError, RejectedRequest, json_response

router = APIRouter(prefix="/v1", tags=["reads"])
_REFUSED = schemas.refusals(404, 408, 413, 415, 422, 429)


@router.get("/vertices/{id:path}/nearest", response_model=schemas.Neighbors, responses=_REFUSED)
async def nearest(
    request: Request,
    id: str,
    k: Annotated[int, Query(ge=1, json_schema_extra=schemas.COUNT)] = 10,
    kind: vertex_lookup.IdKind = "auto",
) -> Response:
    """The vertices of highest cosine with a vertex, best first, itself left out."""
    runtime: Runtime = request.app.state.runtime
    _check_count(runtime, k)
    name = decode_id(id)

    def found() -> tuple[int, list[tuple[Id, float]]]:
        return runtime.model.nearest_with_sequence(vertex_lookup.known(runtime.model, name, kind), k)

    sequence, near = await runtime.search(found, receive=request.receive)
    return json_response({"sequence": sequence, "nearest": near})


_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
_KIND = {"name": "kind", "in": "query", "schema": {"type": "string", "enum": ["auto", "text", "integer"]}}


@router.get(
    "/vertices/{id:vertex}",
    response_model=schemas.Vertex,
    responses=_REFUSED,
    openapi_extra={"parameters": [_ID, _KIND]},
)
async def vertex(request: Request) -> Response:
    """The vector of a vertex, its degree, and its age: how many vertices arrived after it.

    An id in an address is text where there is such a vertex, else an integer where it is written so; `kind` decides.
    """
    runtime: Runtime = request.app.state.runtime
    kind = vertex_lookup.parse_id_kind(request.query_params.get("kind", "auto"))
    return json_response(await fast_read.vertex(runtime, request.path_params["id"], kind, request.receive))


VERTEX = router.routes[-1]
"""The route above, by which requests are counted that take the short way."""


@router.post(
    "/vectors", response_model=schemas.Vectors, responses=_REFUSED, openapi_extra=schemas.json_body(schemas.Ids)
)
async def vectors(request: Request) -> Response:
    """The vectors of many vertices, as JSON, or as an Arrow stream where `Accept` asks for one."""
    runtime: Runtime = request.app.state.runtime
    limit = runtime.settings.limits.ids
    runtime.response_budget.check_room()
    async with runtime.read_bodies.of(request) as (_, data):
        ids = parse_body(schemas.Ids, data).ids
        if len(ids) > limit:
            raise RejectedRequest(413, f"expected at most {limit:,} ids in one request, got {len(ids):,}")
        encode = _as_arrow if request.headers.get("accept") == ARROW else _as_json
        answer = await runtime.read(
            lambda: encode(ids, *vertex_lookup.vectors(runtime.model, ids)), receive=request.receive
        )
    return runtime.response_budget.track(answer)


def _as_json(ids: list[Id], sequence: int, there: Any, found: Any) -> Response:
    known = [name for name, present in zip(ids, there, strict=True) if present]
    missing = [name for name, present in zip(ids, there, strict=True) if not present]
    return json_response({"sequence": sequence, "ids": known, "vectors": found.tolist(), "missing": missing})


def _as_arrow(ids: list[Id], sequence: int, there: Any, found: Any) -> Response:
    """The rows of the request that are known, by number, with their vectors: ids of both kinds fit no one column."""
    if not np.isfinite(found).all():
        raise NotFiniteError
    rows = pa.array(np.flatnonzero(there))
    flat = pa.FixedSizeListArray.from_arrays(pa.array(found.ravel()), found.shape[1])
    table = pa.table({"row": rows, "vector": flat}).replace_schema_metadata({"sequence": str(sequence)})
    return Response(encode_arrow_stream(table), media_type=ARROW)


@router.post(
    "/nearest", response_model=schemas.Neighbors, responses=_REFUSED, openapi_extra=schemas.json_body(schemas.Near)
)
async def nearest_to_vector(request: Request) -> Response:
    """The vertices of highest cosine with a vector, best first."""
    runtime: Runtime = request.app.state.runtime
    async with runtime.read_bodies.of(request) as (_, data):
        asked = parse_body(schemas.Near, data)
        _check_count(runtime, asked.k)
        asking = runtime.search(runtime.model.nearest_with_sequence, asked.vector, asked.k, receive=request.receive)
        sequence, found = await asking
    return json_response({"sequence": sequence, "nearest": found})


@router.post(
    "/preview", response_model=schemas.Previewed, responses=_REFUSED, openapi_extra=schemas.json_body(schemas.Preview)
)
async def preview(request: Request) -> Response:
    """The vector a vertex with these neighbors would get; nothing is added."""
    runtime: Runtime = request.app.state.runtime
    async with runtime.read_bodies.of(request) as (_, data):
        asked = parse_body(schemas.Preview, data)
        work = partial(vertex_lookup.preview, runtime.model, asked.neighbors, asked.weights)
        sequence, vector = await runtime.read(work, receive=request.receive)
    return json_response({"sequence": sequence, "vector": vector.tolist()})


@router.put(
    "/labels", responses=_REFUSED, openapi_extra=schemas.json_body(schemas.LabelPairs), response_model=dict[str, int]
)
async def put_labels(request: Request) -> Response:
    """Labels for the page, `{"labels": [["a", "red"], ["b", null]]}`; null takes one away. How many there are then."""
    runtime: Runtime = request.app.state.runtime
    async with runtime.bodies.of(request) as (_, data):
        pairs = parse_body(schemas.LabelPairs, data).labels
        return json_response({"labels": await runtime.prepare(runtime.labels.put, pairs)})


def _check_count(runtime: Runtime, k: int) -> None:
    limit = runtime.settings.limits.neighbors
    if k > limit:
        raise RejectedRequest(422, f"k: expected at most {limit:,}, got {k:,}")
