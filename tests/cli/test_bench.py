from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from ripplevec.cli import bench_run, main
from ripplevec.cli.bench_record import FIGURES, RECORD
from ripplevec.cli.main import ExitCode, app

HERE = dict.fromkeys(FIGURES, 2.0)
THERE = dict.fromkeys(FIGURES, 4.0)
ELSEWHERE = {"machine": {"cores": 3, "cpu": "abacus"}, "versions": {"ripplevec": "9.9"}}


@pytest.fixture
def asked(monkeypatch):
    sizes = []
    monkeypatch.setattr(bench_run, "run", lambda size, bars: sizes.append(size.name) or HERE)
    return sizes


@pytest.fixture
def record(tmp_path):
    path = tmp_path / "record.json"
    path.write_text(json.dumps({"quick": {"figures": THERE, "environment": ELSEWHERE}}))
    return path


def invoke(*options):
    done = CliRunner().invoke(app, ["bench", *map(str, options)])
    assert done.exit_code == 0, done.output
    return done


def test_figures_for_programs(asked, record):
    found = json.loads(invoke("--quick", "--against", record, "--json").stdout)
    assert asked == ["quick"]
    assert found["figures"] == HERE
    assert found["record"]["figures"] == THERE
    assert found["ratios"]["arrivals_per_second"] == 0.5
    assert found["ratios"]["anchor_seconds"] == 2.0
    assert found["size"]["vertices"] == bench_run.QUICK.vertices
    assert found["environment"]["machine"]["cores"] >= 1


def test_a_table_for_people(asked, record):
    done = invoke("--quick", "--against", record)
    assert all(figure.label in done.stdout for figure in FIGURES.values())
    assert "0.50" in done.stdout
    assert "3 × abacus, ripplevec 9.9" in done.stderr


def test_a_size_the_record_lacks_is_shown_alone(asked, record):
    done = invoke("--against", record)
    assert asked == ["full"]
    assert "× as good" not in done.stdout
    assert "no run of size 'full'" in done.stderr


def test_the_record_that_comes_along_has_both_sizes(asked):
    for options in ((), ("--quick",)):
        found = json.loads(invoke(*options, "--json").stdout)
        assert found["ratios"].keys() == FIGURES.keys()
    assert RECORD.is_file()


def test_what_is_saved_is_what_the_next_run_is_compared_with(asked, tmp_path):
    mine = tmp_path / "new" / "mine.json"
    invoke("--save", mine)
    found = json.loads(invoke("--against", mine, "--json").stdout)
    assert set(found["ratios"].values()) == {1.0}


def test_a_record_that_is_none_is_exit_status_3_and_nothing_runs(asked, tmp_path, capsys):
    (tmp_path / "none.json").write_text("[]")
    for option, name in ("--against", "none.json"), ("--against", "missing.json"), ("--save", "none.json"):
        with pytest.raises(SystemExit) as left:
            main.run(["bench", option, str(tmp_path / name)])
        assert left.value.code == ExitCode.BAD_INPUT
        assert name in capsys.readouterr().err
    assert asked == []
