from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ripplevec.lab.experiments.measurements import MEASUREMENTS
from ripplevec.lab.experiments.measurements.base import Measurement, TrialResult
from ripplevec.lab.experiments.reproduce import Plan, RunOptions, run_study
from ripplevec.lab.experiments.summary import summarize

CLASSIFICATION = """
title: Scores
datasets: [cora]
seeds: [0, 1]
parameters: {kind: invented}
settings:
  ripplevec: {method: ripplevec, score: 80}
  rule paper: {method: paper, score: 99}
  DeepWalk: {method: deepwalk, score: 70}
  NetMF: {method: netmf, score: 75}
  spectral: {method: spectral, score: 79}
  NetMF, tuned: {method: netmf, score: 78, tuned_by: elsewhere}
  DeepWalk, tuned: {method: deepwalk, score: 78.25, tuned_by: elsewhere, seeds: [0]}
  neighbor mean: {method: neighbor_mean, score: 60}
figures: {current_micro@50: Micro-F1}
"""
TIME = """
title: Seconds
datasets: [cora, wiki]
seeds: [0]
parameters: {kind: invented, score: 4}
settings: {one thread: {}, all threads: {score: 5}}
figures: {ripplevec_times_faster: Times faster}
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    def run(own: dict[str, Any]) -> TrialResult:
        value = own["score"] + own["seed"]
        return TrialResult({"current_micro@50": value, "ripplevec_times_faster": value}, {})

    monkeypatch.setitem(MEASUREMENTS, "invented", Measurement(lambda own: None, run))
    monkeypatch.setattr("ripplevec.lab.experiments.runner.check_tuned", lambda own: None)
    for name, text in {"classification": CLASSIFICATION, "time": TIME}.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return Plan(tmp_path / "results", folder=tmp_path)


def test_summarize_compares_over_common_seeds(plan: Plan) -> None:
    assert summarize(plan) == {}
    for study in plan.studies().values():
        run_study(study, plan.results, RunOptions())
    assert summarize(plan) == {
        "cora": {
            "ripplevec": {"setting": "ripplevec", "micro_f1": 80.5, "ours_above": 0.0},
            "paper_setting": {"setting": "NetMF", "micro_f1": 75.5, "ours_above": 5.0},
            "tuned": {"setting": "DeepWalk, tuned", "micro_f1": 78.25, "ours_above": 1.75},  # on its seed
            "streaming": {"setting": "neighbor mean", "micro_f1": 60.5, "ours_above": 20.0},
            "spectral": {"setting": "spectral", "micro_f1": 79.5, "ours_above": 1.0},
            "times_faster": 4.0,
        }
    }


def test_summarize_without_ripplevec_ranks_by_mean(plan: Plan) -> None:
    study = plan.studies()["classification"]
    for method in ("deepwalk", "netmf"):
        run_study(study, plan.results, RunOptions(only={"method": method}))
    line = summarize(plan)["cora"]
    assert line["ripplevec"] is None
    assert line["paper_setting"] == {"setting": "NetMF", "micro_f1": 75.5, "ours_above": None}
