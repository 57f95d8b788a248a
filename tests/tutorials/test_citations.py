"""A classifier trained once keeps working, and streamed vectors are as good as recomputed ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ripplevec.lab import datasets
from ripplevec.lab.datasets.download import MissingDataError


def test_citations_results_match_the_page(run_tutorial: Callable[[str], dict[str, Any]]) -> None:
    try:
        datasets.load("cora")
    except MissingDataError as error:
        pytest.skip(f"set RIPPLEVEC_DATA to run this: {error}")
    results = run_tutorial("citations")
    assert results["on_arrival"] == pytest.approx(0.72, abs=0.02)
    assert results["at_the_end"] == pytest.approx(0.76, abs=0.02)
    assert results["trained_again"] == pytest.approx(results["recomputed"], abs=0.02)
    assert results["recomputed"] == pytest.approx(0.83, abs=0.02)
    assert results["mixed_up"] < results["guessed"] < 0.3
    assert results["along"][-1] > results["along"][0] + 5
