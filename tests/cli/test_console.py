from __future__ import annotations

import json

from ripplet.cli.console import print_json, progress, say


def test_progress_is_silent_where_nobody_looks(capsys):
    with progress() as bars:
        bars.advance(bars.add_task("work", total=1, note=""))
    assert capsys.readouterr() == ("", "")


def test_progress_shows_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress() as bars:
        bars.advance(bars.add_task("work", total=2, note="so far"))
    assert "so far" in capsys.readouterr().err


def test_people_read_standard_error_and_programs_standard_output(capsys):
    say("hello")
    print_json({"a": 1})
    shown = capsys.readouterr()
    assert shown.err == "hello\n"
    assert json.loads(shown.out) == {"a": 1}
