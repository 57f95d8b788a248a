from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from ripplevec.cli import demo_run
from ripplevec.cli.console import show_progress
from ripplevec.cli.main import app


@pytest.fixture(scope="module")
def result():
    with show_progress() as bars:
        return demo_run.run_demo(600, 0, bars)


@pytest.fixture
def run_command(result, monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(demo_run, "run_demo", lambda vertices, seed, bars: calls.append((vertices, seed)) or result)

    def invoke(*options):
        done = CliRunner().invoke(app, ["demo", "--vertices", "600", "--out", str(tmp_path / "new"), *options])
        assert done.exit_code == 0, done.output
        assert calls == [(600, 0)]
        assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
            "ripplevec-demo.html",
            "ripplevec-demo.png",
        ]
        return done

    return invoke


def test_demo_json_contains_scores_and_writes_maps(run_command):
    summary = json.loads(run_command("--json").stdout)
    assert (summary["vertices"], summary["arrivals"]) == (600, 480)
    names = [score["name"] for score in summary["results"]]
    assert names == ["ripple, on arrival", "ripple, at the end", "paper, at the end", "all recomputed"]
    assert summary["results"][1]["micro_f1"] > 0.6
    recomputed = summary["results"][3]
    assert recomputed["micros_per_arrival"] == pytest.approx(1e6 * recomputed["seconds"])


def test_demo_prints_table_and_map_paths(run_command):
    done = run_command()
    assert "micro-F1" in done.stdout
    assert "–" not in done.stdout
    assert "ripplevec-demo.html" in done.stderr
