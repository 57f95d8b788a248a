"""HTTP as it is parsed here: whoever sends a head that is too long, or too slow in coming, is hung up on."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 64 << 10
"""The longest head of a request: its first line and its headers."""

HEAD_SECONDS = 30.0
"""How long a head may take, from the connection or from its first byte."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection. The parser knows no bounds, and uvicorn minds only those who are silent after an answer."""

    _in_head, _head_bytes = True, 0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._set_deadline()

    def data_received(self, data: bytes) -> None:
        """Take in bytes; where they leave a head unfinished, see that it ends soon."""
        super().data_received(data)
        if not self._in_head:
            return
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response(f"Expected a head of at most {HEAD_BYTES:,} bytes.")
        elif self._deadline is None:
            self._set_deadline()

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0

    def on_headers_complete(self) -> None:
        """A head is over."""
        super().on_headers_complete()
        self._in_head = False
        self._clear_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more will come."""
        self._clear_deadline()
        super().connection_lost(exc)

    def _set_deadline(self) -> None:
        self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
