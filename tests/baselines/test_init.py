from __future__ import annotations

import pytest

from ripplet.baselines import DeepWalk, baseline
from ripplet.errors import InvalidValueError


def test_a_baseline_is_found_by_its_name() -> None:
    assert baseline("deepwalk") is DeepWalk


def test_an_unknown_baseline_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="one of 'deepwalk'"):
        baseline("deeptalk")
