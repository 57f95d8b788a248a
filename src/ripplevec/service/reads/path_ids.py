"""Ids in addresses: routes are found by the address as it was sent, escapes and all, so that it may hold any id."""

from __future__ import annotations

from urllib.parse import quote, unquote_to_bytes

from starlette.convertors import StringConvertor, register_url_convertor
from starlette.types import Scope

from ripplevec.errors import InvalidValueError

VERTICES_PREFIX, NEAREST_SUFFIX = "/v1/vertices/", "/nearest"


class VertexConvertor(StringConvertor):
    """The rest of an address, slashes too, unless it ends as that of the nearest does: such an id has to be escaped."""

    regex = f"(?!.*{NEAREST_SUFFIX}$).*"


register_url_convertor("vertex", VertexConvertor())


def raw_vertex_path(scope: Scope) -> str:
    """The address of a vertex with its escapes."""
    sent: str = scope.get("raw_path", b"").decode("ascii", "replace")
    return (
        sent
        if sent.startswith(VERTICES_PREFIX)
        else VERTICES_PREFIX + quote(scope["path"].removeprefix(VERTICES_PREFIX))
    )


def decode_id(text: str) -> str:
    """The id that a part of an address stands for, without its escapes."""
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise InvalidValueError("id: expected UTF-8 in the escapes of the address, got other bytes") from None
