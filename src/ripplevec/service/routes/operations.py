"""Endpoints for operation: statistics, metrics, health and readiness."""

from __future__ import annotations

import math
from typing import Any

from fastapi import APIRouter, Request, Response

from ripplevec._version import __version__
from ripplevec.service import model_reads, schemas
from ripplevec.service.lifecycle import Runtime
from ripplevec.service.metrics import CONTENT_TYPE, resident_bytes
from ripplevec.service.responses import json_response

router = APIRouter(tags=["operations"])

_PUBLIC_ERRORS = {status: error for status, error in schemas.describe_errors().items() if status not in (401, 503)}
_FULL_READ_SECONDS = 60.0  # timeout of reads of the whole state


@router.get("/v1/stats", responses=schemas.describe_errors(422), response_model=dict[str, Any])
async def stats(request: Request, digest: bool = False, full: bool = False) -> Response:
    """Return sizes, growth since the last anchor, queue, memory, errors, snapshots and rates of the last minute.

    `digest` adds the digest of the state, `full` its diagnostics; both read the whole state while writers wait.
    """
    runtime: Runtime = request.app.state.runtime
    model, feed, writer = runtime.model, runtime.feed, runtime.writer
    snapshot, age = runtime.snapshot_state()
    report: dict[str, Any] = {
        **await runtime.read_inline(lambda: model_reads.read_model_stats(model)),
        "version": __version__,
        "status": runtime.status,
        "queue": {
            "requests": writer.queued_requests,
            "events": writer.queued_events,
            "max_requests": runtime.settings.limits.queue_requests,
        },
        "memory_bytes": resident_bytes(),
        "errors": runtime.metrics.count_errors(),
        "feed": {"oldest": feed.oldest, "newest": feed.newest, "followers": feed.followers},
        "snapshot": {
            "sequence": snapshot,
            "age_seconds": None if math.isnan(age) else age,
            "failed": runtime.snapshot_failed,
        },
        "recent": runtime.metrics.summarize_last_minute(),
        "labels": len(runtime.labels),
    }
    if full:
        report["diagnostics"] = await runtime.run_search(
            model.diagnostics, receive=request.receive, timeout=_FULL_READ_SECONDS
        )
    if digest:
        report["sequence"], report["digest"] = await runtime.run_search(
            model_reads.read_digest, model, receive=request.receive, timeout=_FULL_READ_SECONDS
        )
    return json_response(report, finite=False)


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **schemas.describe_errors()},
)
async def metrics(request: Request) -> Response:
    """Return all metrics in the Prometheus text format."""
    runtime: Runtime = request.app.state.runtime
    return Response(await runtime.run_metrics_read(runtime.metrics.render), media_type=CONTENT_TYPE)


@router.get("/healthz", response_model=dict[str, str], responses=_PUBLIC_ERRORS)
async def healthz(request: Request) -> Response:
    """Return whether the process is alive; also during recovery."""
    return json_response({"status": request.app.state.runtime.status})


@router.get(
    "/readyz",
    response_model=dict[str, str],
    responses={**_PUBLIC_ERRORS, 503: {"model": dict[str, str], "description": schemas.STATUS_MEANINGS[503]}},
)
async def readyz(request: Request) -> Response:
    """Return whether requests are accepted: not during recovery, nor while the service is closing.

    A `warning` reports that the last anchor was refused: requests are accepted, but vectors become less accurate with
    every batch.
    """
    runtime: Runtime = request.app.state.runtime
    if runtime.status != "ready":
        return json_response({"status": runtime.status}, 503)
    refused = runtime.model.engine.anchors_refused
    warning = {"warning": f"anchors refused in a row: {refused}; vectors are not corrected. See the log"}
    return json_response({"status": runtime.status} | (warning if refused else {}))
