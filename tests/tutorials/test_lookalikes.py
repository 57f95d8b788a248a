"""Fakes in dense rings cause an alert before they exist, and the limits are as described."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def test_lookalikes_results_match_the_page(run_tutorial: Callable[[str], dict[str, Any]]) -> None:
    results = run_tutorial("lookalikes")
    assert results["precision"] >= 0.98
    assert results["recall"] == pytest.approx(0.90, abs=0.03)
    assert results["recall_after"] == pytest.approx(results["recall"], abs=0.02)
    assert results["recall_old"] >= 0.96
    assert results["recall_new"] == pytest.approx(0.83, abs=0.05)
    assert results["recall_review"] >= 0.97
    assert results["recall_count"] == pytest.approx(results["recall"], abs=0.05)
    assert results["recall_wide"] == pytest.approx(0.28, abs=0.05)
