from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripplevec.lab.experiments.plots import draw_panels, render_svg, save_plot
from ripplevec.lab.experiments.plots.drawing import CHARTS, draw_plot
from ripplevec.lab.experiments.record import Record
from ripplevec.lab.experiments.study import PLOT_KINDS, Plot, Study

MakeStudy = Callable[..., tuple[Study, Record]]


@pytest.fixture
def shares(make_study: MakeStudy) -> tuple[Study, Record]:
    plots = {"shares": Plot(kind="shares", title="Micro-F1", figure="micro")}
    return make_study(("ripplevec", "NetMF, tuned"), lambda *_: {"micro@10": 1.0, "micro@50": 2.0}, plots=plots)


def test_charts_cover_all_plot_kinds() -> None:
    assert set(CHARTS) == set(PLOT_KINDS)


@pytest.mark.parametrize("kind", PLOT_KINDS)
def test_draw_plot_without_results_shows_placeholder(draw_axes: Callable[..., list[Any]], kind: str) -> None:
    plot = Plot(kind=kind, title="T", figure="micro", figures={"micro": "M"} if kind == "growth" else {}, x="depth D")
    (axes,) = draw_axes(plot, ("ripplevec", "LINE"), lambda *_: {})
    assert axes.texts[0].get_text() == "nothing measured yet"


def test_save_plot_of_same_record_gives_same_file(shares: tuple[Study, Record], tmp_path: Path) -> None:
    study, record = shares
    path = save_plot(study, "shares", record, tmp_path)
    first = path.read_bytes()
    assert path == tmp_path / "figures" / "s-shares.svg"
    assert save_plot(study, "shares", record, tmp_path).read_bytes() == first
    assert ">NetMF, tuned</text>" in first.decode()  # words are words, not shapes


def test_draw_plot_long_title_fits_in_the_picture(make_study: MakeStudy) -> None:
    plots = {"shares": Plot(kind="shares", title="Micro-F1 (%) by the share of " + "many " * 30, figure="micro")}
    study, record = make_study(("ripplevec",), lambda *_: {"micro@10": 1.0, "micro@50": 2.0}, plots=plots)
    figure = draw_plot(study, "shares", record)
    figure.draw_without_rendering()
    (title,) = figure.texts
    assert figure.bbox.x0 <= title.get_window_extent().x0 < title.get_window_extent().x1 <= figure.bbox.x1


def test_draw_panels_svgs_have_distinct_ids(shares: tuple[Study, Record]) -> None:
    study, record = shares
    figures = draw_panels(study, "shares", record)
    ids = [re.findall(r' id="([^"]+)"', render_svg(figure, str(place))) for place, figure in enumerate(figures)]
    assert len(ids) == 3
    assert all(ids)
    everything = [name for of in ids for name in of]
    assert len(set(everything)) == len(everything)
