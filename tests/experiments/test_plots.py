from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripplet.errors import MissingExtraError
from ripplet.experiments.plots import draw, draw_apart, save, svg
from ripplet.experiments.record import Record, key_of
from ripplet.experiments.spec import Plot, Study

pytestmark = pytest.mark.usefixtures("calls")  # the kind of cell that only counts

PLOTS = {
    "shares": Plot(kind="shares", title="Micro-F1", figure="micro"),
    "bars": Plot(kind="bars", title="Time", figure="seconds", log=True),
    "sweep": Plot(kind="sweep", title="Depth", figure="micro", x="depth D"),
    "growth": Plot(kind="growth", title="Growth", figures={"us": "arrival", "start": "start"}),
}
METHODS = ("ripplet", "NetMF", "NetMF, tuned", "LINE")


def made(
    tmp_path: Path, settings: tuple[str, ...], figures: Callable[[str, str, int], dict[str, float]], **more: Any
) -> tuple[Study, Record]:
    """A study of these settings, and a record of what `figures` says of a setting, a data set and a seed."""
    own = {setting: {"number": number} for number, setting in enumerate(settings)}
    given: dict[str, Any] = {"datasets": ["cora", "blog"], "seeds": [0, 1], "plots": PLOTS} | more
    parameters = {"kind": "fake", "start": 0.5}
    study = Study(name="s", title="T", parameters=parameters, settings=own, figures={"micro": "M"}, **given)
    record = Record(tmp_path / "s.json")
    for setting, dataset, configuration in study.cells():
        if found := figures(setting, dataset, configuration["seed"]):
            record.cells[key_of(configuration)] = {"configuration": configuration, "figures": found}
    return study, record


def over_shares(setting: str, dataset: str, seed: int) -> dict[str, float]:
    level = 10.0 * METHODS.index(setting) + 4 * seed
    return {"micro": 1.0, **{f"micro@{share}": level + share for share in (90, 10, 50)}, "other@10": 1.0}


def axes_of(found: tuple[Study, Record], name: str) -> list[Any]:
    study, record = found
    return draw(study, name, record).axes


def lines_of(axes: Any) -> list[Any]:
    return [line for line in axes.get_lines() if len(line.get_xdata())]


def test_a_line_per_setting_goes_over_the_train_shares_of_every_data_set(tmp_path: Path) -> None:
    _, *panels = axes_of(made(tmp_path, METHODS, over_shares), "shares")
    assert [axes.get_title() for axes in panels] == ["cora", "blog"]
    lines = lines_of(panels[0])
    assert list(lines[0].get_xdata()) == [10, 50, 90]
    assert [list(line.get_ydata()) for line in lines] == [[12 + up, 52 + up, 92 + up] for up in (0, 10, 20, 30)]
    band = panels[0].collections[0].get_paths()[0].get_extents()
    assert (round(band.ymin, 2), round(band.ymax, 2)) == (9.17, 94.83)  # ± the deviation of two seeds, 4 apart


def test_ours_is_bold_and_in_front_and_a_family_has_one_colour(tmp_path: Path) -> None:
    legend, panel, _ = axes_of(made(tmp_path, METHODS, over_shares), "shares")
    assert [text.get_text() for text in legend.get_legend().get_texts()] == list(METHODS)
    ours, netmf, tuned, line = lines_of(panel)
    assert ours.get_linewidth() > 2 * netmf.get_linewidth()
    assert ours.get_zorder() > netmf.get_zorder()
    assert netmf.get_color() == tuned.get_color() != line.get_color()
    assert (netmf.get_linestyle(), tuned.get_linestyle()) == ("-", "--")


def test_a_plot_may_show_some_of_the_settings_in_the_colours_of_all(tmp_path: Path) -> None:
    some = Plot(kind="shares", title="Some", figure="micro", settings=["LINE"])
    study, record = made(tmp_path, METHODS, over_shares, plots={**PLOTS, "some": some})
    everything, chosen = (draw(study, name, record).axes[1] for name in ("shares", "some"))
    (line,) = lines_of(chosen)
    assert line.get_color() == lines_of(everything)[3].get_color()


