"""Learning online from nothing works with vectors, and not with degrees; with few labels it beats a vote."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def test_what_the_page_says_is_so(play: Callable[[str], dict[str, Any]]) -> None:
    said = play("online")
    assert said["accuracy"]["vectors"] == pytest.approx(0.91, abs=0.02)
    assert said["late"]["vectors"] == pytest.approx(0.96, abs=0.02)
    assert said["accuracy"]["vote"] == pytest.approx(0.33, abs=0.02)
    assert said["accuracy"]["degrees"] == pytest.approx(1 / said["GROUPS"], abs=0.03)
    gained = {share: right["vectors"].mean() - right["vote"].mean() for share, right in said["by_share"].items()}
    assert min(gained[0.01], gained[0.03], gained[0.1]) > 0.45
    assert abs(gained[1.0]) < 0.03
    assert said["score"].get() > 0.9
