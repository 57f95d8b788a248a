from __future__ import annotations

import re
import sys

import matplotlib
import pytest

from ripplevec.errors import MissingExtraError
from ripplevec.lab.experiments.plots.style import style, svg


def lines() -> str:
    with style() as figure_of:
        figure = figure_of(3, 2)
        figure.add_subplot().plot([0, 1], [0, 1 / 3], marker="o", label="<us>")
        figure.axes[0].legend()
    return svg(figure, "salt")


def test_the_style_is_ours_whatever_the_users_and_theirs_again_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = lines()
    monkeypatch.setitem(matplotlib.rcParams, "lines.linewidth", 17.0)
    monkeypatch.setitem(matplotlib.rcParams, "font.size", 30.0)
    assert lines() == ours
    assert matplotlib.rcParams["lines.linewidth"] == 17.0


def test_a_picture_is_one_slim_element_with_words_for_words() -> None:
    text = lines()
    assert text.startswith("<svg")
    assert text.endswith("</svg>\n")
    assert ">&lt;us&gt;</text>" in text
    assert not re.search(r' (?:d|x|y|transform)="[^"]*\.\d{3}', text)
    ids, referred = re.findall(r' id="([^"]+)"', text), re.findall(r'(?:href="|url\()#([^")]+)', text)
    assert set(ids) == set(referred)
    assert ids


def test_drawing_needs_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=re.escape("ripplevec[eval]")), style():
        pass
