from __future__ import annotations

import json

import pytest

from ripplet.errors import InvalidValueError, RippletError, StateError, UnknownEdgeError, UnknownVertexError
from ripplet.io.messages import MessageError
from ripplet.service.answers import Refused, refusal, refusal_of


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (MessageError("x"), 422),
        (InvalidValueError("x"), 422),
        (UnknownVertexError(["x"]), 404),
        (UnknownEdgeError([("x", "y")]), 404),
        (StateError("x"), 503),
        (Refused(418, "x"), 418),
        (RippletError("x"), 500),
    ],
)
def test_every_error_has_its_status_and_its_reason(error: RippletError, status: int) -> None:
    answer = refusal_of(error)
    assert answer.status_code == status
    assert "x" in json.loads(answer.body)["error"]
    assert ("retry-after" in answer.headers) is (status == 503)


def test_a_reason_is_short_and_can_always_be_written() -> None:
    assert len(json.loads(refusal(400, "long " * 1000).body)["error"]) == 500
    assert json.loads(refusal(400, "\ud800").body) == {"error": "\ud800"}
