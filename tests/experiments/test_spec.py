from __future__ import annotations

from pathlib import Path

import pytest

from ripplet.errors import FormatError, InvalidValueError
from ripplet.experiments.spec import load, matches

STUDIES = sorted((Path(__file__).parents[2] / "studies").glob("*.yaml"))


def test_cells_are_seeds_by_settings_by_data_sets(study_file: Path) -> None:
    cells = list(load(study_file).cells())
    assert len(cells) == 8
    assert cells[0] == ("plain", "cora", {"kind": "fake", "start": 0.5, "dataset": "cora", "seed": 0})
    assert cells[3][2] == {"kind": "fake", "start": 0.5, "times": 2, "dataset": "blog", "seed": 0}
    assert [configuration["seed"] for _, _, configuration in cells] == [0] * 4 + [1] * 4


def test_a_study_is_named_by_its_file_and_knows_what_stands_beside(study_file: Path) -> None:
    study = load(study_file)
    assert study.name == "small"
    assert study.known("score", "double", "cora") == {"floor": 3.5}
    assert study.known("score", "plain", "cora") == study.known("score", "double", "blog") == {}


def test_settings_can_be_left_out(study_file: Path) -> None:
    text = study_file.read_text()
    study_file.write_text(text[: text.index("settings:")] + "figures: {score: A score}\n")
    assert list(load(study_file).settings) == ["default"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("title:", "tittle:", "study: expected only title.*got 'tittle'"),
        ("figures: {score: A score}", "", "figures: expected to be given"),
        ("[0, 1]", "5", "seeds: expected a list, got 5"),
        ("[0, 1]", "[]", "seeds: expected at least one"),
        ("[0, 1]", "[0, true]", "seeds: expected whole numbers, got True"),
        ("kind: fake", "kind: faked", "kind: expected one of .*got 'faked'"),
        ("[cora, blog]", "[cora, blob]", "dataset: expected one of .*got 'blob'"),
        ("start: 0.5", "start: 1.5", "start: expected a share between 0 and 1, got 1.5"),
        ("times: 2", "wrong: 2", "parameters: expected those of the kind.*wrong"),
        ("floor: {double", "floor: {treble", "beside: expected one of plain, double, got 'treble'"),
        ("{cora: 3.5}", "{cara: 3.5}", "beside: expected one of cora, blog, got 'cara'"),
    ],
)
def test_mistakes_are_named_before_anything_runs(study_file: Path, old: str, new: str, expected: str) -> None:
    text = study_file.read_text()
    assert old in text
    study_file.write_text(text.replace(old, new))
    with pytest.raises(InvalidValueError, match=f"small.yaml: {expected}"):
        load(study_file)


@pytest.mark.parametrize("text", ["a: [", "just words"])
def test_what_is_no_study_is_refused(study_file: Path, text: str) -> None:
    study_file.write_text(text)
    with pytest.raises((FormatError, InvalidValueError), match=r"expected (YAML|a mapping)"):
        load(study_file)


def test_cells_are_chosen_by_values_as_they_are_typed() -> None:
    configuration = {"start": 0.5, "seed": 0, "dataset": "cora"}
    assert matches(configuration, "plain", {})
    assert matches(configuration, "plain", {"start": "0.5", "setting": "plain"})
    assert not matches(configuration, "plain", {"start": "0.5", "seed": "1"})
    assert not matches(configuration, "plain", {"depth": "1"})


def test_there_are_studies() -> None:
    assert {path.stem for path in STUDIES} >= {"nested", "quality", "tuning"}


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_study_of_the_project_can_be_run(path: Path) -> None:
    assert list(load(path).cells())
