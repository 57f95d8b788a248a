from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from ripplevec.cli import demo_run
from ripplevec.cli.console import progress
from ripplevec.cli.main import app


@pytest.fixture(scope="module")
def result():
    with progress() as bars:
        return demo_run.run(600, 0, bars)


@pytest.fixture
def demo(result, monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(demo_run, "run", lambda vertices, seed, bars: asked.append((vertices, seed)) or result)

    def invoke(*options):
        done = CliRunner().invoke(app, ["demo", "--vertices", "600", "--out", str(tmp_path / "new"), *options])
        assert done.exit_code == 0, done.output
        assert asked == [(600, 0)]
        assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
            "ripplevec-demo.html",
            "ripplevec-demo.png",
        ]
        return done

    return invoke


def test_figures_for_programs(demo):
    summary = json.loads(demo("--json").stdout)
    assert (summary["vertices"], summary["arrivals"]) == (600, 480)
    names = [line["name"] for line in summary["results"]]
    assert names == ["ripple, on arrival", "ripple, at the end", "paper, at the end", "all recomputed"]
    assert summary["results"][1]["micro_f1"] > 0.6


def test_a_table_for_people(demo):
    done = demo()
    assert "micro-F1" in done.stdout
    assert "ripplevec-demo.html" in done.stderr
