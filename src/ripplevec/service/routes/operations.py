"""How the service is: statistics, metrics, whether it lives and is ready."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from ripplevec._version import __version__
from ripplevec.service import schemas
from ripplevec.service.lifecycle import Runtime
from ripplevec.service.metrics import CONTENT_TYPE
from ripplevec.service.reads import vertex_lookup
from ripplevec.service.responses import json_response

router = APIRouter(tags=["operations"])

_OPEN = {status: answer for status, answer in schemas.refusals().items() if status not in (401, 503)}  # to everybody
_LONG = 60.0  # seconds for what reads everything there is


@router.get("/v1/stats", responses=schemas.refusals(422), response_model=dict[str, Any])
async def stats(request: Request, digest: bool = False, full: bool = False) -> Response:
    """Sizes, sequence number, growth since the last anchor, queue, snapshots, and rates of the last minute.

    `digest` adds the digest of the state, `full` its diagnostics; both read everything there is, and writers wait.
    """
    runtime: Runtime = request.app.state.runtime
    model, feed, writer = runtime.model, runtime.feed, runtime.writer
    snapshot, age = runtime.snapshot_state()
    report: dict[str, Any] = {
        **await runtime.read_shortly(lambda: vertex_lookup.model_stats(model)),
        "version": __version__,
        "status": runtime.status,
        "queue": {"requests": writer.requests, "events": writer.events},
        "feed": {"oldest": feed.oldest, "newest": feed.newest, "followers": feed.followers},
        "snapshot": {
            "sequence": snapshot,
            "age_seconds": None if age != age else age,
            "failed": runtime.snapshot_failed,
        },
        "recent": runtime.metrics.recent(),
        "labels": len(runtime.labels),
    }
    if full:
        report["diagnostics"] = await runtime.search(model.diagnostics, receive=request.receive, seconds=_LONG)
    if digest:
        found = await runtime.search(vertex_lookup.digest, model, receive=request.receive, seconds=_LONG)
        report["sequence"], report["digest"] = found
    return json_response(report, finite=False)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}, **schemas.refusals()})
async def metrics(request: Request) -> Response:
    """Everything that is counted, as Prometheus reads it."""
    runtime: Runtime = request.app.state.runtime
    return Response(await runtime.operate(runtime.metrics.text), media_type=CONTENT_TYPE)


@router.get("/healthz", response_model=dict[str, str], responses=_OPEN)
async def healthz(request: Request) -> Response:
    """Whether the process lives; also while it recovers."""
    return json_response({"status": request.app.state.runtime.status})


@router.get("/readyz", response_model=dict[str, str], responses={**_OPEN, 503: {"model": dict[str, str]}})
async def readyz(request: Request) -> Response:
    """Whether requests are taken: not while the state is being recovered, nor when the service is closing.

    A `warning` says that the last anchor came to nothing: requests are taken, but vectors get older with every batch.
    """
    runtime: Runtime = request.app.state.runtime
    if runtime.status != "ready":
        return json_response({"status": runtime.status}, 503)
    anchors_refused = runtime.model.engine.anchors_refused
    warning = {"warning": f"corrections refused in a row: {anchors_refused}; vectors are not corrected. See the log"}
    return json_response({"status": runtime.status} | (warning if anchors_refused else {}))
