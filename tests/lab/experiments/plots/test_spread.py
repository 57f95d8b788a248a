from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ripplevec.lab.experiments.study import Plot

QUANTILES = {"spread@0": 0.0, "spread@50": 0.25, "spread@100": 1.0}


@pytest.mark.parametrize(("log", "points"), [(False, [(0, 0), (0.25, 50), (1, 100)]), (True, [(0.25, 50), (1, 100)])])
def test_values_go_to_the_right_and_per_cents_up(
    drawn: Callable[..., list[Any]], log: bool, points: list[tuple[float, float]]
) -> None:
    plot = Plot(kind="spread", title="T", figures={"spread": "deviation"}, x="squared", log=log)
    legend, panel, _ = drawn(plot, ("rule paper",), lambda *_: QUANTILES)
    (line,) = panel.get_lines()
    assert list(zip(line.get_xdata(), line.get_ydata(), strict=True)) == points
    assert panel.get_xlabel() == "squared"
    assert [text.get_text() for text in legend.get_legend().get_texts()] == ["deviation"]
