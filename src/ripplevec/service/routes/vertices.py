"""Endpoints for reads (vertices, vectors, nearest vertices, previews, candidate edges)."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from fastapi import APIRouter, Query, Request, Response
from numpy.typing import NDArray

from ripplevec.batch import Id
from ripplevec.io.arrow_ipc import encode_arrow_stream
from ripplevec.search.searcher import MAX_EXACT_VERTICES
from ripplevec.service import model_reads, schemas
from ripplevec.service.fast_read import read_labeled_vertex
from ripplevec.service.lifecycle import Runtime
from ripplevec.service.path_ids import IdKind, decode_id, parse_id_kind
from ripplevec.service.request_body import ARROW, parse_body
from ripplevec.service.responses import NotFiniteError, RejectedRequest, json_response

router = APIRouter(prefix="/v1", tags=["reads"])
_ERRORS = schemas.describe_errors(404, 408, 413, 415, 422, 429)


@router.get("/vertices/{id:path}/nearest", response_model=schemas.Neighbors, responses=_ERRORS)
async def nearest(
    request: Request,
    id: str,
    k: Annotated[int, Query(ge=1, json_schema_extra=schemas.K_RANGE)] = 10,
    kind: IdKind = "auto",
    by: Literal["vector", "attributes"] = "vector",
) -> Response:
    """Return the vertices with the highest cosine to a vertex, highest first, without the vertex itself.

    The cosines are those of whole vectors, or of their attribute parts with `by=attributes`.
    """
    runtime: Runtime = request.app.state.runtime
    _check_k(runtime, k)
    text = decode_id(id)

    def search() -> tuple[int, list[tuple[Id, float]]]:
        model = runtime.model
        find = model.nearest_with_sequence if by == "vector" else model.nearest_by_attributes_with_sequence
        return find(model_reads.resolve_id(model, text, kind), k)

    sequence, neighbors = await runtime.run_search(search, receive=request.receive)
    return json_response({"sequence": sequence, "nearest": neighbors})


_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
_KIND = {"name": "kind", "in": "query", "schema": {"type": "string", "enum": ["auto", "text", "integer"]}}


@router.get(
    "/vertices/{id:vertex}",
    response_model=schemas.Vertex,
    responses=_ERRORS,
    openapi_extra={"parameters": [_ID, _KIND]},
)
async def vertex(request: Request) -> Response:
    """Return the vector of a vertex, its degree, and its age: the number of vertices that arrived after it.

    An id in a path means the text id if such a vertex exists, otherwise the integer id; `kind` selects one of them.
    """
    runtime: Runtime = request.app.state.runtime
    kind = parse_id_kind(request.query_params.get("kind", "auto"))
    return json_response(await read_labeled_vertex(runtime, request.path_params["id"], kind, request.receive))


VERTEX_ROUTE = router.routes[-1]
"""The route of `vertex`, under which requests on the fast path are counted."""


@router.post(
    "/vectors",
    response_model=schemas.Vectors,
    responses=_ERRORS,
    openapi_extra=schemas.describe_json_body(schemas.VectorsRequest),
)
async def vectors(request: Request) -> Response:
    """Return the vectors of many vertices as JSON, or as an Arrow stream if the Accept header requests one."""
    runtime: Runtime = request.app.state.runtime
    runtime.response_budget.check_capacity()
    async with runtime.read_bodies.read(request) as (_, data):
        ids = parse_body(schemas.VectorsRequest, data).ids
        _check_length(runtime, "ids", len(ids))
        encode = _encode_arrow if request.headers.get("accept") == ARROW else _encode_json
        response = await runtime.run_read(
            lambda: encode(ids, *model_reads.read_vectors(runtime.model, ids)), receive=request.receive
        )
    return runtime.response_budget.track(response)


def _encode_json(ids: list[Id], sequence: int, exists: NDArray[np.bool_], vectors: NDArray[np.float32]) -> Response:
    existing = [vertex for vertex, is_known in zip(ids, exists, strict=True) if is_known]
    missing = [vertex for vertex, is_known in zip(ids, exists, strict=True) if not is_known]
    return json_response({"sequence": sequence, "ids": existing, "vectors": vectors.tolist(), "missing": missing})


def _encode_arrow(ids: list[Id], sequence: int, exists: NDArray[np.bool_], vectors: NDArray[np.float32]) -> Response:
    """Encode vectors with the row numbers of the request, as text and integer ids do not fit in one column."""
    if not np.isfinite(vectors).all():
        raise NotFiniteError
    rows = pa.array(np.flatnonzero(exists))
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    table = pa.table({"row": rows, "vector": column}).replace_schema_metadata({"sequence": str(sequence)})
    return Response(encode_arrow_stream(table), media_type=ARROW)


@router.post(
    "/nearest",
    response_model=schemas.Neighbors,
    responses=_ERRORS,
    openapi_extra=schemas.describe_json_body(schemas.NearestRequest),
)
async def nearest_to_vector(request: Request) -> Response:
    """Return the vertices with the highest cosine to a vector, highest first."""
    runtime: Runtime = request.app.state.runtime
    async with runtime.read_bodies.read(request) as (_, data):
        query = parse_body(schemas.NearestRequest, data)
        _check_k(runtime, query.k)
        sequence, neighbors = await runtime.run_search(
            runtime.model.nearest_with_sequence, query.vector, query.k, receive=request.receive
        )
    return json_response({"sequence": sequence, "nearest": neighbors})


@router.post(
    "/nearest/many",
    response_model=schemas.NeighborLists,
    responses=_ERRORS,
    openapi_extra=schemas.describe_json_body(schemas.NearestManyRequest),
)
async def nearest_many(request: Request) -> Response:
    """Return the vertices with the highest cosine to each of several vertices or vectors, all of one state."""
    runtime: Runtime = request.app.state.runtime
    async with runtime.read_bodies.read(request) as (_, data):
        body = parse_body(schemas.NearestManyRequest, data)
        if (body.vertices is None) == (body.vectors is None):
            raise RejectedRequest(422, "expected either vertices or vectors, got both or neither of them")
        queries: list[Any] = (body.vertices if body.vectors is None else body.vectors) or []
        _check_k(runtime, body.k)
        _check_length(runtime, "queries times k", len(queries) * body.k)
        _check_length(runtime, "candidates", len(body.among or []))
        _check_comparisons(runtime, len(queries), body.among)
        read = partial(runtime.model.nearest_many_with_sequence, queries, body.k, among=body.among)
        sequence, neighbors = await runtime.run_search(read, receive=request.receive)
    return json_response({"sequence": sequence, "nearest": neighbors})


@router.post(
    "/degrees",
    response_model=schemas.Degrees,
    responses=_ERRORS,
    openapi_extra=schemas.describe_json_body(schemas.DegreesRequest),
)
async def degrees(request: Request) -> Response:
    """Return the numbers of edges of many vertices."""
    runtime: Runtime = request.app.state.runtime
    async with runtime.read_bodies.read(request) as (_, data):
        ids = parse_body(schemas.DegreesRequest, data).ids
        _check_length(runtime, "ids", len(ids))
        read = partial(model_reads.read_degrees, runtime.model, ids)
        sequence, numbers = await runtime.run_read(read, receive=request.receive)
    return json_response({"sequence": sequence, "degrees": numbers.tolist()})


@router.post(
    "/ages",
    response_model=schemas.Ages,
    responses=_ERRORS,
    openapi_extra=schemas.describe_json_body(schemas.AgesRequest),
)
async def ages(request: Request) -> Response:
    """Return, for each of many vertices, the number of vertices that arrived after it."""
    runtime: Runtime = request.app.state.runtime
    async with runtime.read_bodies.read(request) as (_, data):
        ids = parse_body(schemas.AgesRequest, data).ids
        _check_length(runtime, "ids", len(ids))
        sequence, numbers = await runtime.run_read(
            partial(model_reads.read_ages, runtime.model, ids), receive=request.receive
        )
    return json_response({"sequence": sequence, "ages": numbers.tolist()})


@router.post(
    "/neighbors",
    response_model=schemas.WeightedNeighbors,
    responses=_ERRORS,
    openapi_extra=schemas.describe_json_body(schemas.NeighborsRequest),
)
async def neighbors(request: Request) -> Response:
    """Return the neighbors of a vertex with the weights of the edges, latest edge first."""
    runtime: Runtime = request.app.state.runtime
    async with runtime.read_bodies.read(request) as (_, data):
        body, maximum = parse_body(schemas.NeighborsRequest, data), runtime.settings.limits.ids
        limit = maximum + 1 if body.limit is None else min(body.limit, maximum + 1)
        read = partial(model_reads.read_neighbors, runtime.model, body.vertex, limit)
        sequence, found = await runtime.run_read(read, receive=request.receive)
    if len(found) > maximum:
        advice = "Ask for the latest ones with `limit`"
        raise RejectedRequest(413, f"expected at most {maximum:,} neighbors in one response, got more. {advice}")
    return json_response({"sequence": sequence, "neighbors": found})


@router.post(
    "/attributes/nearest",
    response_model=schemas.Neighbors,
    responses=_ERRORS,
    openapi_extra=schemas.describe_json_body(schemas.NearestByAttributesRequest),
)
async def nearest_to_attributes(request: Request) -> Response:
    """Return the vertices with the most similar attributes, whatever their edges, most similar first."""
    runtime: Runtime = request.app.state.runtime
    async with runtime.read_bodies.read(request) as (_, data):
        body = parse_body(schemas.NearestByAttributesRequest, data)
        if (body.vertex is None) == (body.attributes is None):
            raise RejectedRequest(422, "expected either a vertex or attributes, got both or neither of them")
        _check_k(runtime, body.k)
        _check_length(runtime, "candidates", len(body.among or []))
        query = body.attributes if body.vertex is None else body.vertex
        find = partial(runtime.model.nearest_by_attributes_with_sequence, query, body.k, among=body.among)
        sequence, neighbors = await runtime.run_search(find, receive=request.receive)
    return json_response({"sequence": sequence, "nearest": neighbors})


@router.post(
    "/preview",
    response_model=schemas.Previewed,
    responses=_ERRORS,
    openapi_extra=schemas.describe_json_body(schemas.PreviewRequest),
)
async def preview(request: Request) -> Response:
    """Return the vector that a vertex with these neighbors and attributes would get; nothing is added."""
    runtime: Runtime = request.app.state.runtime
    async with runtime.read_bodies.read(request) as (_, data):
        body = parse_body(schemas.PreviewRequest, data)
        read = partial(model_reads.preview_vector, runtime.model, body.neighbors, body.weights, body.attributes)
        sequence, vector = await runtime.run_read(read, receive=request.receive)
    return json_response({"sequence": sequence, "vector": vector.tolist()})


@router.post(
    "/score",
    response_model=schemas.LinkScores,
    responses=_ERRORS,
    openapi_extra=schemas.describe_json_body(schemas.ScoreRequest),
)
async def score(request: Request) -> Response:
    """Return how expected each candidate edge is: the cosine of its two vectors."""
    runtime: Runtime = request.app.state.runtime
    async with runtime.read_bodies.read(request) as (_, data):
        body = parse_body(schemas.ScoreRequest, data)
        _check_length(runtime, "pairs", len(body.pairs))
        read = partial(model_reads.score_pairs, runtime.model, body.pairs, dict(body.newcomers))
        sequence, scores = await runtime.run_read(read, receive=request.receive)
    return json_response({"sequence": sequence, "scores": scores.tolist()})


@router.post(
    "/recommend",
    response_model=schemas.Recommendations,
    responses=_ERRORS,
    openapi_extra=schemas.describe_json_body(schemas.RecommendRequest),
)
async def recommend(request: Request) -> Response:
    """Return the most expected new edges of vertices, highest score first."""
    runtime: Runtime = request.app.state.runtime
    async with runtime.read_bodies.read(request) as (_, data):
        body = parse_body(schemas.RecommendRequest, data)
        _check_k(runtime, body.k)
        _check_length(runtime, "vertices times k", len(body.vertices) * body.k)
        _check_length(runtime, "candidates", len(body.among or []))
        _check_comparisons(runtime, len(body.vertices), body.among)
        read = partial(
            runtime.model.recommend_with_sequence,
            body.vertices,
            body.k,
            among=body.among,
            exclude=body.exclude,
            newcomers=dict(body.newcomers),
        )
        sequence, recommended = await runtime.run_search(read, receive=request.receive)
    return json_response({"sequence": sequence, "recommended": recommended})


def _check_k(runtime: Runtime, k: int) -> None:
    limit = runtime.settings.limits.neighbors
    if k > limit:
        raise RejectedRequest(422, f"k: expected at most {limit:,}, got {k:,}")


def _check_comparisons(runtime: Runtime, queries: int, among: list[Id] | None) -> None:
    """Reject a request of several queries that would be compared with too many vectors: writers wait for it."""
    limit = runtime.settings.limits.comparisons
    candidates = min(len(runtime.model), MAX_EXACT_VERTICES) if among is None else len(among)
    if queries > 1 and queries * candidates > limit:
        most = max(limit // candidates, 1)
        raise RejectedRequest(413, f"expected at most {most:,} queries of {candidates:,} vectors each, got {queries:,}")


def _check_length(runtime: Runtime, name: str, length: int) -> None:
    limit = runtime.settings.limits.ids
    if length > limit:
        raise RejectedRequest(413, f"expected at most {limit:,} {name} in one request, got {length:,}")
