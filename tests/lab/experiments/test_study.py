from __future__ import annotations

from pathlib import Path

import pytest

from ripplevec.errors import FormatError, InvalidValueError
from ripplevec.lab.experiments.measurements.base import TrialResult
from ripplevec.lab.experiments.record import Record
from ripplevec.lab.experiments.study import Plot, load_study, matches

STUDIES = sorted((Path(__file__).parents[3] / "studies").glob("*.yaml"))

GRIDS = """
grids:
  Walks: {times: [2, 3], length: [10, 40], depth: 1}
  Spectral: {dim: 9}
"""
PLOTS = """
plots:
  all: {kind: bars, title: Scores, figures: {score: a score}, log: true}
  one: {kind: sweep, title: Depth, figure: score, x: depth, settings: [double]}
"""
GRID = """
title: Settings
datasets: [cora, blog]
seeds: [0]
parameters: {kind: fake, start: 0.5, method: deepwalk}
grids: {DeepWalk: {times: [5, 6]}}
figures: {validation_micro: A score}
"""
QUICK = """
quick: {datasets: [blog], seeds: [1], settings: [plain], parameters: {start: 0.3}}
"""


def test_study_trials_combine_seeds_settings_and_data_sets(study_file: Path) -> None:
    trials = list(load_study(study_file).trials())
    assert len(trials) == 8
    assert trials[0] == ("plain", "cora", {"kind": "fake", "start": 0.5, "dataset": "cora", "seed": 0})
    assert trials[3][2] == {"kind": "fake", "start": 0.5, "times": 2, "dataset": "blog", "seed": 0}
    assert [configuration["seed"] for _, _, configuration in trials] == [0] * 4 + [1] * 4


def test_study_trials_respect_seeds_of_setting(study_file: Path) -> None:
    study_file.write_text(study_file.read_text().replace("{times: 2}", "{times: 2, seeds: [1]}"))
    trials = list(load_study(study_file).trials())
    assert [(setting, own["seed"]) for setting, dataset, own in trials if dataset == "cora"] == [
        ("plain", 0),
        ("plain", 1),
        ("double", 1),
    ]
    assert not any("seeds" in own for _, _, own in trials)


def test_load_study_takes_name_from_file_and_reference_values(study_file: Path) -> None:
    study = load_study(study_file)
    assert study.name == "small"
    assert study.reference_values("score", "double", "cora") == {"floor": 3.5}
    assert study.reference_values("score", "plain", "cora") == study.reference_values("score", "double", "blog") == {}


def test_load_study_without_settings_has_default_setting(study_file: Path) -> None:
    text = study_file.read_text()
    study_file.write_text(text[: text.index("settings:")] + "figures: {score: A score}\n")
    assert list(load_study(study_file).settings) == ["default"]


def test_load_study_expands_grids_to_all_combinations(study_file: Path) -> None:
    study_file.write_text(study_file.read_text() + GRIDS)
    settings = load_study(study_file).settings
    assert list(settings) == [
        "plain",
        "double",
        "Walks: times 2, length 10",
        "Walks: times 2, length 40",
        "Walks: times 3, length 10",
        "Walks: times 3, length 40",
        "Spectral",
    ]
    assert settings["Walks: times 3, length 10"] == {"times": 3, "length": 10, "depth": 1}
    assert settings["Spectral"] == {"dim": 9}


def test_load_study_does_not_expand_seeds_of_grid(study_file: Path) -> None:
    study_file.write_text(study_file.read_text() + "grids: {Walks: {times: [2, 3], seeds: [1]}}")
    assert load_study(study_file).settings["Walks: times 3"] == {"times": 3, "seeds": [1]}


def test_load_study_reads_plots(study_file: Path) -> None:
    study_file.write_text(study_file.read_text() + PLOTS)
    assert load_study(study_file).plots == {
        "all": Plot("bars", "Scores", figures={"score": "a score"}, log=True),
        "one": Plot("sweep", "Depth", figure="score", x="depth", settings=["double"]),
    }


def test_quick_version_reduces_study(study_file: Path) -> None:
    study_file.write_text(study_file.read_text() + PLOTS + QUICK)
    short = load_study(study_file).quick_version()
    assert short is not None
    assert [own for _, _, own in short.trials()] == [{"kind": "fake", "start": 0.3, "dataset": "blog", "seed": 1}]
    assert (short.name, short.figures, short.beside) == ("small", {"score": "A score"}, {})
    assert list(short.plots) == ["all"], "what is drawn of other settings alone is not drawn"


def test_quick_version_keeps_unnamed_parts(study_file: Path) -> None:
    study_file.write_text(study_file.read_text() + PLOTS + "quick: {seeds: [0]}")
    study = load_study(study_file)
    short = study.quick_version()
    assert short is not None
    assert (short.datasets, short.settings, short.plots) == (study.datasets, study.settings, study.plots)
    assert len(list(short.trials())) == 4


def test_quick_version_without_quick_section_is_none(study_file: Path) -> None:
    assert load_study(study_file).quick_version() is None


