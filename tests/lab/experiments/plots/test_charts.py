from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ripplevec.lab.experiments.study import Plot

SHARES_PLOT = Plot(kind="shares", title="Micro-F1", figure="micro")
METHODS = ("ripplevec", "NetMF", "NetMF, tuned", "LINE")

DrawAxes = Callable[..., list[Any]]


def shares_metrics(setting: str, dataset: str, seed: int) -> dict[str, float]:
    level = 10.0 * METHODS.index(setting) + 4 * seed
    return {"micro": 1.0, **{f"micro@{share}": level + share for share in (90, 10, 50)}, "other@10": 1.0}


def test_shares_chart_draws_line_per_setting_and_panel_per_data_set(draw_axes: DrawAxes) -> None:
    _, *panels = draw_axes(SHARES_PLOT, METHODS, shares_metrics)
    assert [axes.get_title() for axes in panels] == ["cora", "blog"]
    lines = panels[0].get_lines()
    assert list(lines[0].get_xdata()) == [10, 50, 90]
    assert [list(line.get_ydata()) for line in lines] == [[12 + up, 52 + up, 92 + up] for up in (0, 10, 20, 30)]
    band = panels[0].collections[0].get_paths()[0].get_extents()
    assert (round(band.ymin, 2), round(band.ymax, 2)) == (9.17, 94.83)  # ± the deviation of two seeds, 4 apart


def test_shares_chart_emphasizes_ripplevec(draw_axes: DrawAxes) -> None:
    legend, panel, _ = draw_axes(SHARES_PLOT, METHODS, shares_metrics)
    names = legend.get_legend().get_texts()
    assert [text.get_text() for text in names] == list(METHODS)
    assert [text.get_fontweight() for text in names] == ["bold", "normal", "normal", "normal"]
    ours, *others = panel.get_lines()
    assert ours.get_linewidth() > 2 * max(line.get_linewidth() for line in others)
    assert ours.get_zorder() > max(line.get_zorder() for line in others)


def test_shares_chart_of_some_settings_keeps_their_colors(draw_axes: DrawAxes) -> None:
    some = Plot(kind="shares", title="Some", figure="micro", settings=["LINE"])
    everything, chosen = (draw_axes(plot, METHODS, shares_metrics)[1].get_lines() for plot in (SHARES_PLOT, some))
    assert [line.get_color() for line in chosen] == [everything[3].get_color()]


def test_shares_chart_omits_missing_results(draw_axes: DrawAxes) -> None:
    def some(setting: str, dataset: str, seed: int) -> dict[str, float]:
        return shares_metrics(setting, dataset, seed) if (setting, dataset, seed) == ("LINE", "blog", 1) else {}

    legend, panel = draw_axes(SHARES_PLOT, METHODS, some)
    assert [text.get_text() for text in legend.get_legend().get_texts()] == ["LINE"]
    assert panel.get_title() == "blog"


def test_shares_chart_of_several_metrics_draws_the_first_that_a_setting_has(draw_axes: DrawAxes) -> None:
    def metrics(setting: str, dataset: str, seed: int) -> dict[str, float]:
        return {"arrival@50": 1.0, "current@50": 2.0} if setting == "ripplevec" else {"current@50": 3.0}

    plot = Plot(kind="shares", title="T", figures={"arrival": "on arrival", "current": "retrained"})
    panel = draw_axes(plot, METHODS[:2], metrics)[1]
    assert [list(line.get_ydata()) for line in panel.get_lines()] == [[1.0], [3.0]]


RULES = ("rule paper", "ripplevec")


def along_metrics(setting: str, dataset: str, seed: int) -> dict[str, float]:
    level = 10.0 * RULES.index(setting) + 4 * seed
    return {"loss@100": level + 3, "loss@60": level + 1, "best@60": 0.5, "loss": 7.0}


def names(legend: Any) -> list[str]:
    return [text.get_text() for text in legend.get_legend().get_texts()]


