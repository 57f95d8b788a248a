"""Suggestions that follow the purchases are better than popularity and than vectors that are not updated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def test_what_the_page_says_is_so(play: Callable[[str], dict[str, Any]]) -> None:
    said = play("shop")
    hits = dict(zip(said["methods"], said["hits"], strict=True))
    assert hits["item-to-item"] == pytest.approx(0.377, abs=0.015)
    assert hits["user-to-item"] == pytest.approx(0.367, abs=0.015)
    assert hits["not updated"] == pytest.approx(0.267, abs=0.015)
    assert hits["popularity"] == pytest.approx(0.076, abs=0.01)
    assert hits["true tastes"] == pytest.approx(0.434, abs=0.01)
    assert said["own_kind"] > 0.9
    assert said["after_one"]["item-to-item"] > 2 * said["after_one"]["popularity"]
    assert (said["hits_alone"][2:4] < said["hits"][2:4]).all()
