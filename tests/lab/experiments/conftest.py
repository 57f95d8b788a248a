"""A study of eight trials with a fake measurement that takes no time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from threadpoolctl import threadpool_limits

from ripplevec.lab.experiments.measurements import MEASUREMENTS
from ripplevec.lab.experiments.measurements.base import Measurement, TrialResult, check_share

STUDY = """
title: A small study
about: Says little.
datasets: [cora, blog]
seeds: [0, 1]
parameters: {kind: fake, start: 0.5}
settings:
  plain: {}
  double: {times: 2}
figures: {score: A score}
beside:
  floor: {double: {score: {cora: 3.5}}}
"""


@pytest.fixture(autouse=True)
def one_thread_of_linear_algebra() -> Iterator[None]:
    """Use one thread: tests run in parallel, on graphs too small for more threads."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def study_file(tmp_path: Path, calls: list[dict[str, Any]]) -> Path:
    (tmp_path / "studies").mkdir()
    path = tmp_path / "studies" / "small.yaml"
    path.write_text(STUDY)
    return path


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return the configurations that are measured, in order."""
    seen: list[dict[str, Any]] = []

    def check(configuration: dict[str, Any]) -> None:
        check_share("start", configuration["start"])
        if "wrong" in configuration:
            raise TypeError("unexpected keyword argument 'wrong'")

    def run(configuration: dict[str, Any]) -> TrialResult:
        seen.append(configuration)
        base = 1.0 + configuration["seed"] + (configuration["dataset"] == "blog")
        return TrialResult({"score": base * configuration.get("times", 1)}, {"spelt": "out"})

    monkeypatch.setitem(MEASUREMENTS, "fake", Measurement(check, run))
    return seen
