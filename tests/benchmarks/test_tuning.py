"""Tests of the selection of settings in benchmarks."""

from __future__ import annotations

import math
from typing import Any

import pytest

GRIDS = [{"rate": [0.1, 0.2], "steps": [5]}, {"steps": [5], "rate": [0.2]}, {}]


def test_expand_grids_yields_each_combination_once(benchmark: Any) -> None:
    assert benchmark("_tuning").expand_grids(GRIDS) == [{"rate": 0.1, "steps": 5}, {"rate": 0.2, "steps": 5}, {}]


def test_select_best_returns_first_of_equals(benchmark: Any) -> None:
    tuning = benchmark("_tuning")
    scores = {"rate 0.1, steps 5": 2.0, "rate 0.2, steps 5": 2.0, "default": 1.0}
    assert tuning.select_best(tuning.expand_grids(GRIDS), scores) == {"rate": 0.1, "steps": 5}


def test_select_best_with_missing_score_raises(benchmark: Any) -> None:
    tuning = benchmark("_tuning")
    with pytest.raises(SystemExit, match=r"got none of 'rate 0\.1, steps 5'"):
        tuning.select_best(tuning.expand_grids(GRIDS), {"default": 1.0})


@pytest.mark.parametrize("jobs", [1, 2])
def test_run_tasks_yields_all_results(benchmark: Any, jobs: int) -> None:
    results = benchmark("_tuning").run_tasks(math.pow, [(2.0, 3.0), (3.0, 2.0)], jobs)
    assert sorted(results) == [(0, 8.0), (1, 9.0)]