def test_along_chart_draws_line_per_setting(draw_axes: DrawAxes) -> None:
    legend, *panels = draw_axes(Plot(kind="along", title="T", figure="loss"), RULES, along_metrics)
    assert names(legend) == list(RULES)
    assert [axes.get_title() for axes in panels] == ["cora", "blog"]
    lines = panels[0].get_lines()
    assert [list(line.get_xdata()) for line in lines] == [[60, 100]] * 2
    assert [list(line.get_ydata()) for line in lines] == [[3, 5], [13, 15]]  # means of two seeds, 4 apart
    assert panels[0].get_yscale() == "linear"


def test_along_chart_labels_lines_by_setting_and_metric(draw_axes: DrawAxes) -> None:
    both = {"loss": "now", "best": "at best"}
    one, several = (
        Plot(kind="along", title="T", figures=both, settings=settings, log=True) for settings in (["ripplevec"], [])
    )
    legend, panel, _ = draw_axes(one, RULES, along_metrics)
    assert names(legend) == ["now", "at best"]
    assert panel.get_yscale() == "log"
    assert len({line.get_color() for line in panel.get_lines()}) == 2
    legend, *_ = draw_axes(several, RULES, along_metrics)
    assert names(legend) == ["rule paper: now", "rule paper: at best", "ripplevec: now", "ripplevec: at best"]


def test_along_chart_metric_without_percentages_is_horizontal(draw_axes: DrawAxes) -> None:
    def with_constant(setting: str, dataset: str, seed: int) -> dict[str, float]:
        return along_metrics(setting, dataset, seed) | {"retraining": 4.0}

    plot = Plot(
        kind="along",
        title="T",
        figures={"loss": "loss", "retraining": "retraining"},
        settings=["ripplevec"],
        x="train share (%)",
    )
    _, panel, _ = draw_axes(plot, RULES, with_constant)
    varying, constant = panel.lines
    assert list(constant.get_xdata()) == list(varying.get_xdata())
    assert set(constant.get_ydata()) == {4.0}
    assert panel.get_xlabel() == "train share (%)"


def test_along_chart_keeps_line_color_if_others_are_missing(draw_axes: DrawAxes) -> None:
    def some(setting: str, dataset: str, seed: int) -> dict[str, float]:
        return along_metrics(setting, dataset, seed) if dataset == "cora" or setting == "ripplevec" else {}

    legend, cora, blog = draw_axes(Plot(kind="along", title="T", figure="loss"), RULES, some)
    assert names(legend) == list(RULES)
    assert [line.get_color() for line in blog.get_lines()] == [cora.get_lines()[1].get_color()]


def test_along_chart_log_axis_covers_whole_decades(draw_axes: DrawAxes) -> None:
    plot = Plot(kind="along", title="T", figure="loss", log=True)
    panel = draw_axes(plot, ("rule paper",), lambda *_: {"loss@60": 0.03, "loss@100": 0.2})[1]
    assert panel.get_ylim() == (0.01, 1.0)
    nothing = draw_axes(plot, ("rule paper",), lambda *_: {"loss@60": 0.0})[1]
    assert nothing.get_yscale() == "linear"


QUANTILES = {"spread@0": 0.0, "spread@50": 0.25, "spread@100": 1.0}


@pytest.mark.parametrize(("log", "points"), [(False, [(0, 0), (0.25, 50), (1, 100)]), (True, [(0.25, 50), (1, 100)])])
def test_spread_chart_draws_percentages_over_values(
    draw_axes: Callable[..., list[Any]], log: bool, points: list[tuple[float, float]]
) -> None:
    plot = Plot(kind="spread", title="T", figures={"spread": "deviation"}, x="squared", log=log)
    legend, panel, _ = draw_axes(plot, ("rule paper",), lambda *_: QUANTILES)
    (line,) = panel.get_lines()
    assert list(zip(line.get_xdata(), line.get_ydata(), strict=True)) == points
    assert panel.get_xlabel() == "squared"
    assert [text.get_text() for text in legend.get_legend().get_texts()] == ["deviation"]


