"""JSON responses and the exception-to-status mapping."""

from __future__ import annotations

import json

import pytest

from ripplevec.errors import InvalidValueError, RipplevecError, StateError, UnknownEdgeError, UnknownVertexError
from ripplevec.io.message_schema import MessageError
from ripplevec.service.responses import (
    NotFiniteError,
    RejectedRequest,
    error_response,
    exception_response,
    json_response,
)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (MessageError("x"), 422),
        (InvalidValueError("x"), 422),
        (UnknownVertexError(["x"]), 404),
        (UnknownEdgeError([("x", "y")]), 404),
        (StateError("x"), 503),
        (RejectedRequest(418, "x"), 418),
        (RipplevecError("x"), 500),
    ],
)
def test_exception_response_has_status_and_reason(error: RipplevecError, status: int) -> None:
    answer = exception_response(error)
    assert answer.status_code == status
    assert "x" in json.loads(answer.body)["error"]
    assert ("retry-after" in answer.headers) is (status == 503)


def test_error_response_shortens_and_encodes_any_reason() -> None:
    assert len(json.loads(error_response(400, "long " * 1000).body)["error"]) == 500
    assert json.loads(error_response(400, "\ud800").body) == {"error": "\ud800"}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_json_response_with_non_finite_number_is_an_error_or_null(number: float) -> None:
    value = {"id": "NaN", "vector": [1.0, number]}
    with pytest.raises(NotFiniteError):
        json_response(value)
    assert exception_response(NotFiniteError()).status_code == 500
    assert json.loads(json_response(value, finite=False).body) == {"id": "NaN", "vector": [1.0, None]}


def test_json_response_with_nan_as_text_is_sent() -> None:
    value = {"Infinity": ["NaN", "-Infinity"]}
    assert json.loads(json_response(value).body) == value
