"""JSON log lines."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Iterator

import pytest

from ripplevec.service import logs


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()  # without closing the handlers of pytest
    stream = io.StringIO()
    logs.configure_logging(stream)
    yield stream
    logging.captureWarnings(False)
    root.handlers[:], root.level = handlers, level


def test_log_event_is_one_json_line_with_fields(lines: io.StringIO) -> None:
    logs.log_event("something", seconds=1.5, name="x\ny")
    found = json.loads(lines.getvalue())
    assert (found["event"], found["seconds"], found["name"], found["level"]) == ("something", 1.5, "x\ny", "info")
    assert found["time"].endswith("Z")
    assert lines.getvalue().count("\n") == 1


def test_log_of_exception_includes_the_trace(lines: io.StringIO) -> None:
    try:
        raise ValueError("deep down")
    except ValueError as error:
        logs.log.error("failed", exc_info=error)
    assert "deep down" in json.loads(lines.getvalue())["trace"]


def test_log_includes_warnings(lines: io.StringIO) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("careful", stacklevel=1)
    assert "careful" in json.loads(lines.getvalue())["event"]
