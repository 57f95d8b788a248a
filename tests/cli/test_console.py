from __future__ import annotations

import json
import subprocess
import sys

from ripplevec.cli.console import print_json, print_table, progress, say


def test_bars_are_those_of_the_library(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress() as bars:
        bars.advance(bars.add_task("work", total=2, note="so far"))
    assert "so far" in capsys.readouterr().err


def test_bars_are_loaded_when_they_are_needed():
    code = "import sys, ripplevec.cli.console; sys.exit('rich.progress' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_people_read_standard_error_and_programs_standard_output(capsys):
    say("hello")
    print_json({"a": 1})
    shown = capsys.readouterr()
    assert shown.err == "hello\n"
    assert json.loads(shown.out) == {"a": 1}


def test_a_table_has_its_numbers_to_the_right(capsys):
    print_table("Sizes", ["name"], ["edges"], [("cora", "5,278"), ("citeseer", "4")])
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "Sizes" in shown.out
    assert "│ cora     │ 5,278 │" in shown.out
    assert "│ citeseer │     4 │" in shown.out