@pytest.mark.parametrize("where", ["{times: 2", "{kind: fake"], ids=["setting", "parameters"])
def test_load_study_applies_best_setting_per_data_set(study_file: Path, tmp_path: Path, where: str) -> None:
    study_file.write_text(study_file.read_text().replace(where, where + ", method: deepwalk, tuned_by: grid"))
    (study_file.parent / "grid.yaml").write_text(GRID)
    record = Record.read(tmp_path / "grid.json")
    orphan = {"kind": "fake", "start": 0.5, "method": "deepwalk", "dataset": "cora", "seed": 0, "times": 8}
    record.add(orphan, TrialResult({"validation_micro": 99.0}, {}), 1.0, {})
    scores = {("cora", 5): 60.0, ("cora", 6): 70.0, ("blog", 5): 50.0, ("blog", 6): 40.0}
    for _, dataset, own in load_study(study_file.parent / "grid.yaml").trials():
        assert any("tuned_by" in cell for _, _, cell in load_study(study_file, tmp_path).trials()), (
            "not before all are tried"
        )
        record.add(own, TrialResult({"validation_micro": scores[dataset, own["times"]]}, {}), 1.0, {})
    trials = list(load_study(study_file, tmp_path).trials())
    assert [own["times"] for setting, _, own in trials if setting == "double"] == [6, 5, 6, 5]
    assert not any("tuned_by" in own for _, _, own in trials)
    assert all(own["kind"] == "fake" for _, _, own in trials)


def test_load_study_with_unknown_tuned_setting_keeps_reference(study_file: Path, tmp_path: Path) -> None:
    study_file.write_text(study_file.read_text().replace("times: 2", "method: deepwalk, tuned_by: grid"))
    trials = list(load_study(study_file, tmp_path).trials())
    assert [own["tuned_by"] for setting, _, own in trials if setting == "double"] == ["grid"] * 4


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("title: A", "tittle: A", "study: expected only title.*got 'tittle'"),
        ("figures: {score: A score}", "", "figures is required"),
        ("[0, 1]", "5", "seeds: expected a list, got 5"),
        ("[0, 1]", "[]", "seeds: expected at least one"),
        ("[0, 1]", "[0, true]", "seeds: expected integers, got True"),
        ("kind: fake", "kind: faked", "kind: expected one of .*got 'faked'"),
        ("[cora, blog]", "[cora, blob]", "dataset: expected one of .*got 'blob'"),
        ("start: 0.5", "start: 1.5", "start: expected a share between 0 and 1, got 1.5"),
        ("times: 2", "wrong: 2", "parameters: expected those of the kind.*wrong"),
        ("times: 2", "wrong: 2, seeds: [1]", "parameters: expected those of the kind.*wrong"),
        ("times: 2", "seeds: [7]", "settings.double.seeds: expected one of 0, 1, got 7"),
        ("{times: 2}", "", "settings.double: expected a mapping of parameters, got None"),
        ("floor: {double", "floor: {treble", "beside: expected one of plain, double, got 'treble'"),
        ("{cora: 3.5}", "{cara: 3.5}", "beside: expected one of cora, blog, got 'cara'"),
        (
            "kind: bars",
            "kind: pie",
            "plots.kind: expected one of 'shares', 'bars', 'sweep', 'growth', 'along', 'spread', got 'pie'",
        ),
        ("title: Depth", "tittle: Depth", "plots: expected kind, title and the metrics to draw, got .*tittle"),
        ("settings: [double]", "settings: [treble]", "plots: expected one of plain, double, got 'treble'"),
        ("all: {", "none:\n  all: {", "plots: expected kind, title and the metrics to draw"),
        ("quick: {datasets", "quick: {dataset", "quick: expected one of datasets, .*got 'dataset'"),
        ("settings: [plain]", "settings: [plane]", "quick: expected one of plain, double, got 'plane'"),
        ("datasets: [blog]", "datasets: [blob]", "dataset: expected one of .*got 'blob'"),
        ("start: 0.3", "start: 3", "start: expected a share between 0 and 1, got 3"),
    ],
)
def test_load_study_with_mistake_names_it(study_file: Path, old: str, new: str, expected: str) -> None:
    text = study_file.read_text() + PLOTS + QUICK
    assert old in text
    study_file.write_text(text.replace(old, new))
    with pytest.raises(InvalidValueError, match=f"small.yaml: {expected}"):
        load_study(study_file)


@pytest.mark.parametrize("text", ["a: [", "just words"])
def test_load_study_of_invalid_yaml_raises(study_file: Path, text: str) -> None:
    study_file.write_text(text)
    with pytest.raises((FormatError, InvalidValueError), match=r"expected (YAML|a mapping)"):
        load_study(study_file)


def test_matches_compares_values_as_text() -> None:
    configuration = {"start": 0.5, "seed": 0, "dataset": "cora"}
    assert matches(configuration, "plain", {})
    assert matches(configuration, "plain", {"start": "0.5", "setting": "plain"})
    assert not matches(configuration, "plain", {"start": "0.5", "seed": "1"})
    assert not matches(configuration, "plain", {"depth": "1"})


def test_repository_contains_expected_studies() -> None:
    assert {path.stem for path in STUDIES} >= {"classification", "grid", "nested", "quality", "time"}


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_load_study_accepts_every_study_of_repository(path: Path) -> None:
    assert list(load_study(path).trials())
