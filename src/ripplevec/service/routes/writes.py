"""What changes the graph: arrivals, edges, removals. Answered once it is on disk."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from ripplevec.batch import Batch, Op
from ripplevec.io.messages import Message, check_message_key
from ripplevec.service import schemas
from ripplevec.service.batch_writer import WriteResult
from ripplevec.service.lifecycle import Runtime
from ripplevec.service.reads import vertex_lookup
from ripplevec.service.reads.path_ids import decode_id
from ripplevec.service.request_body import EVENTS, JSON, KEY_HEADER, decode_events, removal_message
from ripplevec.service.responses import json_response

INLINE = 1 << 16
"""Bytes of a body that are understood at once; a longer one is handed to a thread, so that others are answered."""

router = APIRouter(prefix="/v1", tags=["writes"])
_REFUSED = schemas.refusals(404, 408, 409, 413, 415, 422, 429)


def _described(body: dict[str, object]) -> dict[str, Any]:
    """How every write is described: its body, the header that may hold its key, and what it is answered with."""
    header = {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "minLength": 1, "maxLength": 256}}
    extra = {**body, "parameters": [header]}
    return {"response_model": schemas.Receipt, "responses": _REFUSED, "openapi_extra": extra}


@router.post("/arrivals", **_described(schemas.events_body("arrivals")))
async def add_arrivals(request: Request) -> Response:
    """Let vertices arrive with their edges: `{"key": "optional", "arrivals": [{"id": "v", "neighbors": ["a"]}]}`."""
    return await _write(request)


@router.post("/edges", **_described(schemas.events_body("edges")))
async def add_edges(request: Request) -> Response:
    """Add edges: `{"key": "optional", "edges": [["a", "b"], ["a", "c", 2.0]]}`."""
    return await _write(request)


@router.delete("/edges", **_described(schemas.json_body(schemas.RemoveEdges)))
async def remove_edges(request: Request) -> Response:
    """Remove edges, all of them or, where one is not there, none."""
    return await _remove(request, schemas.RemoveEdges, "remove_edges", "edges")


@router.delete("/vertices", **_described(schemas.json_body(schemas.RemoveVertices)))
async def remove_vertices(request: Request) -> Response:
    """Remove vertices with all their edges, all of them or, where one is not there, none."""
    return await _remove(request, schemas.RemoveVertices, "remove_vertices", "ids")


@router.delete("/vertices/{id:vertex}", **_described({}))
async def remove_vertex(request: Request, id: str, kind: vertex_lookup.IdKind = "auto") -> Response:
    """Remove one vertex with all its edges."""
    runtime: Runtime = request.app.state.runtime
    name, key = decode_id(id), check_message_key(request.headers.get(KEY_HEADER))
    if key is not None and (number := await runtime.prepare(runtime.session.find_key, key)) is not None:
        return _receipt(WriteResult(runtime.model.empty_changes(number), True), 1)
    vertex = await runtime.prepare(vertex_lookup.known, runtime.model, name, kind)
    batch = Batch.vertices([vertex], Op.REMOVE_VERTEX)
    return _receipt(await runtime.write(batch, key), len(batch))


async def _write(request: Request) -> Response:
    runtime: Runtime = request.app.state.runtime
    runtime.writer.check_room()  # before any work is done for it
    async with runtime.bodies.of(request, EVENTS) as (kind, data):
        return await _apply(request, runtime, kind, data)


async def _remove(
    request: Request, form: type[schemas.RemoveEdges | schemas.RemoveVertices], to: str, field: str
) -> Response:
    runtime: Runtime = request.app.state.runtime
    runtime.writer.check_room()
    async with runtime.bodies.of(request) as (_, data):
        return await _apply(request, runtime, JSON, await runtime.prepare(removal_message, form, data, to, field))


async def _apply(request: Request, runtime: Runtime, kind: str, data: bytes) -> Response:
    arguments = kind, data, request.headers.get(KEY_HEADER), runtime.settings.limits
    message: Message = (
        decode_events(*arguments) if len(data) <= INLINE else await runtime.prepare(decode_events, *arguments)
    )
    written = await runtime.write(message.batch, message.key)
    return _receipt(written, len(message.batch))


def _receipt(written: WriteResult, events: int) -> Response:
    changes = written.changes
    return json_response(
        {
            "sequence": int(changes.sequence),
            "repeated": written.repeated,
            "events": events,
            "arrived": int(changes.arrived.sum()),
            "changed": len(changes),
            "removed": len(changes.removed),
            "anchored": bool(changes.anchored),
        }
    )
