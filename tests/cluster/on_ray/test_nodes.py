"""A machine goes, with all that its shards knew and all that was on its way to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_a_machine_that_goes_in_the_middle_of_a_batch_changes_nothing(program: Callable[[str], Any]) -> None:
    found = program("nodes")
    assert (found["machines_before"], found["machines_after"]) == (2, 1)
    assert found["recoveries"] > 0
    assert found["same"]