SWEEP_PLOT = Plot(kind="sweep", title="Depth", figure="micro", x="depth D")


@pytest.mark.parametrize(
    ("values", "x", "scale"),
    [
        (("2", "0", "1"), [0, 1, 2], "linear"),
        (("0.1", "1", "100"), [0.1, 1, 100], "log"),
        (("0", "1", "100"), [0, 1, 2], "linear"),
        (("none", "1", "inf"), [0, 1, 2], "linear"),
    ],
)
def test_sweep_chart_places_values_on_axis(
    draw_axes: Callable[..., list[Any]], values: tuple[str, ...], x: list[float], scale: str
) -> None:
    (axes,) = draw_axes(SWEEP_PLOT, ("k: 7", *(f"depth D: {value}" for value in values)), lambda *_: {"micro": 1.0})
    assert [line.get_label() for line in axes.get_lines()] == ["cora", "blog"]
    assert list(axes.get_lines()[0].get_xdata()) == x
    assert {label.get_text() for label in axes.get_xticklabels()} == set(values)
    assert (axes.get_xscale(), axes.get_xlabel()) == (scale, "depth D")


GROWTH_PLOT = Plot(kind="growth", title="Growth", figures={"us": "arrival", "start": "start"})


def test_growth_chart_shows_exponent_in_legend(draw_axes: Callable[..., list[Any]]) -> None:
    sizes = {"1,000 vertices": 1e3, "10,000 vertices": 1e4, "1,000,000 vertices": 1e6}

    def figures(setting: str, *_: object) -> dict[str, float]:
        small = {"start": 5.0} if setting == "1,000 vertices" else {}
        return {"us": 3 * sizes[setting] ** 0.25, **small}

    (axes,) = draw_axes(GROWTH_PLOT, tuple(sizes), figures, datasets=["cora"])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["arrival: n^0.25", "start"]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert list(axes.get_lines()[1].get_xdata()) == [1e3, 1e4, 1e6]


def test_bars_chart_annotates_values(draw_axes: DrawAxes) -> None:
    seconds = {"ripplevec": 0.01234, "NetMF": 1234.5, "NetMF, tuned": 0.0}

    def figures(setting: str, *_: object) -> dict[str, float]:
        return {"seconds": seconds[setting]} if setting in seconds else {}

    axes = draw_axes(Plot(kind="bars", title="Time", figure="seconds", log=True), METHODS, figures)[0]
    assert axes.get_xscale() == "log"
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["ripplevec", "NetMF"], "no bar for 0 on such a scale"
    assert [text.get_text() for text in axes.texts] == ["0.0123", "1,234"]
    assert [bar.get_width() for bar in axes.patches] == [0.01234, 1234.5]


def test_bars_chart_with_linear_scale_includes_zero(draw_axes: DrawAxes) -> None:
    above = {"ripplevec": 4.0, "NetMF": 0.0, "LINE": -2.0}
    plot = Plot(kind="bars", title="Above", figure="above")
    axes = draw_axes(plot, tuple(above), lambda setting, *_: {"above": above[setting]})[0]
    assert [text.get_text() for text in axes.texts] == ["4.00", "0", "-2.00"]
    assert (axes.get_xscale(), axes.get_xlim()) == ("linear", (-2, 5))


def test_bars_chart_of_one_setting_draws_bar_per_metric(draw_axes: DrawAxes) -> None:
    several = {"own": "ripplevec", "walk": "DeepWalk", "never": "GraphWave"}
    plot = Plot(kind="bars", title="Time", settings=["LINE"], figures=several)

    def figures(setting: str, *_: object) -> dict[str, float]:
        return {"own": 1.0 + (setting == "LINE"), "walk": 30.0}

    axes = draw_axes(plot, METHODS, figures)[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ripplevec", "DeepWalk"]
    assert [bar.get_width() for bar in axes.patches] == [2.0, 30.0]
