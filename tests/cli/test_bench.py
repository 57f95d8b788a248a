from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from ripplevec.cli import bench_run, main
from ripplevec.cli.bench_run import METRICS, PACKAGED_RECORD
from ripplevec.cli.main import ExitCode, app

METRICS_HERE = dict.fromkeys(METRICS, 2.0)
RECORDED_METRICS = dict.fromkeys(METRICS, 4.0)
RECORDED_ENVIRONMENT = {"machine": {"cores": 3, "cpu": "abacus"}, "versions": {"ripplevec": "9.9"}}


@pytest.fixture
def benchmarked(monkeypatch):
    """Replace the measurements; the names of the workloads that would have been measured."""
    names = []
    monkeypatch.setattr(bench_run, "run_benchmark", lambda workload, bars: names.append(workload.name) or METRICS_HERE)
    return names


@pytest.fixture
def record(tmp_path):
    path = tmp_path / "record.json"
    path.write_text(json.dumps({"quick": {"figures": RECORDED_METRICS, "environment": RECORDED_ENVIRONMENT}}))
    return path


def run_bench(*options):
    done = CliRunner().invoke(app, ["bench", *map(str, options)])
    assert done.exit_code == 0, done.output
    return done


def test_bench_json_contains_metrics_record_and_ratios(benchmarked, record):
    summary = json.loads(run_bench("--quick", "--against", record, "--json").stdout)
    assert benchmarked == ["quick"]
    assert summary["figures"] == METRICS_HERE
    assert summary["record"]["figures"] == RECORDED_METRICS
    assert summary["ratios"]["arrivals_per_second"] == 0.5
    assert summary["ratios"]["anchor_seconds"] == 2.0
    assert summary["size"]["vertices"] == bench_run.QUICK.vertices
    assert summary["environment"]["machine"]["cores"] >= 1


def test_bench_prints_table_of_metrics_and_recorded_machine(benchmarked, record):
    done = run_bench("--quick", "--against", record)
    assert all(metric.label in done.stdout for metric in METRICS.values())
    assert "0.50" in done.stdout
    assert "3 × abacus, ripplevec 9.9" in done.stderr


def test_bench_without_matching_record_prints_no_ratios(benchmarked, record):
    done = run_bench("--against", record)
    assert benchmarked == ["full"]
    assert "ratio" not in done.stdout
    assert "no run of size 'full'" in done.stderr


def test_packaged_record_contains_both_workloads(benchmarked):
    for options in ((), ("--quick",)):
        summary = json.loads(run_bench(*options, "--json").stdout)
        assert summary["ratios"].keys() == METRICS.keys()
    assert PACKAGED_RECORD.is_file()


def test_bench_against_saved_record_compares_with_it(benchmarked, tmp_path):
    saved = tmp_path / "new" / "saved.json"
    run_bench("--save", saved)
    summary = json.loads(run_bench("--against", saved, "--json").stdout)
    assert set(summary["ratios"].values()) == {1.0}


def test_bench_invalid_record_exits_with_bad_input_before_measuring(benchmarked, tmp_path, capsys):
    (tmp_path / "none.json").write_text("[]")
    for option, name in ("--against", "none.json"), ("--against", "missing.json"), ("--save", "none.json"):
        with pytest.raises(SystemExit) as left:
            main.run(["bench", option, str(tmp_path / name)])
        assert left.value.code == ExitCode.BAD_INPUT
        assert name in capsys.readouterr().err
    assert benchmarked == []
