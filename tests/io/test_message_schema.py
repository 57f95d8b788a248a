"""Declared JSON messages: their OpenAPI description, and errors that name the value."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ripplevec.io.message_schema import Arrival, Document, Edge, MessageError, convert, describe_document
from ripplevec.io.readers.edge_rows import ReadOptions
from ripplevec.io.readers.jsonl import EdgeFieldExtractor


@pytest.mark.parametrize("required", ["arrivals", "edges", "attributes"])
def test_describe_document_is_complete_and_has_no_references(required: str) -> None:
    schema = describe_document(required)
    assert "$ref" not in json.dumps(schema)
    assert list(schema["properties"]) == ["key", "arrivals", "edges", "attributes", "remove_edges", "remove_vertices"]
    assert (schema["required"], schema["properties"][required]["minItems"]) == ([required], 1)
    assert schema["additionalProperties"] is False
    edge = schema["properties"]["edges"]["items"]
    assert (edge["minItems"], edge["maxItems"], len(edge["prefixItems"])) == (2, 4, 4)
    arrival = schema["properties"]["arrivals"]["items"]
    assert list(arrival["properties"]) == ["id", "neighbors", "weights", "time", "attributes"]
    assert (arrival["required"], arrival["additionalProperties"]) == (["id"], False)


@pytest.mark.parametrize(
    ("value", "declared", "reason"),
    [
        ([["a", "b"], ["a", None]], list[Edge], "dst: expected an id that is int or str, got None in row 1"),
        ({"edges": 3}, Document, "edges: expected a list of edges .*, got 3"),
        ({"arrivals": [{"id": 1, "weights": [2.0]}]}, Document, "expected 0 weights, one per neighbor, got 1 in row 0"),
    ],
)
def test_convert_of_undeclared_value_names_it_with_its_row(value: Any, declared: type[Any], reason: str) -> None:
    with pytest.raises(MessageError, match=reason):
        convert(value, declared, EdgeFieldExtractor(ReadOptions()))


def test_convert_of_arrival_accepts_both_spellings_of_neighbors() -> None:
    extractor = EdgeFieldExtractor(ReadOptions())
    us, british = (convert({"id": 1, name: [2]}, Arrival, extractor) for name in ("neighbors", "neighbours"))
    assert us == british == Arrival(1, [2])


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"arrivals": [{"id": 1, "attributes": {"a": 1, "b": "x"}}]}, "numbers, got 'x' in row 0, column 'b'"),
        ({"attributes": [{"id": 1, "attributes": {}}, {"id": 2, "attributes": [1, None]}]}, "None in row 1, column 1"),
        ({"attributes": [{"id": 1, "attributes": {"x": 1, "big": 10**400}}]}, "in row 0, column 'big'"),
        ({"attributes": [{"id": 1, "attributes": 3}]}, "an object .* or a list of numbers, got 3 in row 0"),
        ({"attributes": [{"id": 1}]}, "a list of .*got {'id': 1} in row 0"),
        ({"attributes": {"a": {"x": 1}}}, "attributes: expected a list of"),
        ({"attributes": [{"id": 1, "attributes": {}, "time": 3}]}, "only the keys id, attributes, got 'time'"),
    ],
)
def test_convert_of_bad_attributes_names_row_and_column(value: Any, reason: str) -> None:
    with pytest.raises(MessageError, match=reason):
        convert(value, Document, EdgeFieldExtractor(ReadOptions()))
