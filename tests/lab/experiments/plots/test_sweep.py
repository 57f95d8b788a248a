from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ripplevec.lab.experiments.study import Plot

PLOT = Plot(kind="sweep", title="Depth", figure="micro", x="depth D")


@pytest.mark.parametrize(
    ("values", "x", "scale"),
    [
        (("2", "0", "1"), [0, 1, 2], "linear"),
        (("0.1", "1", "100"), [0.1, 1, 100], "log"),
        (("0", "1", "100"), [0, 1, 2], "linear"),
        (("none", "1", "inf"), [0, 1, 2], "linear"),
    ],
)
def test_a_sweep_has_its_values_on_the_axis(
    drawn: Callable[..., list[Any]], values: tuple[str, ...], x: list[float], scale: str
) -> None:
    (axes,) = drawn(PLOT, ("k: 7", *(f"depth D: {value}" for value in values)), lambda *_: {"micro": 1.0})
    assert [line.get_label() for line in axes.get_lines()] == ["cora", "blog"]
    assert list(axes.get_lines()[0].get_xdata()) == x
    assert {label.get_text() for label in axes.get_xticklabels()} == set(values)
    assert (axes.get_xscale(), axes.get_xlabel()) == (scale, "depth D")
