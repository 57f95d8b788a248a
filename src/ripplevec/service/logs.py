"""Logging of the service: JSON lines or text, and the middleware that logs and counts requests, never their content."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from typing import Any, TextIO

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ripplevec.service.metrics import Metrics
from ripplevec.service.responses import error_response
from ripplevec.service.settings import Settings

log = logging.getLogger("ripplevec.service")

_UNLOGGED_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})


class JsonFormatter(logging.Formatter):
    """Format a record as one line of JSON; `extra={"fields": {…}}` adds keys to it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line of JSON."""
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


class TextFormatter(logging.Formatter):
    """Format a record for people: local time, level, event and `key=value` for each field; then the traceback."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line of a record, without its traceback."""
        fields = getattr(record, "fields", {})
        return " ".join([super().formatMessage(record), *(f"{key}={_quote(value)}" for key, value in fields.items())])


def _quote(value: Any) -> str:
    """Return a value as text, as a JSON string if its end would be unclear otherwise."""
    text = str(value)
    is_printable = text.isprintable()
    is_clear = is_printable and text and not re.search(r'[\s"]', text)
    return text if is_clear else json.dumps(text, ensure_ascii=not is_printable)


def configure_logging(settings: Settings, stream: TextIO | None = None) -> None:
    """Send all log records and warnings to a stream, standard error by default."""
    stream = stream or sys.stderr
    log_format = settings.log_format or ("text" if stream.isatty() else "json")
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormatter() if log_format == "text" else JsonFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.captureWarnings(True)
    if level > logging.DEBUG:  # the events `starting`, `ready` and `closed` say the same
        logging.getLogger("uvicorn").setLevel(max(level, logging.WARNING))


def log_event(event: str, level: int = logging.INFO, **fields: Any) -> None:
    """Log an event with its fields."""
    log.log(level, event, extra={"fields": fields})


class RequestLogMiddleware:
    """Log, count and time every request; answer unexpected errors with 500."""

    def __init__(self, app: ASGIApp, metrics: Metrics, access_log: bool) -> None:
        self.app, self.metrics, self.access_log = app, metrics, access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and record its outcome."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start_time, status, response_started = time.perf_counter(), 500, False

        async def send_and_record(message: Message) -> None:
            nonlocal status, response_started
            if message["type"] == "http.response.start":
                status, response_started = message["status"], True
            await send(message)

        try:
            await self.app(scope, receive, send_and_record)
        except Exception as error:  # logged once, here; the connection survives if no response was started
            log.error("unexpected error", exc_info=error)
            if response_started:
                raise
            await error_response(500, "unexpected error; see the service log")(scope, receive, send_and_record)
        finally:
            self._record(scope, status, time.perf_counter() - start_time)

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path_format", "other")
        method = scope["method"] if scope["method"] in ("GET", "POST", "PUT", "DELETE") else "other"
        self.metrics.requests.labels(method, route, str(status)).inc()
        self.metrics.request_seconds.labels(method, route).observe(seconds)
        if self.access_log and scope["path"] not in _UNLOGGED_PATHS:
            log_event("request", method=method, route=route, status=status, ms=round(seconds * 1000, 3))
