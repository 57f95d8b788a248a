from __future__ import annotations

import math

import pytest
from matplotlib.figure import Figure

from ripplevec.lab.experiments.plots.panels import Point, draw_line, set_log_scale, summarize_points


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
