"""Limits on request heads and slow clients, tested over plain sockets."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest

from ripplevec.service import http_protocol

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def connect(service: Any) -> socket.socket:
    port = service.server.servers[0].sockets[0].getsockname()[1]
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def read_all(connection: socket.socket) -> bytes:
    """Return all bytes until the server disconnects."""
    parts = []
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:  # the server had not read everything
        pass
    return b"".join(parts)


def test_head_incomplete_is_disconnected(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.1)
    service = start()
    for begun in (b"", b"G", REQUEST[:-2]):
        with connect(service) as connection:
            connection.sendall(begun)
            assert read_all(connection) == b""


def test_head_incomplete_on_reused_connection_is_disconnected(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    service = start()
    with connect(service) as connection:
        connection.sendall(REQUEST)
        assert b" 200 " in connection.recv(1 << 16)
        monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.1)
        connection.sendall(REQUEST[:10])
        assert read_all(connection) == b""


def test_head_in_pieces_and_body_are_accepted(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    service = start()
    body = b'{"ids": []}'
    head = (
        b"POST /v1/vectors HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    )
    with connect(service) as connection:
        for part in (REQUEST[:7], REQUEST[7:]):
            connection.sendall(part)
        assert b" 200 " in connection.recv(1 << 16)
        for part in (head % len(body), body[:4]):
            connection.sendall(part)
        deadline = time.monotonic() + 30
        while not service.runtime.read_bodies.held_bytes:  # until the head has been read
            assert time.monotonic() < deadline
            time.sleep(0.005)
        monkeypatch.setattr(http_protocol, "HEAD_BYTES", 1)  # a body is not counted as a head
        connection.sendall(body[4:])
        assert b'"vectors":[]' in connection.recv(1 << 16)


def test_head_too_long_is_rejected(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_BYTES", 1_000)
    service = start()
    with connect(service) as connection:
        connection.sendall(REQUEST[:-2] + b"X: " + b"x" * 1_000)
        assert b" 400 " in read_all(connection)
    assert service.http.get("/healthz").status_code == 200


def test_head_of_70_kb_sent_at_once_is_rejected(start: Any) -> None:
    service = start()
    for filler in (b"X: " + b"x" * 70_000, b"".join(b"X-%05d: %s\r\n" % (n, b"x" * 90) for n in range(700))[:-2]):
        with connect(service) as connection:
            connection.sendall(REQUEST[:-2] + filler + b"\r\n\r\n")
            answer = read_all(connection)
        assert b" 400 " in answer
        assert b"65,536 bytes" in answer
    with connect(service) as connection:
        connection.sendall(REQUEST.replace(b"/healthz", b"/" + b"x" * 70_000))
        assert b" 400 " in read_all(connection)
    with connect(service) as connection:
        connection.sendall(REQUEST[:-2] + b"X: " + b"x" * 60_000 + b"\r\n\r\n")
        assert b" 200 " in connection.recv(1 << 16)


def test_head_after_long_body_in_same_packet_is_accepted(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_BYTES", 1_000)
    service = start()
    body = b'{"ids": []' + b" " * 2_000 + b"}"
    post = b"POST /v1/vectors HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with connect(service) as connection:
        connection.sendall(post + b"Content-Length: %d\r\n\r\n" % len(body) + body + REQUEST[:20])
        assert b'"vectors":[]' in connection.recv(1 << 16)
        connection.sendall(REQUEST[20:])
        assert b'"ready"' in connection.recv(1 << 16)


def test_head_of_empty_lines_only_is_disconnected(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    service = start()
    with connect(service) as connection:
        connection.sendall(REQUEST)
        assert b" 200 " in connection.recv(1 << 16)
        monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.1)
        connection.sendall(b"\r\n")
        assert read_all(connection) == b""


def test_body_rejected_and_incomplete_is_disconnected(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.2)
    service = start()
    head = b"POST /v1/vectors HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\n"
    with connect(service) as connection:
        connection.sendall(head)
        assert b" 415 " in connection.recv(1 << 16)
        connection.sendall(b"x")
        assert read_all(connection) == b""


def test_client_that_reads_nothing_is_disconnected(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "STALL_SECONDS", 0.2)
    service = start(parameters={"dim": 64, "threads": 1})
    service.edges(*[[number, number + 1] for number in range(5000)])
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", service.server.servers[0].sockets[0].getsockname()[1]))
        connection.sendall(REQUEST.replace(b"/healthz", b"/v1/changes?since=0"))
        deadline = time.monotonic() + 30
        while service.runtime.feed.followers == 0:
            assert time.monotonic() < deadline
        while service.runtime.feed.followers:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_client_that_reads_slowly_gets_the_whole_response(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "STALL_SECONDS", 1.5)  # a busy machine may pause this process for a while
    service = start(parameters={"dim": 64, "threads": 1})
    service.edges(*[[number, number + 1] for number in range(2000)])
    with socket.socket() as connection:
        connection.settimeout(30)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", service.server.servers[0].sockets[0].getsockname()[1]))
        connection.sendall(
            REQUEST.replace(b"/healthz", b"/v1/changes?since=0").replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        )
        for _ in range(20):  # for longer than STALL_SECONDS
            assert connection.recv(20_000)
            time.sleep(0.1)
        assert read_all(connection).endswith(b'],"next":1}\r\n0\r\n\r\n')