def test_only_what_was_measured_is_drawn(tmp_path: Path) -> None:
    def some(setting: str, dataset: str, seed: int) -> dict[str, float]:
        return over_shares(setting, dataset, seed) if (setting, dataset, seed) == ("LINE", "blog", 1) else {}

    legend, panel = axes_of(made(tmp_path, METHODS, some), "shares")
    assert [text.get_text() for text in legend.get_legend().get_texts()] == ["LINE"]
    assert panel.get_title() == "blog"


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_of_nothing_says_so(tmp_path: Path, name: str) -> None:
    (axes,) = axes_of(made(tmp_path, METHODS, lambda *_: {}), name)
    assert axes.texts[0].get_text() == "nothing measured yet"


def test_bars_bear_their_values(tmp_path: Path) -> None:
    seconds = {"ripplet": 0.01234, "NetMF": 1234.5, "NetMF, tuned": 0.0}
    found = made(tmp_path, METHODS, lambda setting, *_: {"seconds": seconds[setting]} if setting in seconds else {})
    axes = axes_of(found, "bars")[0]
    assert axes.get_xscale() == "log"
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "ripplet",
        "NetMF",
    ]  # no bar for 0 on such a scale
    assert [text.get_text() for text in axes.texts] == ["0.0123", "1,234"]
    assert [bar.get_width() for bar in axes.patches] == [0.01234, 1234.5]


def test_several_figures_of_one_setting_have_a_bar_each(tmp_path: Path) -> None:
    plot = Plot(
        kind="bars",
        title="Time",
        settings=["LINE"],
        figures={"own": "ripplet", "walk": "DeepWalk", "never": "GraphWave"},
    )

    def figures(setting: str, *_: object) -> dict[str, float]:
        return {"own": 1.0 + (setting == "LINE"), "walk": 30.0}

    axes = axes_of(made(tmp_path, METHODS, figures, plots={"bars": plot}), "bars")[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ripplet", "DeepWalk"]
    assert [bar.get_width() for bar in axes.patches] == [2.0, 30.0]


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
    tmp_path: Path, values: tuple[str, ...], x: list[float], scale: str
) -> None:
    settings = ("k: 7", *(f"depth D: {value}" for value in values))
    (axes,) = axes_of(made(tmp_path, settings, lambda *_: {"micro": 1.0}), "sweep")
    assert [line.get_label() for line in axes.get_lines()] == ["cora", "blog"]
    assert list(axes.get_lines()[0].get_xdata()) == x
    assert {label.get_text() for label in axes.get_xticklabels()} == set(values)
    assert (axes.get_xscale(), axes.get_xlabel()) == (scale, "depth D")


def test_growth_has_its_exponent_in_the_legend(tmp_path: Path) -> None:
    sizes = {"1,000 vertices": 1e3, "10,000 vertices": 1e4, "1,000,000 vertices": 1e6}

    def figures(setting: str, dataset: str, seed: int) -> dict[str, float]:
        small = {"start": 5.0} if setting == "1,000 vertices" else {}
        return {"us": 3 * sizes[setting] ** 0.25, **small}

    (axes,) = axes_of(made(tmp_path, tuple(sizes), figures, datasets=["cora"]), "growth")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["arrival: n^0.25", "start"]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert list(axes.get_lines()[1].get_xdata()) == [1e3, 1e4, 1e6]


def test_the_same_record_gives_the_same_file(tmp_path: Path) -> None:
    study, record = made(tmp_path, METHODS, over_shares)
    path = save(study, "shares", record, tmp_path)
    first = path.read_bytes()
    assert path == tmp_path / "figures" / "s-shares.svg"
    assert save(study, "shares", record, tmp_path).read_bytes() == first
    assert ">NetMF, tuned</text>" in first.decode()  # words are words, not shapes


def test_pictures_in_one_page_have_no_id_in_common(tmp_path: Path) -> None:
    study, record = made(tmp_path, METHODS, over_shares)
    figures = draw_apart(study, "shares", record)
    ids = [re.findall(r' id="([^"]+)"', svg(figure, str(place))) for place, figure in enumerate(figures)]
    assert len(ids) == 3
    assert all(ids)
    everything = [name for of in ids for name in of]
    assert len(set(everything)) == len(everything)


def test_drawing_needs_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=re.escape("ripplet[eval]")):
        axes_of(made(tmp_path, METHODS, over_shares), "shares")
