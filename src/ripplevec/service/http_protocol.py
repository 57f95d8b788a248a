"""HTTP protocol with limits: on the size and duration of a request head, and on clients that stop reading."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 64 << 10
"""Maximum size of a request head: the request line and the headers."""

HEAD_SECONDS = 30.0
"""Maximum duration of a head, from the connection or its first byte; also of the rest of a rejected body."""

STALL_SECONDS = 30.0
"""Time after which a client that reads nothing of a pending response is disconnected."""

_HEADER_OVERHEAD = 4  # bytes: colon, space, end of line


class HeadTooLongError(Exception):
    """A request head exceeds `HEAD_BYTES`."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection. The parser has no limits, and uvicorn only closes connections that are idle after a response."""

    _in_head, _in_body = True, False
    _parsed, _received = 0, 0  # bytes of the current head: parsed parts of it, and all since it began
    _completed_requests = 0
    _deadline: asyncio.TimerHandle | None = None
    _stall_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for the first head."""
        super().connection_made(transport)
        self._set_deadline()

    def data_received(self, data: bytes) -> None:
        """Parse bytes; if they leave a head incomplete, enforce its limits."""
        completed = self._completed_requests
        super().data_received(data)
        one_request = completed == self._completed_requests  # otherwise a part belonged to the previous request
        if self._in_body or self.transport.is_closing() or not (one_request or self._in_head):
            return
        self._received += len(data) if one_request else 0
        if self._received > HEAD_BYTES:
            self.send_400_response("")
        elif self._deadline is None:
            self._set_deadline()

    def send_400_response(self, msg: str) -> None:
        """Reject a request that cannot be parsed or has too long a head."""
        too_long = max(self._parsed, self._received) > HEAD_BYTES
        super().send_400_response(
            f"Request head: expected at most {HEAD_BYTES:,} bytes, got more." if too_long else msg
        )

    def on_message_begin(self) -> None:
        """Handle the start of a head."""
        super().on_message_begin()
        self._in_head, self._parsed, self._received = True, 0, 0

    def on_url(self, url: bytes) -> None:
        """Handle a part of the URL."""
        self._count_head_bytes(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Handle a header; it is counted before it is stored, as a whole head may arrive at once."""
        self._count_head_bytes(len(name) + len(value) + _HEADER_OVERHEAD)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Handle the end of a head."""
        super().on_headers_complete()
        self._in_head, self._in_body, self._parsed, self._received = False, True, 0, 0
        self._clear_deadline()

    def on_message_complete(self) -> None:
        """Handle the end of a request."""
        super().on_message_complete()
        self._in_body = False
        self._completed_requests += 1
        self._clear_deadline()

    def on_response_complete(self) -> None:
        """Handle the end of a response; the rest of a body that is no longer needed must arrive soon."""
        super().on_response_complete()
        if self._in_body and self._deadline is None and not self.transport.is_closing():
            self._set_deadline()

    def pause_writing(self) -> None:
        """Handle a full write buffer: check from now on whether the client reads at all."""
        super().pause_writing()
        self._start_stall_timer(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Handle a write buffer that has drained."""
        self._stop_stall_timer()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the connection."""
        self._clear_deadline()
        self._stop_stall_timer()
        super().connection_lost(exc)

    def _count_head_bytes(self, size: int) -> None:
        self._parsed += size
        if self._parsed > HEAD_BYTES:
            raise HeadTooLongError

    def _start_stall_timer(self, buffered: int) -> None:
        self._stop_stall_timer()
        self._stall_timer = self.loop.call_later(STALL_SECONDS, self._check_progress, buffered)

    def _check_progress(self, buffered_before: int) -> None:
        """Abort the connection if the client has read nothing since; `close` would wait for the client."""
        buffered = self.transport.get_write_buffer_size()
        if buffered >= buffered_before:
            self.transport.abort()
        else:
            self._start_stall_timer(buffered)

    def _stop_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _set_deadline(self) -> None:
        self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
