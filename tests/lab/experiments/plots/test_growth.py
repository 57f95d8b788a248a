from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ripplevec.lab.experiments.study import Plot

PLOT = Plot(kind="growth", title="Growth", figures={"us": "arrival", "start": "start"})


def test_growth_has_its_exponent_in_the_legend(drawn: Callable[..., list[Any]]) -> None:
    sizes = {"1,000 vertices": 1e3, "10,000 vertices": 1e4, "1,000,000 vertices": 1e6}

    def figures(setting: str, *_: object) -> dict[str, float]:
        small = {"start": 5.0} if setting == "1,000 vertices" else {}
        return {"us": 3 * sizes[setting] ** 0.25, **small}

    (axes,) = drawn(PLOT, tuple(sizes), figures, datasets=["cora"])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["arrival: n^0.25", "start"]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert list(axes.get_lines()[1].get_xdata()) == [1e3, 1e4, 1e6]
