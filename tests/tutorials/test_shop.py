"""Recommendations with updated vectors beat popularity and vectors that are not updated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def test_shop_results_match_the_page(run_tutorial: Callable[[str], dict[str, Any]]) -> None:
    results = run_tutorial("shop")
    hits = dict(zip(results["methods"], results["hits"], strict=True))
    assert hits["item-to-item"] == pytest.approx(0.377, abs=0.015)
    assert hits["user-to-item"] == pytest.approx(0.367, abs=0.015)
    assert hits["not updated"] == pytest.approx(0.267, abs=0.015)
    assert hits["popularity"] == pytest.approx(0.076, abs=0.01)
    assert hits["true tastes"] == pytest.approx(0.434, abs=0.01)
    assert results["own_kind"] > 0.9
    assert results["after_one"]["item-to-item"] > 2 * results["after_one"]["popularity"]
    assert (results["hits_alone"][2:4] < results["hits"][2:4]).all()
