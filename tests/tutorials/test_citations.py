"""A classifier trained once keeps working, and the stream's vectors are worth what recomputed ones are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ripplevec.lab import datasets
from ripplevec.lab.datasets.download import MissingDataError


def test_what_the_page_says_is_so(play: Callable[[str], dict[str, Any]]) -> None:
    try:
        datasets.load("cora")
    except MissingDataError as error:
        pytest.skip(f"set RIPPLEVEC_DATA to run this: {error}")
    said = play("citations")
    assert said["on_arrival"] == pytest.approx(0.72, abs=0.02)
    assert said["at_the_end"] == pytest.approx(0.76, abs=0.02)
    assert said["trained_again"] == pytest.approx(said["recomputed"], abs=0.02)
    assert said["recomputed"] == pytest.approx(0.83, abs=0.02)
    assert said["mixed_up"] < 0.4
    assert said["along"][-1] > said["along"][0] + 5
