"""Learning online from nothing works with vectors, and not with degrees; the fewer labels, the more vectors help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def test_what_the_page_says_is_so(play: Callable[[str], dict[str, Any]]) -> None:
    said = play("online")
    assert said["accuracy"]["vectors"] == pytest.approx(0.91, abs=0.02)
    assert said["late"]["vectors"] == pytest.approx(0.96, abs=0.02)
    assert said["accuracy"]["degrees"] == pytest.approx(1 / said["GROUPS"], abs=0.03)
    gained = [play_of["vectors"].mean() - play_of["vote"].mean() for play_of in said["by_share"].values()]
    assert gained == sorted(gained, reverse=True)
    assert said["score"].get() > 0.9
