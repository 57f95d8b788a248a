"""Heads of requests, byte by byte, over a socket of one's own."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from ripplet.service import protocol

pytest.importorskip("httptools")

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def connected(service: Any) -> socket.socket:
    port = service.server.servers[0].sockets[0].getsockname()[1]
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def everything(connection: socket.socket) -> bytes:
    """What comes until the other side hangs up."""
    parts = []
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:  # it had not read all that was sent
        pass
    return b"".join(parts)


def test_a_head_that_does_not_end_is_hung_up_on(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.1)
    service = start()
    for begun in (b"", b"G", REQUEST[:-2]):
        with connected(service) as connection:
            connection.sendall(begun)
            assert everything(connection) == b""


def test_a_head_too_late_on_a_connection_that_was_used(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    service = start()
    with connected(service) as connection:
        connection.sendall(REQUEST)
        assert b" 200 " in connection.recv(1 << 16)
        monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.1)
        connection.sendall(REQUEST[:10])
        assert everything(connection) == b""


def test_a_head_in_pieces_and_a_body_have_their_time(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    service = start()
    body = b'{"ids": []}'
    head = (
        b"POST /v1/vectors HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    )
    with connected(service) as connection:
        for part in (REQUEST[:7], REQUEST[7:], head % len(body), body[:4]):
            connection.sendall(part)
        assert b" 200 " in connection.recv(1 << 16)
        monkeypatch.setattr(protocol, "HEAD_BYTES", 1)  # a body is not counted as a head
        connection.sendall(body[4:])
        assert b'"vectors":[]' in connection.recv(1 << 16)


def test_a_head_that_is_too_long_is_refused(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_BYTES", 1_000)
    service = start()
    with connected(service) as connection:
        connection.sendall(REQUEST[:-2] + b"X: " + b"x" * 1_000)
        assert b" 400 " in everything(connection)
    assert service.http.get("/healthz").status_code == 200
