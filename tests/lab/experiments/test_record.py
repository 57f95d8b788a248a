from __future__ import annotations

import json
from pathlib import Path

import pytest

from ripplevec.errors import FormatError
from ripplevec.lab.experiments import record as records
from ripplevec.lab.experiments.measurements import TrialResult
from ripplevec.lab.experiments.record import Record, configuration_key, describe_environment

HERE = {"commit": "abc", "machine": {"cpu": "a", "cores": 2}, "versions": {}, "modified": False}
RESULT = TrialResult({"score": 1.5}, {"dim": 4})


def test_record_added_trial_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "results" / "small.json"
    record = Record.read(path)
    assert {"seed": 0} not in record
    record.add({"seed": 0, "dim": 4}, RESULT, 2.5, HERE)
    again = Record.read(path)
    assert {"dim": 4, "seed": 0} in again
    assert again.metrics({"dim": 4, "seed": 0}) == {"score": 1.5}
    assert again.metrics({"dim": 4, "seed": 1}) is None
    (cell,) = again.trials.values()
    assert cell["seconds"] == 2.5
    assert cell["parameters"] == {"dim": 4}
    assert again.environments[cell["environment"]] == HERE
    assert [file.name for file in path.parent.iterdir()] == ["small.json"]


def test_record_add_replaces_trial_and_unused_environment(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    record = Record.read(path)
    record.add({"seed": 0}, RESULT, 1.0, HERE)
    record.add({"seed": 0}, TrialResult({"score": 9.0}, {}), 1.0, {**HERE, "commit": "def"})
    again = Record.read(path)
    assert again.metrics({"seed": 0}) == {"score": 9.0}
    assert [where["commit"] for where in again.environments.values()] == ["def"]


def test_record_write_failure_keeps_earlier_file(tmp_path: Path) -> None:
    record = Record.read(tmp_path / "small.json")
    record.add({"seed": 0}, RESULT, 1.0, HERE)
    with pytest.raises(TypeError):
        record.add({"seed": 1}, TrialResult({"score": object()}, {}), 1.0, HERE)  # type: ignore[dict-item]
    assert list(Record.read(record.path).trials) == [configuration_key({"seed": 0})]


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 1}', '{"format": 99, "cells": [], "environments": {}}'])
def test_record_read_of_other_file_raises(tmp_path: Path, text: str) -> None:
    path = tmp_path / "small.json"
    path.write_text(text)
    with pytest.raises(FormatError, match=r"small.json: expected .*Move the file away"):
        Record.read(path)
    assert path.read_text() == text


def test_describe_environment_lists_versions_and_machine() -> None:
    where = describe_environment()
    assert {"ripplevec", "python", "numpy", "numba"} <= where["versions"].keys()
    assert where["machine"]["cores"] >= 1
    assert where["machine"]["cpu"]
    assert "blas_threads" not in where, "processes beside this one have a number of their own"
    json.dumps(where)


def test_describe_environment_outside_repository_has_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "PACKAGE_FOLDER", tmp_path)
    where = describe_environment()
    assert where["commit"] is None
    assert where["modified"] is False
