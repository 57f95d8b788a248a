from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ripplevec.lab.experiments.study import Plot

METHODS = ("ripplevec", "NetMF", "NetMF, tuned", "LINE")

Drawn = Callable[..., list[Any]]


def test_bars_bear_their_values(drawn: Drawn) -> None:
    seconds = {"ripplevec": 0.01234, "NetMF": 1234.5, "NetMF, tuned": 0.0}

    def figures(setting: str, *_: object) -> dict[str, float]:
        return {"seconds": seconds[setting]} if setting in seconds else {}

    axes = drawn(Plot(kind="bars", title="Time", figure="seconds", log=True), METHODS, figures)[0]
    assert axes.get_xscale() == "log"
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["ripplevec", "NetMF"], "no bar for 0 on such a scale"
    assert [text.get_text() for text in axes.texts] == ["0.0123", "1,234"]
    assert [bar.get_width() for bar in axes.patches] == [0.01234, 1234.5]


def test_bars_on_a_plain_scale_begin_at_zero_or_below(drawn: Drawn) -> None:
    above = {"ripplevec": 4.0, "NetMF": 0.0, "LINE": -2.0}
    plot = Plot(kind="bars", title="Above", figure="above")
    axes = drawn(plot, tuple(above), lambda setting, *_: {"above": above[setting]})[0]
    assert [text.get_text() for text in axes.texts] == ["4.00", "0", "-2.00"]
    assert (axes.get_xscale(), axes.get_xlim()) == ("linear", (-2, 5))


def test_several_figures_of_one_setting_have_a_bar_each(drawn: Drawn) -> None:
    several = {"own": "ripplevec", "walk": "DeepWalk", "never": "GraphWave"}
    plot = Plot(kind="bars", title="Time", settings=["LINE"], figures=several)

    def figures(setting: str, *_: object) -> dict[str, float]:
        return {"own": 1.0 + (setting == "LINE"), "walk": 30.0}

    axes = drawn(plot, METHODS, figures)[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ripplevec", "DeepWalk"]
    assert [bar.get_width() for bar in axes.patches] == [2.0, 30.0]
