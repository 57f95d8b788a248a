"""Test of a cluster that is started in a thread which ends, like that in which a service opens its session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_cluster_outlives_thread_that_starts_it(program: Callable[[str], Any]) -> None:
    result = program("thread")
    assert result["running"] == ["gcs_server", "raylet"]
    assert result["vertices"] == 21
