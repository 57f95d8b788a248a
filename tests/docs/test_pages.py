"""Tests that numbers in the documentation match the records, links work, and examples give the stated results."""

from __future__ import annotations

import importlib
import json
import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ripplevec.lab.experiments.report import describe_extent
from ripplevec.lab.experiments.reproduce import Plan

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def test_readme_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _, example = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(example, "README.md", "exec"), names)
    assert names["vector"].shape == (16,)  # type: ignore[attr-defined]
    assert {"gus", "hal"} <= set(names["model"].ids)  # type: ignore[attr-defined]
    assert "1 new" in capsys.readouterr().out


def test_readme_first_example_runs_on_real_data(capsys: pytest.CaptureFixture[str]) -> None:
    if not os.environ.get("RIPPLEVEC_DATA"):
        pytest.skip("RIPPLEVEC_DATA is not set")
    example, _ = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(example, "README.md", "exec"), names)
    sizes = f"{names['cora'].vertices:,} papers and their {len(names['cora'].edges):,} citations"
    assert sizes in example
    assert names["vector"].any()
    assert len(eval(capsys.readouterr().out)) == 5


def test_home_page_begins_like_the_readme() -> None:
    home = (ROOT / "docs/index.md").read_text()
    for_whom = README.split("\n\n")[2]
    example = re.findall(r"```python\n.*?```", README, flags=re.DOTALL)[0]
    numbers = re.findall(r"<!-- in_numbers -->.*?<!-- /in_numbers -->", README, flags=re.DOTALL)[0]
    assert for_whom.startswith("It is for everyone")
    assert all(part in home for part in (for_whom, example, numbers))


def test_readme_states_the_supported_systems() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = [name.rpartition(" ")[2] for name in project["classifiers"] if re.search(r"Python :: 3\.\d", name)]
    assert f"Python {', '.join(versions[:-1])} and {versions[-1]}" in README
    assert "Linux ([macOS and Windows](docs/faq.md#which-systems-are-supported))" in README
    assert "### Which systems are supported?" in (ROOT / "docs/faq.md").read_text()
    assert project["license"] in README


def test_objective_example_reports_the_objective() -> None:
    page = (ROOT / "docs/objective.md").read_text()
    (example,) = [code for code in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL) if "import copy" in code]
    exec(compile(example, "objective.md", "exec"), names := {})
    objective = names["report"]["objective"]
    assert 0 < objective["least_total"] < objective["total"]
    assert objective["smoothness"] > 0


def test_links_in_pages_lead_to_existing_files() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_report_page_covers_all_recorded_trials() -> None:
    plan = Plan(ROOT / "results", quick=False)
    recorded = [(study, record) for study in plan.studies().values() if (record := plan.record(study)).trials]
    assert len(recorded) > 10
    sections = (ROOT / "results" / "report.html").read_text().split('<section id="')[1:]
    assert [section.partition('"')[0] for section in sections] == [study.name for study, _ in recorded]
    for section, (study, record) in zip(sections, recorded, strict=True):
        assert describe_extent(study, record) in section


def test_numbers_in_pages_match_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "studies")
    generator = importlib.import_module("fill_blocks")
    pages = {path.name: path.read_text() for path in generator.PAGES}
    for name, page in pages.items():
        assert generator.fill_blocks(page) == page, f"{name}: run python studies/fill_blocks.py"
    markers = re.findall(r"<!-- (/?)(\w+) -->", "".join(pages.values()))
    begun, ended = ([name for slash, name in markers if slash == kind] for kind in ("", "/"))
    assert begun == ended
    assert set(begun) == generator.BLOCKS.keys()


def test_find_strongest_compares_common_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "studies")
    comparison = importlib.import_module("blocks.comparison")
    scores = {"few": {0: 72.0}, "many": {0: 70.0, 1: 76.0, 2: 76.0}, "missing": {}}
    ours = {0: 73.0, 1: 79.0, 2: 79.0}  # the first split is the hardest
    rival = comparison.find_strongest(["few", "many"], "cora", lambda setting, name: scores[setting], ours)
    assert rival == ("few", 72.0, 1.0)
    assert (
        comparison.find_strongest(scores, "cora", lambda setting, name: scores[setting], ours).setting
        == comparison.MISSING
    )


def test_goal_on_a_tie_is_met_unless_it_must_be_above(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "studies")
    goals = importlib.import_module("blocks.goals")
    values = {"cora": 0.0, "wiki": 2.0}
    assert "met, 2 of 2 | lowest: Cora +0.0" in goals.Goal("level", 0, values, 2).row()
    assert "**missed**, 1 of 2 | not reached: Cora +0.0" in goals.Goal("above", 0, values, 2, above=True).row()


