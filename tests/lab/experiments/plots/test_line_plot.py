from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ripplevec.lab.experiments.study import Plot

RULES = ("rule paper", "ripplevec")

Drawn = Callable[..., list[Any]]


def along(setting: str, dataset: str, seed: int) -> dict[str, float]:
    level = 10.0 * RULES.index(setting) + 4 * seed
    return {"loss@100": level + 3, "loss@60": level + 1, "best@60": 0.5, "loss": 7.0}


def names(legend: Any) -> list[str]:
    return [text.get_text() for text in legend.get_legend().get_texts()]


def test_a_line_per_setting_goes_along_the_stream(drawn: Drawn) -> None:
    legend, *panels = drawn(Plot(kind="along", title="T", figure="loss"), RULES, along)
    assert names(legend) == list(RULES)
    assert [axes.get_title() for axes in panels] == ["cora", "blog"]
    lines = panels[0].get_lines()
    assert [list(line.get_xdata()) for line in lines] == [[60, 100]] * 2
    assert [list(line.get_ydata()) for line in lines] == [[3, 5], [13, 15]]  # means of two seeds, 4 apart
    assert panels[0].get_yscale() == "linear"


def test_a_line_per_figure_of_one_setting_or_of_several(drawn: Drawn) -> None:
    both = {"loss": "now", "best": "at best"}
    one, several = (
        Plot(kind="along", title="T", figures=both, settings=settings, log=True) for settings in (["ripplevec"], [])
    )
    legend, panel, _ = drawn(one, RULES, along)
    assert names(legend) == ["now", "at best"]
    assert panel.get_yscale() == "log"
    assert len({line.get_color() for line in panel.get_lines()}) == 2
    legend, *_ = drawn(several, RULES, along)
    assert names(legend) == ["rule paper: now", "rule paper: at best", "ripplevec: now", "ripplevec: at best"]


def test_a_line_keeps_its_color_where_others_were_not_measured(drawn: Drawn) -> None:
    def some(setting: str, dataset: str, seed: int) -> dict[str, float]:
        return along(setting, dataset, seed) if dataset == "cora" or setting == "ripplevec" else {}

    legend, cora, blog = drawn(Plot(kind="along", title="T", figure="loss"), RULES, some)
    assert names(legend) == list(RULES)
    assert [line.get_color() for line in blog.get_lines()] == [cora.get_lines()[1].get_color()]


def test_a_logarithmic_axis_goes_over_whole_decades(drawn: Drawn) -> None:
    plot = Plot(kind="along", title="T", figure="loss", log=True)
    panel = drawn(plot, ("rule paper",), lambda *_: {"loss@60": 0.03, "loss@100": 0.2})[1]
    assert panel.get_ylim() == (0.01, 1.0)
    nothing = drawn(plot, ("rule paper",), lambda *_: {"loss@60": 0.0})[1]
    assert nothing.get_yscale() == "linear"
