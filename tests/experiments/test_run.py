from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ripplet.errors import InvalidValueError
from ripplet.experiments import cells
from ripplet.experiments.record import Record
from ripplet.experiments.run import run
from ripplet.experiments.spec import load

Calls = list[dict[str, Any]]


@pytest.fixture
def record_file(tmp_path: Path) -> Path:
    return tmp_path / "small.json"


def test_all_cells_are_run_once_and_never_again(study_file: Path, record_file: Path, calls: Calls) -> None:
    study = load(study_file)
    assert run(study, Record.read(record_file)) == 8
    assert calls == [configuration for _, _, configuration in study.cells()]
    assert run(study, Record.read(record_file)) == 0
    assert len(calls) == 8


def test_only_some_cells_are_run_if_asked_and_the_rest_later(study_file: Path, record_file: Path, calls: Calls) -> None:
    study = load(study_file)
    assert run(study, Record.read(record_file), {"seed": "1", "setting": "double"}) == 2
    assert {(call["seed"], call["times"]) for call in calls} == {(1, 2)}
    assert run(study, Record.read(record_file)) == 6


def test_recorded_cells_are_run_again_if_asked(study_file: Path, record_file: Path, calls: Calls) -> None:
    study, record = load(study_file), Record.read(record_file)
    run(study, record)
    assert run(study, record, {"dataset": "cora"}, again=True) == 4
    assert len(record.cells) == 8


def test_what_was_done_before_an_error_is_kept(
    study_file: Path, record_file: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, whole = load(study_file), cells.KINDS["fake"]

    def fails_on_blog(configuration: dict[str, Any]) -> Any:
        if configuration["dataset"] == "blog":
            raise RuntimeError("power cut")
        return whole.run(configuration)

    monkeypatch.setitem(cells.KINDS, "fake", cells.Kind(whole.build, fails_on_blog))
    with pytest.raises(RuntimeError, match="power cut"):
        run(study, Record.read(record_file))
    monkeypatch.setitem(cells.KINDS, "fake", whole)
    assert run(study, Record.read(record_file)) == 7


def test_two_settings_that_are_the_same_are_run_once(study_file: Path, record_file: Path, calls: Calls) -> None:
    study_file.write_text(study_file.read_text().replace("{times: 2}", "{}"))
    assert run(load(study_file), Record.read(record_file)) == 4


def test_a_choice_of_no_cell_is_refused(study_file: Path, record_file: Path) -> None:
    with pytest.raises(InvalidValueError, match="only: expected values that some cell has"):
        run(load(study_file), Record.read(record_file), {"seed": "7"})
