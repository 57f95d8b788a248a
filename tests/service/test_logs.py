"""Log lines, as JSON and as text."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ripplevec.service import logs
from ripplevec.service.settings import Settings


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def configure() -> Iterator[Callable[..., io.StringIO]]:
    """Configure logging for a new stream; the handlers of pytest are put back at the end."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()  # without closing the handlers of pytest

    def configure_one(stream: io.StringIO, **options: Any) -> io.StringIO:
        logs.configure_logging(Settings(state=Path("state"), **options), stream)
        return stream

    yield configure_one
    logging.captureWarnings(False)
    logging.getLogger("uvicorn").setLevel(logging.NOTSET)
    root.handlers[:], root.level = handlers, level


@pytest.fixture
def lines(configure: Callable[..., io.StringIO]) -> io.StringIO:
    return configure(io.StringIO())


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


def test_log_on_a_terminal_is_text_with_fields(configure: Callable[..., io.StringIO]) -> None:
    stream = configure(Terminal())
    logs.log_event("ready", url="http://127.0.0.1:8080/", reason='a "b" c')
    time, line = stream.getvalue().split(" ", 1)
    assert len(time) == len("12:34:56")
    assert line == 'INFO    ready url=http://127.0.0.1:8080/ reason="a \\"b\\" c"\n'


def test_log_text_keeps_printable_characters_and_escapes_others(configure: Callable[..., io.StringIO]) -> None:
    stream = configure(Terminal())
    logs.log_event("failed", reason="expected kafka://… or é", id="ü \x1b[2J\u202e")
    assert stream.getvalue().endswith('failed reason="expected kafka://… or é" id="\\u00fc \\u001b[2J\\u202e"\n')


@pytest.mark.parametrize(("terminal", "log_format"), [(True, "json"), (False, "text")])
def test_log_format_overrides_the_choice_by_terminal(
    configure: Callable[..., io.StringIO], terminal: bool, log_format: str
) -> None:
    stream = configure(Terminal() if terminal else io.StringIO(), log_format=log_format)
    logs.log_event("something")
    assert stream.getvalue().startswith("{") is (log_format == "json")


def test_log_level_hides_events_below_it(configure: Callable[..., io.StringIO]) -> None:
    stream = configure(io.StringIO(), log_level="warning")
    logs.log_event("request")
    logs.log_event("store failed", logging.ERROR)
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["store failed"]


def test_log_text_of_an_exception_ends_with_its_trace(configure: Callable[..., io.StringIO]) -> None:
    stream = configure(io.StringIO(), log_format="text")
    try:
        raise ValueError("deep down")
    except ValueError as error:
        logs.log.error("failed", exc_info=error)
    assert "ERROR   failed\nTraceback" in stream.getvalue()
    assert stream.getvalue().endswith("ValueError: deep down\n")
