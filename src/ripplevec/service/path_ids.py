"""Vertex ids in URL paths: matching, unescaping, and the choice between text and integer ids.

Routes match the path as it was sent, with its percent escapes, so that a path can contain any id.
"""

from __future__ import annotations

from typing import Literal, cast, get_args
from urllib.parse import quote, unquote_to_bytes

from starlette.convertors import StringConvertor, register_url_convertor
from starlette.types import Scope

from ripplevec.batch import Id
from ripplevec.errors import InvalidValueError

VERTICES_PREFIX, NEAREST_SUFFIX = "/v1/vertices/", "/nearest"
_MAX_DIGITS = 1024

IdKind = Literal["auto", "text", "integer"]


class VertexConvertor(StringConvertor):
    """Match the rest of a path, including slashes, unless it ends with the suffix of the `nearest` endpoint.

    An id that ends with that suffix must be escaped.
    """

    regex = f"(?!.*{NEAREST_SUFFIX}$).*"


register_url_convertor("vertex", VertexConvertor())


def raw_vertex_path(scope: Scope) -> str:
    """Return the path of a vertex with its percent escapes."""
    raw_path: str = scope.get("raw_path", b"").decode("ascii", "replace")
    if raw_path.startswith(VERTICES_PREFIX):
        return raw_path
    return VERTICES_PREFIX + quote(scope["path"].removeprefix(VERTICES_PREFIX))


def decode_id(text: str) -> str:
    """Unescape an id from a path."""
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise InvalidValueError("id: expected UTF-8 in the percent escapes of the path, got other bytes") from None


def parse_id_kind(text: str) -> IdKind:
    """Check the `kind` parameter of a request."""
    if text not in get_args(IdKind):
        raise InvalidValueError.of("kind", "auto, text or integer", text)
    return cast(IdKind, text)


def candidate_ids(text: str, kind: IdKind) -> list[Id]:
    """Return the ids that a path may mean: the text, then the integer if the text is the canonical form of one."""
    digits = text.removeprefix("-")
    integer = int(text) if digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS else None
    if integer is not None and str(integer) != text:
        integer = None
    candidates: list[Id] = [] if kind == "integer" else [text]
    return candidates if integer is None or kind == "text" else [*candidates, integer]
