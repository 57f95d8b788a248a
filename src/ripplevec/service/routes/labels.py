"""Endpoint that sets labels of vertices."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from ripplevec.service import schemas
from ripplevec.service.lifecycle import Runtime
from ripplevec.service.request_body import parse_body
from ripplevec.service.responses import json_response

router = APIRouter(prefix="/v1", tags=["labels"])


@router.put(
    "/labels",
    responses=schemas.describe_errors(408, 413, 415, 422, 429),
    openapi_extra=schemas.describe_json_body(schemas.LabelsRequest),
    response_model=dict[str, int],
)
async def put_labels(request: Request) -> Response:
    """Set labels for the live page. Example: `{"labels": [["a", "red"], ["b", null]]}`; null removes a label.

    Returns the total number of labels.
    """
    runtime: Runtime = request.app.state.runtime
    async with runtime.write_bodies.read(request) as (_, data):
        pairs = parse_body(schemas.LabelsRequest, data).labels
        return json_response({"labels": await runtime.run_write_task(runtime.labels.put, pairs)})
