"""Vertex ids in URL paths."""

from __future__ import annotations

import re

import pytest

from ripplevec.errors import InvalidValueError
from ripplevec.service.path_ids import (
    IdKind,
    VertexConvertor,
    candidate_ids,
    decode_id,
    parse_id_kind,
    raw_vertex_path,
)


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("a", "auto", ["a"]),
        ("7", "auto", ["7", 7]),
        ("7", "text", ["7"]),
        ("7", "integer", [7]),
        ("-7", "integer", [-7]),
        ("07", "auto", ["07"]),
        ("a", "integer", []),
        ("٧", "auto", ["٧"]),
        ("9" * 5000, "integer", []),
    ],
)
def test_candidate_ids_are_the_text_and_the_canonical_integer(text: str, kind: IdKind, expected: list[object]) -> None:
    assert candidate_ids(text, kind) == expected


def test_parse_id_kind_unknown_is_an_error() -> None:
    assert parse_id_kind("text") == "text"
    with pytest.raises(InvalidValueError, match="kind"):
        parse_id_kind("other")


@pytest.mark.parametrize(("escaped", "text"), [("a%2Fb", "a/b"), ("%C3%A9", "é"), ("100%25", "100%"), ("a+b", "a+b")])
def test_decode_id_with_escapes_returns_the_text(escaped: str, text: str) -> None:
    assert decode_id(escaped) == text


def test_decode_id_with_invalid_utf8_is_an_error() -> None:
    with pytest.raises(InvalidValueError, match="UTF-8"):
        decode_id("%ff")


def test_raw_vertex_path_prefers_the_path_as_sent() -> None:
    scope = {"path": "/v1/vertices/a/b", "raw_path": b"/v1/vertices/a%2Fb"}
    assert raw_vertex_path(scope) == "/v1/vertices/a%2Fb"
    assert raw_vertex_path({"path": "/v1/vertices/é %"}) == "/v1/vertices/%C3%A9%20%25"


@pytest.mark.parametrize(("path", "matches"), [("a", True), ("a/b", True), ("a/nearest", False), ("nearest", True)])
def test_vertex_convertor_leaves_the_nearest_endpoint_out(path: str, matches: bool) -> None:
    assert bool(re.fullmatch(VertexConvertor.regex, path)) is matches
