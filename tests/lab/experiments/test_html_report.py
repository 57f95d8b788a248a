from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ripplevec.lab.experiments.html_report import render_html
from ripplevec.lab.experiments.record import Record, configuration_key, describe_environment
from ripplevec.lab.experiments.report import build_table, collect_results
from ripplevec.lab.experiments.study import Plot, Study

pytestmark = pytest.mark.usefixtures("calls")  # the fake measurement

LEVELS = {"ripplevec": 80.04, "A & B": 80.0, "<last>": 70.0}


def make_study(tmp_path: Path, name: str = "quality") -> tuple[Study, Record]:
    study = Study(
        name=name,
        title="Worth <1>",
        about="Read *this* and `x < y`.\n\nThen that.",
        datasets=["cora", "blog"],
        seeds=[0, 1],
        parameters={"kind": "fake", "start": 0.5},
        settings={setting: {"number": number} for number, setting in enumerate(LEVELS)},
        figures={"micro": "Micro-F1 (%)", "nmi": "NMI (%)", "seconds": "Seconds"},
        beside={"paper": {"A & B": {"nmi": {"cora": 16.48}}}},
        plots={"micro": Plot(kind="shares", title="Micro & shares", figure="micro")},
    )
    record = Record(tmp_path / "quality.json", environments={"here": describe_environment()})
    for setting, dataset, configuration in study.trials():
        if (setting, dataset) != ("<last>", "blog"):
            level = LEVELS[setting]
            figures = {"micro": level, "micro@10": level - 9, "micro@50": level, "nmi": level / 2, "seconds": level}
            record.trials[configuration_key(configuration)] = {"figures": figures, "environment": "here"}
    return study, record


class ParsedPage(HTMLParser):
    """The visible content of a page: tables, which of them are open, texts, links and ids; checks that tags close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.is_open: list[bool] = []
        self.texts: list[tuple[str, str]] = []
        self.links: list[str | None] = []
        self.ids: list[str | None] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self.ids += [values["id"]] if "id" in values else []
        if tag not in ("meta", "br", "link"):
            self.open.append(tag)
        if tag == "a":
            self.links.append(values["href"])
        elif tag == "details":
            self.is_open.append("open" in values)
        elif tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.ids += [value for name, value in attributes if name == "id"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))
        if "td" in self.open or "th" in self.open:
            self.tables[-1][-1][-1] += data


def test_render_html_has_linked_section_per_study(tmp_path: Path) -> None:
    parsed = ParsedPage(render_html([make_study(tmp_path), make_study(tmp_path, "again")], "All <of> it", "Begin."))
    assert parsed.links == ["#quality", "#again"]
    assert [name for name in parsed.ids if name in ("quality", "again")] == ["quality", "again"]
    assert len(set(parsed.ids)) == len(parsed.ids)
    assert parsed.open == []


def test_render_html_escapes_texts(tmp_path: Path) -> None:
    texts = ParsedPage(render_html([make_study(tmp_path)], "All <of> it", "Begin & end.")).texts
    for expected in [
        ("h1", "All <of> it"),
        ("p", "Begin & end."),
        ("h2", "Worth <1>"),
        ("em", "this"),
        ("code", "x < y"),
        ("p", "Then that."),
        ("figcaption", "Micro & shares"),
        ("text", "<last>"),
    ]:
        assert expected in texts


def test_render_html_tables_equal_report_tables(tmp_path: Path) -> None:
    study, record = make_study(tmp_path)
    tables = ParsedPage(render_html([(study, record)], "All", "")).tables
    assert len(tables) == len(study.figures)  # none for a figure at a train share
    for figure, (head, *rows) in zip(study.figures, tables, strict=True):
        assert head == ["", "cora", "blog"]
        expected = build_table(study, collect_results(study, record), figure)
        texts = {
            row: [str(entry).replace("(", "").replace(")", "") for entry in entries]
            for row, entries in expected.items()
        }
        assert {row: list(entries) for row, *entries in rows} == texts
    assert tables[1][2] == ["A & B", "40.0 ± 0.0 paper 16.48", "40.0 ± 0.0"]
    assert tables[1][3] == ["<last>", "35.0 ± 0.0", "–"]


def test_render_html_folds_table_of_plotted_metric(tmp_path: Path) -> None:
    assert ParsedPage(render_html([make_study(tmp_path)], "All", "")).is_open == [False, True, True]


def test_render_html_folds_tables_of_shares_and_multi_metric_plots(tmp_path: Path) -> None:
    study, record = make_study(tmp_path)
    both = Plot(kind="bars", title="Both", figures={"nmi": "NMI", "seconds": "time"})
    figures = {"micro@10": "At 10 %", "nmi": "NMI", "nmi@10": "NMI at 10 %", "macro@10": "Macro-F1 at 10 %"}
    study = replace(study, figures=figures, beside={}, plots=study.plots | {"both": both})
    assert ParsedPage(render_html([(study, record)], "All", "")).is_open == [False, False, False, True]


def test_render_html_emphasizes_highest_score_and_equal_texts(tmp_path: Path) -> None:
    bold = [text for tag, text in ParsedPage(render_html([make_study(tmp_path)], "All", "")).texts if tag == "b"]
    assert bold == ["80.0 ± 0.0"] * 4 + ["40.0 ± 0.0"] * 4  # micro and NMI; of seconds nothing is known


def test_render_html_is_self_contained(tmp_path: Path) -> None:
    text = render_html([make_study(tmp_path)], "All", "")
    assert text.count("<svg") == 3  # the legend and two data sets
    assert set(re.findall(r"https?://[^\"'\s<]+", text)) == {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert not re.search(r"<(script|img|iframe)|@import|url\((?!#)", text)
    assert re.findall("<link.*", text) == ['<link rel="icon" href="data:,">']  # else browsers request /favicon.ico


def test_render_html_lists_origin_of_results(tmp_path: Path) -> None:
    texts = [text for tag, text in ParsedPage(render_html([make_study(tmp_path)], "All", "")).texts if tag == "li"]
    assert len(texts) == 1
    assert re.match(r"commit \w+.* on \d+ × .*numpy", texts[0])


def test_render_html_star_of_a_formula_is_no_emphasis(tmp_path: Path) -> None:
    study, record = make_study(tmp_path)
    page = render_html([(replace(study, about="The *deviation* |f − f*|². *Relative* ones."), record)], "All", "Hi")
    assert "The <em>deviation</em> |f − f*|². <em>Relative</em> ones." in page
