"""Fakes of tight rings raise an alert before they exist; the limits are where the page says they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def test_what_the_page_says_is_so(play: Callable[[str], dict[str, Any]]) -> None:
    said = play("lookalikes")
    assert said["precision"] >= 0.98
    assert said["recall"] == pytest.approx(0.81, abs=0.03)
    assert said["recall_after"] == pytest.approx(said["recall"], abs=0.02)
    assert said["recall_old"] >= 0.96
    assert said["recall_new"] == pytest.approx(0.68, abs=0.05)
    assert said["recall_review"] >= 0.97
    assert said["recall_count"] >= said["recall"]
    assert said["recall_wide"] == pytest.approx(0.19, abs=0.05)
