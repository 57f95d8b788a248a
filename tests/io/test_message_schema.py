"""Declared JSON messages: their OpenAPI description, and errors that name the value."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ripplevec.io.message_schema import Arrival, Document, Edge, MessageError, convert, describe_document
from ripplevec.io.readers.edge_rows import ReadOptions
from ripplevec.io.readers.jsonl import EdgeFieldExtractor


@pytest.mark.parametrize("required", ["arrivals", "edges"])
def test_describe_document_is_complete_and_has_no_references(required: str) -> None:
    schema = describe_document(required)
    assert "$ref" not in json.dumps(schema)
    assert list(schema["properties"]) == ["key", "arrivals", "edges", "remove_edges", "remove_vertices"]
    assert (schema["required"], schema["properties"][required]["minItems"]) == ([required], 1)
    assert schema["additionalProperties"] is False
    edge = schema["properties"]["edges"]["items"]
    assert (edge["minItems"], edge["maxItems"], len(edge["prefixItems"])) == (2, 4, 4)
    arrival = schema["properties"]["arrivals"]["items"]
    assert list(arrival["properties"]) == ["id", "neighbors", "weights", "time"]
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
