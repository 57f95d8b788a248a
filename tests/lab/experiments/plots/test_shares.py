from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ripplevec.lab.experiments.study import Plot

PLOT = Plot(kind="shares", title="Micro-F1", figure="micro")
METHODS = ("ripplevec", "NetMF", "NetMF, tuned", "LINE")

Drawn = Callable[..., list[Any]]


def over_shares(setting: str, dataset: str, seed: int) -> dict[str, float]:
    level = 10.0 * METHODS.index(setting) + 4 * seed
    return {"micro": 1.0, **{f"micro@{share}": level + share for share in (90, 10, 50)}, "other@10": 1.0}


def test_a_line_per_setting_goes_over_the_train_shares_of_every_data_set(drawn: Drawn) -> None:
    _, *panels = drawn(PLOT, METHODS, over_shares)
    assert [axes.get_title() for axes in panels] == ["cora", "blog"]
    lines = panels[0].get_lines()
    assert list(lines[0].get_xdata()) == [10, 50, 90]
    assert [list(line.get_ydata()) for line in lines] == [[12 + up, 52 + up, 92 + up] for up in (0, 10, 20, 30)]
    band = panels[0].collections[0].get_paths()[0].get_extents()
    assert (round(band.ymin, 2), round(band.ymax, 2)) == (9.17, 94.83)  # ± the deviation of two seeds, 4 apart


def test_ours_is_bold_and_in_front_of_the_others(drawn: Drawn) -> None:
    legend, panel, _ = drawn(PLOT, METHODS, over_shares)
    names = legend.get_legend().get_texts()
    assert [text.get_text() for text in names] == list(METHODS)
    assert [text.get_fontweight() for text in names] == ["bold", "normal", "normal", "normal"]
    ours, *others = panel.get_lines()
    assert ours.get_linewidth() > 2 * max(line.get_linewidth() for line in others)
    assert ours.get_zorder() > max(line.get_zorder() for line in others)


def test_a_plot_may_show_some_of_the_settings_in_the_colors_of_all(drawn: Drawn) -> None:
    some = Plot(kind="shares", title="Some", figure="micro", settings=["LINE"])
    everything, chosen = (drawn(plot, METHODS, over_shares)[1].get_lines() for plot in (PLOT, some))
    assert [line.get_color() for line in chosen] == [everything[3].get_color()]


def test_only_what_was_measured_is_drawn(drawn: Drawn) -> None:
    def some(setting: str, dataset: str, seed: int) -> dict[str, float]:
        return over_shares(setting, dataset, seed) if (setting, dataset, seed) == ("LINE", "blog", 1) else {}

    legend, panel = drawn(PLOT, METHODS, some)
    assert [text.get_text() for text in legend.get_legend().get_texts()] == ["LINE"]
    assert panel.get_title() == "blog"