@pytest.fixture
def load_results(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the function that loads a study with its record."""
    monkeypatch.syspath_prepend(ROOT / "studies")
    return importlib.import_module("blocks.records").load_results


def test_paper_prose_about_readings_matches_the_records(load_results: Any) -> None:
    readings, grid = load_results("readings"), load_results("readings_grid")
    for setting in readings.study.settings:
        for name in readings.study.datasets:
            assert readings.mean("current_micro", setting, name) < readings.mean("arrival_micro", setting, name)
    for setting in grid.study.settings:
        for name in grid.study.datasets:
            half, most = (grid.mean(f"arrival_micro@{share}", setting, name) for share in (50, 90))
            assert (most > half) == (name != "citeseer" or "components separate" in setting), (setting, name)


def test_comparison_prose_about_systems_matches_the_records(load_results: Any) -> None:
    systems, tuned = load_results("systems"), load_results("systems_tuned")
    ours, olsn = (
        systems.by_seed("current_micro@50", setting, "wiki") for setting in ("ripplevec", "OLSN, updates every 8")
    )
    assert sum(olsn[seed] > ours[seed] for seed in ours) == 2

    def loses(method: str, metric: str, name: str) -> float:
        """Return how far the tuned method is below the best of its settings in study `systems`."""
        defaults = [setting for setting in systems.study.settings if setting.partition(",")[0] == method]
        best = max(systems.mean(f"{metric}_micro@50", setting, name) for setting in defaults)
        return best - tuned.mean(f"{metric}_micro@50", f"{method}, tuned", name)

    below = {("DepthLGP", metric, name) for metric in ("arrival", "current") for name in ("cora", "citeseer", "wiki")}
    below |= {("OLSN", "current", "wiki"), ("OLSN", "arrival", "cora"), ("OLSN", "arrival", "citeseer")}
    below |= {("DNE", "arrival", "cora"), ("DNE", "arrival", "citeseer"), ("DAMF", "arrival", "citeseer")}
    assert all(0 < loses(*case) < 2 for case in below)
    assert all(loses(method, "current", "citeseer") > 4 for method in ("DANE", "DHPE"))


def test_arrival_gap_prose_matches_the_record() -> None:
    record = json.loads((ROOT / "results/arrival_gap.json").read_text())
    text = (ROOT / "docs/comparison.md").read_text()
    for name in ("Cora", "CiteSeer"):
        new, whole = (
            record[f"{name.lower()}, exact, new classifier"] - record[f"{name.lower()}, arrival, {age} classifier"]
            for age in ("new", "old")
        )
        assert re.search(rf"{new:.1f} of {whole:.1f}(?: points)?\s+on {name}", text), name


def test_stability_verdict_ignores_one_slow_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "studies")
    records = importlib.import_module("blocks.records")
    monkeypatch.setattr(records.StudyResults, "values", lambda *_: [1.7, 0.4, 0.45])
    assert records.StudyResults(None, None, {}).median("paper@90", "one thread", "wiki") == 0.45


@pytest.mark.parametrize("page", sorted((ROOT / "docs/howto").glob("*.md")), ids=lambda page: page.stem)
def test_howto_ends_with_what_can_go_wrong(page: Path) -> None:
    assert re.findall(r"^## (.*)$", page.read_text(), re.MULTILINE)[-1] == "What can go wrong"


@dataclass(frozen=True)
class Term:
    """A term that pages explain: its noun, and the uses that mean the term if the noun is an ordinary word, too."""

    noun: str
    use: str = ""

    def uses(self, prose: str) -> list[int]:
        """Return the positions of all uses."""
        return [match.start() for match in re.finditer(rf"\b(?:{self.use or self.noun})\b", prose, re.IGNORECASE)]

    def explanations(self, prose: str) -> list[int]:
        """Return the positions where the term is set in italics or bold, or followed by an explanation."""
        forms = (form.format(self.noun) for form in EXPLAINED)
        return [match.start(1) for form in forms for match in re.finditer(form, prose, re.IGNORECASE)]

    def is_explained_in_time(self, prose: str) -> bool:
        """Whether the explanation comes with the second use at the latest; a single use needs none."""
        uses, explanations = self.uses(prose), self.explanations(prose)
        return len(uses) < 2 or (bool(explanations) and min(explanations) <= uses[1])


TERMS = {
    "anchor": Term("anchors?"),
    "arrival": Term("arrivals?"),
    "batch": Term("batch(?:es)?"),
    "start": Term("starts?", r"(?:the|an?|exact|new|our)\s+(?:spectral\s+)?starts?(?!\s+(?:of|with|page))"),
    "view": Term("views?"),
    "rule": Term("rules?"),
    "change": Term("changes?", r"the\s+changes|changes\s+(?:since|after|of\s+(?:the|recent|every|each))|change\s+feed"),
}
EXPLAINED = [
    r"(?<!\w)\*+({0})\*+(?!\w)",
    r"\bAn? ({0}) (?:is (?:an?|the)|of)\b",
    r"\b({0}),? (?:\(|is an?\b|are )",
    r"\ban? ({0}), (?:a|the)\b",
]
NO_PROSE = r"```.*?```|`[^`]*`|<!--.*?-->|!\[[^\]]*\]\([^)]*\)|\]\([^)]*\)|<details.*?</details>|^#.*?$"


def read_prose(page: Path) -> str:
    """Return the text of a page without headings, code, pictures and addresses of links."""
    return re.sub(NO_PROSE, "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def explained_pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", explained_pages(), ids=lambda page: page.relative_to(ROOT).with_suffix("").as_posix())
def test_page_explains_terms_at_the_second_use_at_the_latest(page: Path) -> None:
    prose = read_prose(page)
    assert [name for name, term in TERMS.items() if not term.is_explained_in_time(prose)] == []


def test_term_explained_after_its_second_use_is_found() -> None:
    anchor, start = TERMS["anchor"], TERMS["start"]
    assert anchor.is_explained_in_time("Since the last anchor. An *anchor* is a correction. Anchors run often.")
    assert not anchor.is_explained_in_time("Since the last anchor, no anchor ran. An *anchor* is a correction.")
    assert not anchor.is_explained_in_time("An anchor is due. An anchor is slow.")
    assert start.is_explained_in_time("Start the service at the start of the day, and start with a view.")
