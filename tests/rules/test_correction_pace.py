"""Tests of the pace of a gradual correction."""

from __future__ import annotations

import pytest

from ripplevec.rules.correction_pace import (
    COST,
    MIN_CREDIT,
    QUEUED_ROWS,
    SAMPLE_COST,
    SAMPLE_ROWS,
    CorrectionPace,
    cost_per_row,
    sample_step,
)

DEGREE, DIM, ROWS, SPREAD = 5, 32, 1_000, 0.1


def planned(since_growth: float = 0.2) -> CorrectionPace:
    pace = CorrectionPace(DEGREE, DIM)
    pace.plan(ROWS, SPREAD, since_growth)
    return pace


def test_pace_over_the_whole_spread_earns_the_cost_of_all_stages_and_two_solves() -> None:
    per_row = sum(COST.values()) - COST["filter"] - COST["rotate"] + DEGREE + sum(SAMPLE_COST.values())
    cost = ROWS * (1 + SPREAD / 2) * per_row + SPREAD * ROWS * QUEUED_ROWS
    pace = planned()
    assert 0 < pace.solve_cost < cost
    assert pace.earn_credit(0.2 + SPREAD) == pytest.approx(cost + 2 * pace.solve_cost)


@pytest.mark.parametrize("stage", list(SAMPLE_ROWS))
def test_cost_of_a_sample_decreases_once_the_graph_is_larger_than_the_sample(stage: str) -> None:
    size, whole = SAMPLE_ROWS[stage], COST.get(stage, 0.0)
    assert cost_per_row(stage, size) == pytest.approx(whole + SAMPLE_COST[stage])
    assert cost_per_row(stage, 10 * size) == pytest.approx(whole + SAMPLE_COST[stage] / 10)
    assert sample_step(stage, 10 * size) == 10 * sample_step(stage, size)


def test_pace_earns_the_same_in_one_step_and_in_many() -> None:
    once, often = planned(), planned()
    for step in range(1, 11):
        credit = often.earn_credit(0.2 + 0.01 * step)
    assert credit == pytest.approx(once.earn_credit(0.3))


def test_pace_pays_for_growth_once_and_for_no_shrinking() -> None:
    pace = planned()
    credit = pace.earn_credit(0.25)
    assert pace.earn_credit(0.25) == pace.earn_credit(0.22) == credit
    assert pace.earn_credit(0.26) > credit


def test_pace_keeps_small_credit_until_it_is_worth_a_call() -> None:
    pace = planned()
    small = 0.5 * MIN_CREDIT / pace.pace
    assert pace.earn_credit(0.2 + small) == 0.0
    assert pace.earn_credit(0.2 + 2.01 * small) == pytest.approx(1.005 * MIN_CREDIT)
