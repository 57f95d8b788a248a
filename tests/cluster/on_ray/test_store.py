"""The object store holds what one batch needs, however many there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_a_stream_several_times_as_large_as_the_store_leaves_nothing_in_it(program: Callable[[str], Any]) -> None:
    found = program("store")
    assert found["stores"] > 3
    assert found["held_last"] <= found["held_first"]
    assert found["emptied"]
    assert found["spilled"] == []
