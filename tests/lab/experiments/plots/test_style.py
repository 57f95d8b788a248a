from __future__ import annotations

import math
import re
import sys

import matplotlib
import pytest
from matplotlib.figure import Figure

from ripplevec.errors import MissingExtraError
from ripplevec.lab.experiments.plots.style import (
    BLACK,
    COLORS,
    MARKERS,
    Point,
    assign_styles,
    draw_line,
    figure_style,
    numbered_style,
    render_svg,
    set_log_scale,
    summarize_points,
)


def test_assign_styles_gives_family_one_color_and_ripplevec_black() -> None:
    styles = assign_styles(["NetMF", "ripplevec", "NetMF, tuned", "ripplevec, one view", "LINE"])
    assert styles["NetMF"].color == styles["NetMF, tuned"].color != styles["LINE"].color
    assert (styles["NetMF"].dashes, styles["NetMF, tuned"].dashes) == ("-", "--")
    assert [name for name, style in styles.items() if style.is_ripplevec] == ["ripplevec", "ripplevec, one view"]
    assert {style.color for style in styles.values() if style.is_ripplevec} == {BLACK}
    assert (styles["ripplevec"].dashes, styles["ripplevec, one view"].dashes) == ("-", ":")


def test_numbered_style_is_unique_for_many_lines() -> None:
    many = len(COLORS) * len(MARKERS)
    assert len({(style["color"], style["marker"]) for style in map(numbered_style, range(many))}) == many


def lines() -> str:
    with figure_style() as create_figure:
        figure = create_figure(3, 2)
        figure.add_subplot().plot([0, 1], [0, 1 / 3], marker="o", label="<us>")
        figure.axes[0].legend()
    return render_svg(figure, "salt")


def test_figure_style_overrides_and_restores_user_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = lines()
    monkeypatch.setitem(matplotlib.rcParams, "lines.linewidth", 17.0)
    monkeypatch.setitem(matplotlib.rcParams, "font.size", 30.0)
    assert lines() == ours
    assert matplotlib.rcParams["lines.linewidth"] == 17.0


def test_render_svg_returns_minified_element_with_text() -> None:
    text = lines()
    assert text.startswith("<svg")
    assert text.endswith("</svg>\n")
    assert ">&lt;us&gt;</text>" in text
    assert not re.search(r' (?:d|x|y|transform)="[^"]*\.\d{3}', text)
    ids, referred = re.findall(r' id="([^"]+)"', text), re.findall(r'(?:href="|url\()#([^")]+)', text)
    assert set(ids) == set(referred)
    assert ids


def test_figure_style_without_matplotlib_names_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[eval\]"), figure_style():
        pass


def test_summarize_points_averages_finite_values() -> None:
    found = summarize_points([(1, [2.0, 4.0]), (2, []), (3, [5.0, math.nan]), (4, [math.inf])])
    assert found == [Point(1.0, 3.0, pytest.approx(math.sqrt(2))), Point(3.0, 5.0, 0.0)]


@pytest.mark.parametrize(("deviation", "bands"), [(0.5, 1), (0.0, 0)])
def test_draw_line_adds_band_for_nonzero_deviation(deviation: float, bands: int) -> None:
    axes = Figure().add_subplot()
    draw_line(axes, [Point(0, 1, deviation), Point(1, 2, deviation)], {"color": "#123456"}, band_opacity=0.1)
    assert list(axes.get_lines()[0].get_ydata()) == [1, 2]
    assert len(axes.collections) == bands


def test_set_log_scale_formats_plain_numbers() -> None:
    axes = Figure().add_subplot()
    set_log_scale(axes, "y")
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")
    written = axes.yaxis.get_major_formatter()
    assert [written(value, 0) for value in (0.001, 1.0, 1e6)] == ["0.001", "1", "1,000,000"]
