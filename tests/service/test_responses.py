from __future__ import annotations

import json

import pytest

from ripplevec.errors import InvalidValueError, RipplevecError, StateError, UnknownEdgeError, UnknownVertexError
from ripplevec.io.messages import MessageError
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
def test_every_error_has_its_status_and_its_reason(error: RipplevecError, status: int) -> None:
    answer = exception_response(error)
    assert answer.status_code == status
    assert "x" in json.loads(answer.body)["error"]
    assert ("retry-after" in answer.headers) is (status == 503)


def test_a_reason_is_short_and_can_always_be_written() -> None:
    assert len(json.loads(error_response(400, "long " * 1000).body)["error"]) == 500
    assert json.loads(error_response(400, "\ud800").body) == {"error": "\ud800"}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_json_answer_with_number_that_is_not_finite_is_an_error_or_null(number: float) -> None:
    value = {"id": "NaN", "vector": [1.0, number]}
    with pytest.raises(NotFiniteError):
        json_response(value)
    assert exception_response(NotFiniteError()).status_code == 500
    assert json.loads(json_response(value, finite=False).body) == {"id": "NaN", "vector": [1.0, None]}


def test_json_answer_with_such_names_as_text_is_answered() -> None:
    value = {"Infinity": ["NaN", "-Infinity"]}
    assert json.loads(json_response(value).body) == value
