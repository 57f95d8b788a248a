"""Tokens, Host headers, requests of other websites, content types."""

from __future__ import annotations

import io
import logging
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from ripplevec.errors import FormatError, InvalidValueError
from ripplevec.service import logs
from ripplevec.service.security import Tokens
from ripplevec.service.settings import Settings

READ, WRITE, OTHER = "read-token-0123456789", "write-token-0123456789", "other-token-0123456789"
TOKENS = Tokens.of([READ], [WRITE])

WRITES = [
    ("POST", "/v1/edges", {"edges": [["a", "b"]]}),
    ("POST", "/v1/arrivals", {"arrivals": [{"id": "c", "neighbors": ["a"]}]}),
    ("DELETE", "/v1/edges", {"edges": [["a", "b"]]}),
    ("DELETE", "/v1/vertices", {"ids": ["a"]}),
    ("DELETE", "/v1/vertices/c", None),
    ("PUT", "/v1/labels", {"labels": []}),
    ("PUT", "/v1/attributes", {"attributes": [{"id": "b", "attributes": {"x": 1}}]}),
]
READS = [
    ("GET", "/v1/stats", None),
    ("GET", "/v1/changes", None),
    ("GET", "/v1/vertices/b", None),
    ("GET", "/v1/vertices/b/nearest", None),
    ("POST", "/v1/vectors", {"ids": ["a"]}),
    ("POST", "/v1/degrees", {"ids": ["a"]}),
    ("POST", "/v1/ages", {"ids": ["a"]}),
    ("POST", "/v1/neighbors", {"vertex": "a"}),
    ("POST", "/v1/nearest", {"vector": [1.0] * 8}),
    ("POST", "/v1/nearest/many", {"vertices": ["a"]}),
    ("POST", "/v1/attributes/nearest", {"attributes": {"x": 1}}),
    ("POST", "/v1/preview", {"neighbors": []}),
    ("POST", "/v1/score", {"pairs": [["a", "b"]]}),
    ("POST", "/v1/recommend", {"vertices": ["a"]}),
    ("GET", "/metrics", None),
    ("GET", "/openapi.json", None),
]


def send(service: Any, method: str, path: str, body: Any, token: str | None) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    options = {} if body is None else {"json": body}
    return httpx.request(method, f"{service.url}{path}", headers=headers, timeout=60, **options)


def test_tokens_permit_requests_of_their_scope(start: Any) -> None:
    service = start(tokens=TOKENS, token=WRITE, parameters={"dim": 8, "attribute_dim": 4, "threads": 1})
    for method, path, body in WRITES + READS:
        assert send(service, method, path, body, None).status_code == 401, path
        assert send(service, method, path, body, OTHER).status_code == 401, path
    for method, path, body in WRITES:
        assert send(service, method, path, body, READ).status_code == 403, path
    assert service.http.get("/v1/stats").json()["sequence"] == 0
    for method, path, body in WRITES:
        assert send(service, method, path, body, WRITE).status_code in (200, 404), path
    for token in (READ, WRITE):
        for method, path, body in READS:
            assert send(service, method, path, body, token).status_code in (200, 404), path


def test_tokens_every_endpoint_is_public_or_tested(start: Any) -> None:
    service = start(tokens=TOKENS, token=READ)
    described = {
        (method.upper(), path)
        for path, methods in service.http.get("/openapi.json").json()["paths"].items()
        for method in methods
    }
    tested = {(method, path) for method, path, _ in WRITES + READS}
    tested |= {("GET", "/v1/vertices/{id}"), ("GET", "/v1/vertices/{id}/nearest"), ("DELETE", "/v1/vertices/{id}")}
    assert described - tested == {("GET", "/healthz"), ("GET", "/readyz")}
    assert send(service, "GET", "/healthz", None, None).status_code == 200


@pytest.mark.parametrize("header", ["", "Basic abc", "Bearer", f"bearer{READ}", f"Token {READ}"])
def test_token_in_other_header_format_is_rejected(start: Any, header: str) -> None:
    service = start(tokens=TOKENS, token=READ)
    answer = httpx.get(f"{service.url}/v1/stats", headers={"Authorization": header})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"


