"""HTTP connections with bounds: on the length of a head, and on the time it takes to send one or take an answer."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 64 << 10
"""The longest head of a request: its first line and its headers."""

HEAD_SECONDS = 30.0
"""How long a head may take, from the connection or from its first byte; and the rest of a body that was refused."""

STALL_SECONDS = 30.0
"""How long a client may take nothing of an answer that waits for it."""

_AROUND_HEADER = 4  # bytes: a colon, a space, the end of the line


class HeadTooLongError(Exception):
    """A head has more bytes than it may have."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection. The parser knows no bounds, and uvicorn minds only those who are silent after an answer."""

    _in_head, _in_body = True, False
    _parsed, _received = 0, 0  # bytes of a head: in what was parsed of it, and in what came since it began
    _messages = 0  # requests that have come to their end
    _deadline: asyncio.TimerHandle | None = None
    _stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._set_deadline()

    def data_received(self, data: bytes) -> None:
        """Take in bytes; where they leave a head unfinished, see that it ends soon."""
        messages = self._messages
        super().data_received(data)
        whole = messages == self._messages  # else some of it belonged to the request before
        if self._in_body or self.transport.is_closing() or not (whole or self._in_head):
            return
        self._received += len(data) if whole else 0
        if self._received > HEAD_BYTES:
            self.send_400_response("")
        elif self._deadline is None:
            self._set_deadline()

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be parsed, or is too long to be."""
        too_long = max(self._parsed, self._received) > HEAD_BYTES
        super().send_400_response(f"Expected a head of at most {HEAD_BYTES:,} bytes." if too_long else msg)

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._in_head, self._parsed, self._received = True, 0, 0

    def on_url(self, url: bytes) -> None:
        """A part of the address."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header: counted before it is kept, as a head may come in one piece with its end."""
        self._count(len(name) + len(value) + _AROUND_HEADER)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """A head is over."""
        super().on_headers_complete()
        self._in_head, self._in_body, self._parsed, self._received = False, True, 0, 0
        self._clear_deadline()

    def on_message_complete(self) -> None:
        """A request is over."""
        super().on_message_complete()
        self._in_body = False
        self._messages += 1
        self._clear_deadline()

    def on_response_complete(self) -> None:
        """An answer is over; the rest of a body that nobody waits for has to come soon."""
        super().on_response_complete()
        if self._in_body and self._deadline is None and not self.transport.is_closing():
            self._set_deadline()

    def pause_writing(self) -> None:
        """The client does not keep up: watch whether it takes anything at all."""
        super().pause_writing()
        self._watch(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """The client has taken most of what waited for it."""
        self._stop_watching()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more will come."""
        self._clear_deadline()
        self._stop_watching()
        super().connection_lost(exc)

    def _count(self, size: int) -> None:
        self._parsed += size
        if self._parsed > HEAD_BYTES:
            raise HeadTooLongError

    def _watch(self, waiting: int) -> None:
        self._stop_watching()
        self._stall = self.loop.call_later(STALL_SECONDS, self._check_taken, waiting)

    def _check_taken(self, before: int) -> None:
        """Hang up on a client that has taken nothing since; `close` would wait for it."""
        waiting = self.transport.get_write_buffer_size()
        if waiting >= before:
            self.transport.abort()
        else:
            self._watch(waiting)

    def _stop_watching(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _set_deadline(self) -> None:
        self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
