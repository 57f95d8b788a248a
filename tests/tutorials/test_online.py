"""Online learning works with vectors and not with degrees, and beats a vote if there are few labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def test_online_results_match_the_page(run_tutorial: Callable[[str], dict[str, Any]]) -> None:
    results = run_tutorial("online")
    assert results["accuracy"]["vectors"] == pytest.approx(0.90, abs=0.02)
    assert results["late"]["vectors"] == pytest.approx(0.92, abs=0.02)
    assert results["accuracy"]["vote"] == pytest.approx(0.33, abs=0.02)
    assert results["accuracy"]["degrees"] == pytest.approx(1 / results["GROUPS"], abs=0.03)
    gained = {share: right["vectors"].mean() - right["vote"].mean() for share, right in results["by_share"].items()}
    assert min(gained[0.01], gained[0.03], gained[0.1]) > 0.45
    assert abs(gained[1.0]) < 0.03
    assert results["score"].get() > 0.9