def test_tokens_are_never_logged_or_displayed(start: Any) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logs.JsonFormatter())
    loggers = [logging.getLogger(name) for name in ("ripplevec", "uvicorn", "fastapi")]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
    try:
        service = start(tokens=TOKENS, token=WRITE)
        service.edges(["a", "b"])
        send(service, "GET", "/v1/stats", None, OTHER)
        send(service, "GET", f"/v1/stats?token={OTHER}", None, None)
        service.stop()
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
            logger.setLevel(logging.NOTSET)
    assert '"event": "request"' in stream.getvalue()
    assert not any(token in stream.getvalue() for token in (READ, WRITE, OTHER))
    assert READ not in repr(Settings(state=Path("x"), tokens=TOKENS))


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.", ""])
def test_host_header_with_other_name_is_rejected(service: Any, host: str) -> None:
    before = service.runtime.model.sequence
    answer = service.http.post("/v1/edges", json={"edges": [["a", "b"]]}, headers={"Host": host})
    assert answer.status_code in (400, 421)
    assert service.runtime.model.sequence == before


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8080", "127.0.0.1", "[::1]:9"])
def test_host_header_with_loopback_name_is_accepted(service: Any, host: str) -> None:
    assert service.http.get("/healthz", headers={"Host": host}).status_code == 200


def test_host_header_with_configured_name_is_accepted(start: Any) -> None:
    service = start(hosts=frozenset({"graph.internal"}))
    assert service.http.get("/healthz", headers={"Host": "graph.internal:80"}).status_code == 200


def test_host_header_sent_twice_is_rejected(service: Any) -> None:
    address = urlsplit(service.url)
    for first, second in ((b"localhost", b"evil.example"), (b"evil.example", b"localhost"), (b"localhost",) * 2):
        with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: %s\r\nHost: %s\r\n\r\n" % (first, second))
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("site", ["cross-site", "same-site", "other"])
def test_sec_fetch_site_of_other_website_is_rejected(service: Any, site: str) -> None:
    header = {"Sec-Fetch-Site": site}
    opened = header | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    for path in ("/", "/docs", "/v1/stats", "/static/main.js", "/healthz", "/metrics"):
        answer = service.http.get(path, headers=header)
        assert (answer.status_code, list(answer.json())) == (403, ["error"]), path
    for path, status in {"/": 200, "/docs": 200, "/v1/stats": 403, "/metrics": 403}.items():
        assert service.http.get(path, headers=opened).status_code == status, path
    framed = opened | {"Sec-Fetch-Dest": "iframe"}
    assert service.http.get("/", headers=framed).status_code == 403
    before = service.runtime.model.sequence
    assert service.http.post("/v1/edges", json={"edges": [["a", "b"]]}, headers=opened).status_code == 403
    assert service.runtime.model.sequence == before


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_sec_fetch_site_of_own_page_or_typed_url_is_accepted(service: Any, site: str) -> None:
    for path in ("/", "/docs", "/v1/stats", "/static/main.js"):
        assert service.http.get(path, headers={"Sec-Fetch-Site": site}).status_code == 200, path


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1"])
def test_origin_of_other_website_is_rejected(service: Any, origin: str) -> None:
    answer = service.http.post("/v1/edges", json={"edges": [["a", "b"]]}, headers={"Origin": origin})
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


def test_origin_of_own_page_is_accepted(service: Any) -> None:
    origin = service.url.rstrip("/")
    assert service.http.get("/v1/stats", headers={"Origin": origin}).status_code == 200


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "application/json; charset=latin1"],
)
@pytest.mark.parametrize("path", ["/v1/edges", "/v1/vectors"])
def test_content_type_other_than_expected_is_rejected(service: Any, path: str, kind: str) -> None:
    answer = service.http.post(path, content=b'{"edges": [["a", "b"]]}', headers={"Content-Type": kind})
    assert answer.status_code == 415


def test_content_encoding_compressed_is_rejected(service: Any) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    assert service.http.post("/v1/edges", content=b"x", headers=headers).status_code == 415


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_settings_non_loopback_host_requires_tokens(host: str) -> None:
    with pytest.raises(InvalidValueError, match="tokens are required"):
        Settings(state=Path("x"), host=host)
    assert Settings(state=Path("x"), host=host, tokens=TOKENS).host == host


def test_tokens_are_read_from_file_and_environment(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# loggers\nread {READ}\n\nwrite {WRITE} # the feeder\n")
    environment = {"RIPPLEVEC_READ_TOKENS": f"{READ}, {OTHER}", "RIPPLEVEC_WRITE_TOKENS": WRITE}
    assert Tokens.from_file(path) == TOKENS
    assert Tokens.from_environment(environment) == Tokens.of([READ, OTHER], [WRITE])
    assert not Tokens.from_environment({})
    assert Tokens.of([READ]) | Tokens.of([], [WRITE]) == TOKENS


@pytest.mark.parametrize("text", ["read", f"admin {READ}", f"read {READ} more"])
def test_token_file_invalid_is_rejected_without_quoting_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tokens"
    path.write_text(text)
    with pytest.raises(FormatError, match="line 1") as error:
        Tokens.from_file(path)
    assert READ not in str(error.value)


def test_token_too_short_is_rejected() -> None:
    with pytest.raises(InvalidValueError, match="at least 16"):
        Tokens.of(["short"])
