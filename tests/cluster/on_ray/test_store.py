"""Test of the object store: it holds the data of one batch, for any number of batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_object_store_after_large_stream_is_empty(program: Callable[[str], Any]) -> None:
    result = program("store")
    assert result["stores"] > 3
    assert result["held_last"] <= result["held_first"]
    assert result["emptied"]
    assert result["spilled"] == []
