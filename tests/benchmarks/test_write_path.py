"""Tests of the trace of the write path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MAX_CALLS, MAX_FILES = 28, 26


def test_write_path_of_small_batch_has_few_calls_and_files(benchmark: Callable[[str], Any]) -> None:
    write_path = benchmark("write_path")
    path = write_path.trace_write()
    assert path.calls[0] == write_path.FIRST
    assert write_path.LAST in path.calls
    listing = "\n".join(map(" ".join, path.calls))
    assert len(path.calls) <= MAX_CALLS, listing
    assert len(path.files) <= MAX_FILES, "\n".join(path.files)
