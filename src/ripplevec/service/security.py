"""Who may do what: tokens with scopes, the names the service answers to, the sites that may talk to it."""

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
SHORTEST_TOKEN = 16

OPEN = frozenset({"/", "/healthz", "/readyz", "/favicon.ico"})
OPEN_BELOW = ("/static/",)
"""What needs no token: whether the service lives, and the page, which holds no data of its own."""

_PAGES = frozenset({"/", "/docs"})
_OWN_SITES = frozenset({"same-origin", "none"})  # and not same-site, which is another port of this machine, too

_READING_POSTS = frozenset({"/v1/vectors", "/v1/nearest", "/v1/preview"})


@dataclass(frozen=True, slots=True, repr=False)
class Tokens:
    """The tokens that are known, as hashes, so that they are never shown and all compare in the same time."""

    read: frozenset[bytes] = frozenset()
    write: frozenset[bytes] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.read or self.write)

    def __repr__(self) -> str:
        return f"Tokens({len(self.read)} to read, {len(self.write)} to write)"

    @classmethod
    def of(cls, read: Iterable[str] = (), write: Iterable[str] = ()) -> Tokens:
        """Tokens from their texts."""
        return cls(frozenset(map(_hashed, map(_checked, read))), frozenset(map(_hashed, map(_checked, write))))

    @classmethod
    def from_file(cls, path: Path) -> Tokens:
        """Tokens from a file with lines `read TOKEN` and `write TOKEN`; `#` begins a comment."""
        found: dict[str, list[str]] = {"read": [], "write": []}
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise FormatError(f"{path}: expected UTF-8 text, got other bytes ({error.reason})") from None
        for number, line in enumerate(lines, 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            if len(words) != 2 or words[0] not in found:
                raise FormatError(f"{path}, line {number}: expected `read TOKEN` or `write TOKEN`, got something else")
            found[words[0]].append(words[1])
        return cls.of(**found)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Tokens:
        """Tokens from two variables, separated by commas."""
        texts = (environment.get(name, "") for name in (READ_TOKENS, WRITE_TOKENS))
        read, write = ([token.strip() for token in text.split(",") if token.strip()] for text in texts)
        return cls.of(read, write)

    def __or__(self, other: Tokens) -> Tokens:
        return Tokens(self.read | other.read, self.write | other.write)

    def allow(self, token: str | None, *, writing: bool) -> bool | None:
        """Whether a token may do this; None where it is not known at all."""
        given = _hashed(token or "")
        may_write = _among(given, self.write)
        may_read = _among(given, self.read) | may_write
        return (may_write if writing else True) if may_read else None


def _checked(token: str) -> str:
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise InvalidValueError(f"token: expected at least {SHORTEST_TOKEN} printable ASCII characters, got others")
    return token


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _among(given: bytes, known: Iterable[bytes]) -> bool:
    found = False
    for token in known:  # all of them: how long it takes says nothing
        found |= hmac.compare_digest(given, token)
    return found


class AuthMiddleware:
    """Refuses a request that calls the service by another name, comes from another site, or lacks the token."""

    def __init__(self, app: ASGIApp, tokens: Tokens, names: frozenset[str] | None) -> None:
        self.app, self.tokens, self.names = app, tokens, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer why not."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        refused = self._refusal(scope, Headers(scope=scope))
        if refused is None:
            await self.app(scope, receive, send)
        else:
            await refused(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        if len(headers.getlist("host")) > 1:
            return error_response(400, "Host: expected one header, got several")
        host = headers.get("host", "")
        if self.names is not None and _name(host) not in self.names:
            return error_response(421, "this service does not answer to the name in the Host header; see --allow-host")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return error_response(403, "requests from other sites are refused")
        path, method = scope["path"], scope["method"]
        if headers.get("sec-fetch-site", "none") not in _OWN_SITES and not _opens_page(method, path, headers):
            return error_response(403, "requests from other sites are refused")
        if not self.tokens or path in OPEN or path.startswith(OPEN_BELOW):
            return None
        allowed = self.tokens.allow(_bearer(headers), writing=_writes(method, path))
        if allowed is None:
            return error_response(401, "expected a token: Authorization: Bearer …", {"WWW-Authenticate": "Bearer"})
        return None if allowed else error_response(403, "this token may read, not write")


def _writes(method: str, path: str) -> bool:
    return method not in ("GET", "HEAD", "OPTIONS") and path not in _READING_POSTS


def _opens_page(method: str, path: str, headers: Headers) -> bool:
    """Whether a browser opens a page in a window of its own: by a link on another site, say."""
    top_level = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return top_level and method == "GET" and path in _PAGES


def _bearer(headers: Headers) -> str | None:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def _name(host: str) -> str:
    """A Host header without its port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower() if ":" in host else host.lower()
