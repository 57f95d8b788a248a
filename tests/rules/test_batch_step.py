"""Tests of the batch step: the order of its operations, and its budget of reads."""

from __future__ import annotations

import pytest

from ripplevec.rules._kernels import BatchContext
from ripplevec.rules.batch_step import run_batch_step

FIRST = ["admit", "place", "unplace_isolated", "sample"]


class ScriptedBackend:
    """Records the operations; the frontier has a given size in each round, and every vertex a given degree."""

    def __init__(self, sizes: list[int], *, depth: int = -1, max_reads: int = 100, events: int = 1) -> None:
        self.context = BatchContext(0, 1, depth, max_reads, 0)
        self.sizes, self.events, self.degree = sizes, events, 3
        self.calls: list[str] = []
        self.limits: list[int] = []

    def admit(self) -> None:
        self.calls.append("admit")

    def place(self) -> None:
        self.calls.append("place")

    def unplace_isolated(self) -> None:
        self.calls.append("unplace_isolated")

    def sample_changed_endpoints(self) -> int:
        self.calls.append("sample")
        return self.sizes[0]

    def count_events(self) -> int:
        return self.events

    def _read(self, size: int, limit: int) -> int:
        self.limits.append(limit)
        return size * min(limit, self.degree)

    def refresh_frontier(self, limit: int, depth: int) -> int:
        self.calls.append(f"refresh {depth}")
        return self._read(self.sizes[depth], limit)

    def spread_influence(self, limit: int, depth: int) -> tuple[int, int]:
        self.calls.append(f"spread {depth}")
        return self.sizes[depth] if depth < len(self.sizes) else 0, self._read(self.sizes[depth - 1], limit)

    def refresh_newcomers(self) -> None:
        self.calls.append("refresh newcomers")


def calls_after_start(backend: ScriptedBackend) -> list[str]:
    run_batch_step(backend)
    assert backend.calls[:4] == FIRST
    assert backend.calls[-1] == "refresh newcomers"
    return backend.calls[4:-1]


def test_step_without_changed_edges_begins_with_influence_of_newcomers() -> None:
    assert calls_after_start(ScriptedBackend([0, 2, 0])) == ["spread 1", "refresh 1", "spread 2"]


def test_step_ends_when_no_vertex_is_reached() -> None:
    assert calls_after_start(ScriptedBackend([1, 1])) == ["refresh 0", "spread 1", "refresh 1", "spread 2"]


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_step_ends_at_the_depth_of_the_rule(depth: int) -> None:
    calls = calls_after_start(ScriptedBackend([1] * 10, depth=depth))
    assert [call for call in calls if call.startswith("refresh")] == [f"refresh {round}" for round in range(depth + 1)]
    assert [call for call in calls if call.startswith("spread")] == [f"spread {round}" for round in range(1, depth + 1)]


def test_each_operation_may_use_half_of_the_reads_that_are_left() -> None:
    backend = ScriptedBackend([4, 5, 0], max_reads=50, events=2)
    run_batch_step(backend)
    # 100 reads for 4 vertices; 12 are used. 88 for 4; 12 are used. 76 for 5; 15 are used. 61 for 5.
    assert backend.limits == [100 // 8, 88 // 8, 76 // 10, 61 // 10]


@pytest.mark.parametrize(("reads", "expected"), [(1, []), (7, []), (8, ["refresh 0", "spread 1"])])
def test_frontier_larger_than_the_budget_is_not_refreshed(reads: int, expected: list[str]) -> None:
    assert calls_after_start(ScriptedBackend([4, 4], max_reads=reads)) == expected
