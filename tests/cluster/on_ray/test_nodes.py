"""Test of a lost machine, with the state of its shards and all messages to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_machine_lost_during_batch_changes_nothing(program: Callable[[str], Any]) -> None:
    result = program("nodes")
    assert (result["machines_before"], result["machines_after"]) == (2, 1)
    assert result["recoveries"] > 0
    assert result["same"]
