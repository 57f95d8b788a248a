"""Tests of the script that runs the fault-injection tests exhaustively."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCHEDULES = "tests/test_interleavings.py -k of_all_threads"


def test_run_tests_counts_the_reported_property(benchmark: Callable[[str], Any]) -> None:
    found = benchmark("fault_injection").run_tests(SCHEDULES, {"RIPPLEVEC_SEEDS": "6"}, "schedules")
    assert found == {"schedules": 6, "faults": []}


def test_run_tests_with_a_failing_test_names_it(benchmark: Callable[[str], Any], tmp_path: Path) -> None:
    file = tmp_path / "test_fails.py"
    file.write_text("def test_fails(record_property):\n    record_property('cases', 3)\n    assert False\n")
    found = benchmark("fault_injection").run_tests(str(file), {}, "cases")
    assert found == {"cases": 3, "faults": ["test_fails"]}


def test_run_tests_without_any_report_is_an_error(benchmark: Callable[[str], Any], tmp_path: Path) -> None:
    file = tmp_path / "test_passes.py"
    file.write_text("def test_passes():\n    pass\n")
    with pytest.raises(SystemExit, match="no test reported cases"):
        benchmark("fault_injection").run_tests(str(file), {}, "cases")
