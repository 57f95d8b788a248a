"""Endpoints for writes (arrivals, edges, attributes, removals), answered once the batch is on disk and applied."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter, Request, Response

from ripplevec.batch import Batch, Op
from ripplevec.io.message_schema import MessageError
from ripplevec.io.messages import Message, check_message_key
from ripplevec.service import model_reads, schemas
from ripplevec.service.batch_writer import WriteResult
from ripplevec.service.lifecycle import Runtime
from ripplevec.service.path_ids import IdKind, decode_id
from ripplevec.service.request_body import EVENT_TYPES, JSON, KEY_HEADER, decode_events, decode_removals
from ripplevec.service.responses import json_response

INLINE_BYTES = 1 << 16
"""Size up to which a body is decoded on the event loop; a larger one would delay other requests and uses a thread."""

router = APIRouter(prefix="/v1", tags=["writes"])
_ERRORS = schemas.describe_errors(404, 408, 409, 413, 415, 422, 429)


def _describe_write(body: dict[str, object]) -> dict[str, Any]:
    """Describe a write for OpenAPI: its body, the header for its idempotency key, and its responses."""
    header = {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "minLength": 1, "maxLength": 256}}
    extra = {**body, "parameters": [header]}
    return {"response_model": schemas.Receipt, "responses": _ERRORS, "openapi_extra": extra}


@router.post("/arrivals", **_describe_write(schemas.describe_events_body("arrivals")))
async def add_arrivals(request: Request) -> Response:
    """Add vertices with their edges: `{"key": "optional", "arrivals": [{"id": "v", "neighbors": ["a"]}]}`.

    If the model has dimensions for attributes, an arrival may have `"attributes": {"jazz": 2.0}` or a list of numbers.
    """
    return await _write_events(request)


@router.post("/edges", **_describe_write(schemas.describe_events_body("edges")))
async def add_edges(request: Request) -> Response:
    """Add edges: `{"key": "optional", "edges": [["a", "b"], ["a", "c", 2.0]]}`."""
    return await _write_events(request)


@router.put("/attributes", **_describe_write(schemas.describe_attributes_body()))
async def set_attributes(request: Request) -> Response:
    """Set the attributes of vertices, and replace earlier ones: of all of them, or of none if one does not exist."""
    return await _write(request, decode_events, (JSON,), _check_attributes_only)


@router.delete("/edges", **_describe_write(schemas.describe_json_body(schemas.RemoveEdges)))
async def remove_edges(request: Request) -> Response:
    """Remove edges: all of them, or none if one does not exist."""
    return await _write_removals(request, schemas.RemoveEdges)


@router.delete("/vertices", **_describe_write(schemas.describe_json_body(schemas.RemoveVertices)))
async def remove_vertices(request: Request) -> Response:
    """Remove vertices with all their edges: all of them, or none if one does not exist."""
    return await _write_removals(request, schemas.RemoveVertices)


@router.delete("/vertices/{id:vertex}", **_describe_write({}))
async def remove_vertex(request: Request, id: str, kind: IdKind = "auto") -> Response:
    """Remove one vertex with all its edges."""
    runtime: Runtime = request.app.state.runtime
    text, key = decode_id(id), check_message_key(request.headers.get(KEY_HEADER))
    if key is not None and (sequence := await runtime.run_write_task(runtime.session.find_key, key)) is not None:
        return _receipt(WriteResult(runtime.model.empty_changes(sequence), True), 1)
    vertex = await runtime.run_write_task(model_reads.resolve_id, runtime.model, text, kind)
    batch = Batch.vertices([vertex], Op.REMOVE_VERTEX)
    return _receipt(await runtime.writer.write(batch, key), len(batch))


async def _write_events(request: Request) -> Response:
    return await _write(request, decode_events, EVENT_TYPES)


async def _write_removals(request: Request, model: type[schemas.RemoveEdges | schemas.RemoveVertices]) -> Response:
    return await _write(request, lambda _, *arguments: decode_removals(model, *arguments), (JSON,))


async def _check_attributes_only(runtime: Runtime, message: Message) -> None:
    """Reject a message that does not only set attributes of existing vertices; one that was applied before passes."""
    attributes = message.batch.attributes
    if attributes is None or len(message.batch) != len(attributes.ids):
        raise MessageError("expected attributes only, got other events. Send these to /v1/edges or /v1/arrivals")
    find_key, key = runtime.session.find_key, message.key
    if key is None or await runtime.run_write_task(find_key, key) is None:
        await runtime.run_write_task(runtime.model.degree, attributes.ids)  # raises `UnknownVertexError`


async def _write(
    request: Request,
    decode: Callable[..., Message],
    content_types: tuple[str, ...],
    check: Callable[[Runtime, Message], Awaitable[None]] | None = None,
) -> Response:
    """Read a body, decode its batch, and answer once the batch is applied."""
    runtime: Runtime = request.app.state.runtime
    runtime.writer.check_capacity()  # before any work is done for the request
    async with runtime.write_bodies.read(request, content_types) as (content_type, data):
        arguments = content_type, data, request.headers.get(KEY_HEADER), runtime.settings.limits
        inline = len(data) <= INLINE_BYTES
        message = decode(*arguments) if inline else await runtime.run_write_task(decode, *arguments)
        if check is not None:
            await check(runtime, message)
        return _receipt(await runtime.writer.write(message.batch, message.key), len(message.batch))


def _receipt(result: WriteResult, events: int) -> Response:
    changes = result.changes
    return json_response(
        {
            "sequence": int(changes.sequence),
            "repeated": result.repeated,
            "events": events,
            "arrived": int(changes.arrived.sum()),
            "changed": len(changes),
            "removed": len(changes.removed),
            "anchored": bool(changes.anchored),
        }
    )
