from __future__ import annotations

import json

from typer.testing import CliRunner

from ripplevec.cli import warmup_run
from ripplevec.cli.main import app


def test_warmup_sums_the_kernels_of_all_workloads(monkeypatch):
    monkeypatch.setattr(warmup_run, "run_workloads", lambda: iter([("text ids", 3), ("rule paper", 4)]))
    done = CliRunner().invoke(app, ["warmup", "--json"], catch_exceptions=False)
    assert json.loads(done.stdout)["kernels"] == 7
    assert "7 kernels compiled in " in CliRunner().invoke(app, ["warmup"], catch_exceptions=False).stderr
