"""Access control: tokens with scopes, allowed Host headers, and protection from requests of other websites."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from ripplevec.errors import FormatError, InvalidValueError
from ripplevec.service.responses import error_response

READ_TOKENS, WRITE_TOKENS = "RIPPLEVEC_READ_TOKENS", "RIPPLEVEC_WRITE_TOKENS"
MIN_TOKEN_LENGTH = 16

PUBLIC_PATHS = frozenset({"/", "/docs", "/healthz", "/readyz", "/favicon.ico"})
PUBLIC_PREFIXES = ("/static/",)
"""Paths that need no token: health checks, and the pages, which themselves contain no data."""

_PAGES = frozenset({"/", "/docs"})
_TRUSTED_SITES = frozenset({"same-origin", "none"})  # not same-site, which includes other ports of this machine

_READ_ONLY_POSTS = frozenset(
    f"/v1/{name}"
    for name in (
        "vectors",
        "degrees",
        "ages",
        "neighbors",
        "nearest",
        "nearest/many",
        "attributes/nearest",
        "preview",
        "score",
        "recommend",
    )
)


@dataclass(frozen=True, slots=True, repr=False)
class Tokens:
    """The accepted tokens, stored as hashes: they cannot leak, and all comparisons take the same time."""

    read: frozenset[bytes] = frozenset()
    write: frozenset[bytes] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.read or self.write)

    def __repr__(self) -> str:
        return f"Tokens({len(self.read)} to read, {len(self.write)} to write)"

    @classmethod
    def of(cls, read: Iterable[str] = (), write: Iterable[str] = ()) -> Tokens:
        """Hash the given tokens; raise `InvalidValueError` for one that is too short or not printable ASCII."""
        return cls(frozenset(map(_hash, map(_validate, read))), frozenset(map(_hash, map(_validate, write))))

    @classmethod
    def from_file(cls, path: Path) -> Tokens:
        """Read tokens from a file with lines `read TOKEN` and `write TOKEN`; `#` starts a comment."""
        tokens: dict[str, list[str]] = {"read": [], "write": []}
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise FormatError(f"{path}: expected UTF-8 text, got other bytes ({error.reason})") from None
        for number, line in enumerate(lines, 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            if len(words) != 2 or words[0] not in tokens:
                raise FormatError(f"{path}, line {number}: expected `read TOKEN` or `write TOKEN`, got something else")
            tokens[words[0]].append(words[1])
        return cls.of(**tokens)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Tokens:
        """Read comma-separated tokens from two environment variables."""
        texts = (environment.get(name, "") for name in (READ_TOKENS, WRITE_TOKENS))
        read, write = ([token.strip() for token in text.split(",") if token.strip()] for text in texts)
        return cls.of(read, write)

    def __or__(self, other: Tokens) -> Tokens:
        return Tokens(self.read | other.read, self.write | other.write)

    def allow(self, token: str | None, *, writing: bool) -> bool | None:
        """Return whether a token permits the request; None for an unknown token."""
        digest = _hash(token or "")
        may_write = _contains(self.write, digest)
        may_read = _contains(self.read, digest) | may_write
        return (may_write if writing else True) if may_read else None


def _validate(token: str) -> str:
    if len(token) < MIN_TOKEN_LENGTH or not token.isascii() or not token.isprintable():
        raise InvalidValueError(
            f"token: expected at least {MIN_TOKEN_LENGTH} printable ASCII characters, got a shorter token or other "
            "characters"
        )
    return token


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _contains(digests: Iterable[bytes], wanted: bytes) -> bool:
    found = False
    for digest in digests:  # all of them, so that the duration reveals nothing
        found |= hmac.compare_digest(wanted, digest)
    return found


class AuthMiddleware:
    """Reject requests with a wrong Host header, from another website, or without a valid token."""

    def __init__(self, app: ASGIApp, tokens: Tokens, allowed_hosts: frozenset[str] | None) -> None:
        self.app, self.tokens, self.allowed_hosts = app, tokens, allowed_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on or reject it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        rejection = self._check(scope, Headers(scope=scope))
        if rejection is None:
            await self.app(scope, receive, send)
        else:
            await rejection(scope, receive, send)

    def _check(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        """Return the error response to a request, or None if it is permitted."""
        if len(headers.getlist("host")) > 1:
            return error_response(400, "Host: expected one header, got several")
        host = headers.get("host", "")
        if self.allowed_hosts is not None and _host_name(host) not in self.allowed_hosts:
            return error_response(421, "Host: this name is not allowed; see --allow-host")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return error_response(403, "requests from other websites are rejected")
        path, method = scope["path"], scope["method"]
        if headers.get("sec-fetch-site", "none") not in _TRUSTED_SITES and not _opens_page(method, path, headers):
            return error_response(403, "requests from other websites are rejected")
        if not self.tokens or path in PUBLIC_PATHS or path.startswith(PUBLIC_PREFIXES):
            return None
        allowed = self.tokens.allow(_bearer_token(headers), writing=_is_write(method, path))
        if allowed is None:
            headers_401 = {"WWW-Authenticate": "Bearer"}
            return error_response(401, "a token is required: Authorization: Bearer …", headers_401)
        return None if allowed else error_response(403, "this token permits reads only")


def _is_write(method: str, path: str) -> bool:
    return method not in ("GET", "HEAD", "OPTIONS") and path not in _READ_ONLY_POSTS


def _opens_page(method: str, path: str, headers: Headers) -> bool:
    """Return whether a browser opens a page as a top-level document, for example from a link on another website."""
    top_level = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return top_level and method == "GET" and path in _PAGES


def _bearer_token(headers: Headers) -> str | None:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def _host_name(host: str) -> str:
    """Strip port and brackets from a Host header."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower() if ":" in host else host.lower()
