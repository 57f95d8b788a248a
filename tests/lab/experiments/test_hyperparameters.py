from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ripplevec.errors import InvalidValueError
from ripplevec.lab.experiments.hyperparameters import TunedSettings, check_tuned
from ripplevec.lab.experiments.measurements.base import TrialResult
from ripplevec.lab.experiments.record import Record

TRIED = {"kind": "validation", "dataset": "cora", "seed": 0, "start": 0.5, "method": "deepwalk", "dim": 90}
WANTED = {"kind": "shares", "dataset": "cora", "seed": 3, "method": "deepwalk", "dim": 8, "tuned_by": "grid"}


GRID = [
    TRIED | own
    for own in (
        {"walks": 10},
        {"walks": 20, "window": 5},
        {"walks": 30},
        {"walks": 40, "dataset": "blog"},
        {"walks": 50, "dataset": "blog"},
        {"method": "netmf", "negatives": 5},
    )
]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return a folder with the record of a study `grid`, which also has a setting that the study no longer contains."""
    record = Record.read(tmp_path / "grid.json")

    def tried(own: dict[str, Any], score: float) -> None:
        record.add(TRIED | own, TrialResult({"validation_micro": score, "validation_macro": -score}, {}), 1.0, {})

    tried({"walks": 10}, 60.0)
    tried({"walks": 20, "window": 5}, 70.0)
    tried({"walks": 30}, 70.0)
    tried({"walks": 40, "dataset": "blog"}, 90.0)
    tried({"walks": 50, "dataset": "blog"}, 80.0)
    tried({"method": "netmf", "negatives": 5}, 0.0)
    tried({"walks": 60}, 99.0)
    return tmp_path


def test_tuned_settings_apply_best_and_first_of_equals(results: Path) -> None:
    choices = TunedSettings.read(results, {"grid": GRID})
    rest = {"kind": "shares", "dataset": "cora", "seed": 3, "method": "deepwalk", "dim": 90}
    assert choices.apply(WANTED) == {**rest, "walks": 20, "window": 5}
    assert choices.apply(WANTED | {"dataset": "blog"}) == {**rest, "dataset": "blog", "walks": 40}
    assert choices.apply(WANTED | {"method": "netmf"}) == {**rest, "method": "netmf", "negatives": 5}


def test_tuned_settings_keep_parameters_of_trial(results: Path) -> None:
    own = WANTED | {"shares": [0.5], "arrival_order": "index"}
    chosen = TunedSettings.read(results, {"grid": GRID}).apply(own)
    assert {name: chosen[name] for name in ("kind", "seed", "shares", "arrival_order")} == {
        "kind": "shares",
        "seed": 3,
        "shares": [0.5],
        "arrival_order": "index",
    }
    assert "start" not in chosen
    assert own["tuned_by"] == "grid", "the caller's mapping is not altered"


def test_tuned_settings_without_match_leave_configuration_unchanged(results: Path) -> None:
    plain = {name: value for name, value in WANTED.items() if name != "tuned_by"}
    assert TunedSettings.read(results, {"grid": GRID}).apply(plain) == plain
    for choices in (
        TunedSettings(),
        TunedSettings.read(results, {"grid": []}),
        TunedSettings.read(results / "else", {"grid": GRID}),
    ):
        assert choices.apply(WANTED) == WANTED
    for unknown in ({"dataset": "wiki"}, {"method": "line"}, {"tuned_by": "another"}):
        assert TunedSettings.read(results, {"grid": GRID}).apply(WANTED | unknown) == WANTED | unknown


def test_tuned_settings_ignore_incomplete_grid(results: Path) -> None:
    more = TunedSettings.read(results, {"grid": [*GRID, TRIED | {"walks": 70}]})
    assert more.apply(WANTED) == WANTED
    assert more.apply(WANTED | {"dataset": "blog"})["walks"] == 40, "where all have been tried there is one"


def test_check_tuned_without_setting_names_study_to_run(results: Path) -> None:
    check_tuned(TunedSettings.read(results, {"grid": GRID}).apply(WANTED))
    expected = r"all settings of deepwalk on cora \(run the study grid first\), got 'an incomplete one'"
    with pytest.raises(InvalidValueError, match=expected):
        check_tuned(WANTED)


def test_tuned_settings_from_study_without_validation_metric_raises(tmp_path: Path) -> None:
    Record.read(tmp_path / "quality.json").add(TRIED, TrialResult({"current_micro": 80.0}, {}), 1.0, {})
    with pytest.raises(InvalidValueError, match=r"tuned_by: expected a study .*validation_micro, got 'quality'"):
        TunedSettings.read(tmp_path, {"quality": [TRIED]})
