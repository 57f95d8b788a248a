from __future__ import annotations

import json
import subprocess
import sys

from ripplevec.cli.console import format_count, print_json, print_message, print_table, show_progress


def test_show_progress_on_terminal_prints_the_note(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with show_progress() as bars:
        bars.advance(bars.add_task("work", total=2, note="halfway"))
    assert "halfway" in capsys.readouterr().err


def test_importing_console_does_not_import_rich_progress():
    code = "import sys, ripplevec.cli.console; sys.exit('rich.progress' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_messages_go_to_standard_error_and_json_to_standard_output(capsys):
    print_message("hello")
    print_json({"a": 1})
    shown = capsys.readouterr()
    assert shown.err == "hello\n"
    assert json.loads(shown.out) == {"a": 1}


def test_print_table_right_aligns_numbers(capsys):
    print_table("Sizes", ["name"], ["edges"], [("cora", "5,278"), ("citeseer", "4")])
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "Sizes" in shown.out
    assert "│ cora     │ 5,278 │" in shown.out
    assert "│ citeseer │     4 │" in shown.out


def test_format_count_uses_singular_and_plural():
    assert [format_count(number, "edge") for number in (0, 1, 2000)] == ["0 edges", "1 edge", "2,000 edges"]
    assert [format_count(number, "vertex", "vertices") for number in (1, 2)] == ["1 vertex", "2 vertices"]
