"""Logs as lines of JSON: what happened, when, and how long it took; never what was sent."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, TextIO

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ripplevec.service.metrics import Metrics
from ripplevec.service.responses import error_response

log = logging.getLogger("ripplevec.service")

_QUIET = frozenset({"/healthz", "/readyz", "/metrics"})


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON; fields given as `extra={"fields": {…}}` stand beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def configure_logging(stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """Send everything that is logged to a stream (standard error), as lines of JSON; warnings too."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.captureWarnings(True)


def log_event(event: str, level: int = logging.INFO, **fields: Any) -> None:
    """Log an event with its fields."""
    log.log(level, event, extra={"fields": fields})


class RequestLogMiddleware:
    """Counts and times every request, and logs it."""

    def __init__(self, app: ASGIApp, metrics: Metrics, access_log: bool) -> None:
        self.app, self.metrics, self.access_log = app, metrics, access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and note what became of it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, begun = time.perf_counter(), 500, False

        async def noting(message: Message) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
            await send(message)

        try:
            await self.app(scope, receive, noting)
        except Exception as error:  # said here once; what raised it keeps its connection where nothing was answered yet
            log.error("unexpected error", exc_info=error)
            if begun:
                raise
            await error_response(500, "an unexpected error; see the log of the service")(scope, receive, noting)
        finally:
            self._note(scope, status, time.perf_counter() - began)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path_format", "other")
        method = scope["method"] if scope["method"] in ("GET", "POST", "PUT", "DELETE") else "other"
        self.metrics.requests.labels(method, route, str(status)).inc()
        self.metrics.seconds.labels(method, route).observe(seconds)
        if self.access_log and scope["path"] not in _QUIET:
            log_event("request", method=method, route=route, status=status, ms=round(seconds * 1000, 3))
