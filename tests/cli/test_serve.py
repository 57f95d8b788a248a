"""Tests of the options of `ripplevec serve`; tests/service tests the service itself as a process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from ripplevec.cli.main import run
from ripplevec.install_hint import install_command
from ripplevec.service import logs, server
from ripplevec.service.security import Tokens
from ripplevec.service.settings import Settings

TOKEN = "a-token-of-some-length"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """Collect the settings instead of starting services."""
    settings: list[Settings] = []
    monkeypatch.setattr(server, "serve", settings.append)
    monkeypatch.setattr(logs, "configure_logging", lambda settings: None)
    return settings


def run_and_get_exit_code(*arguments: str) -> Any:
    with pytest.raises(SystemExit) as exit_:
        run(["serve", *arguments])
    return exit_.value.code


def test_serve_options_become_settings(served: list[Settings], tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"read {TOKEN}\n")
    options = ["--state", str(tmp_path), "--host", "0.0.0.0", "--port", "9", "--source", "edges.csv"]
    options += [
        "--max-delay-ms",
        "2",
        "--max-batch",
        "50",
        "--token-file",
        str(tokens),
        "--allow-host",
        "Graph.example",
    ]
    options += ["--max-body-mb", "2", "--no-access-log", "--dim", "32", "--set", "on_empty=zero"]
    options += ["--set", "anchor_pace=immediate"]
    options += ["--dead-letters", "dead.jsonl", "--sink", "lancedb://store", "--snapshot-every", "500"]
    options += ["--log-format", "text", "--log-level", "debug"]
    assert run_and_get_exit_code(*options) == 0
    (settings,) = served
    assert (settings.state, settings.host, settings.port, settings.source) == (tmp_path, "0.0.0.0", 9, "edges.csv")
    assert (settings.max_delay_ms, settings.max_batch, settings.limits.body_bytes) == (2, 50, 2 << 20)
    assert (settings.tokens, settings.hosts) == (Tokens.of([TOKEN]), {"graph.example"})
    expected = {"dim": 32, "anchor_pace": "immediate", "on_empty": "zero", "snapshot_every": 500}
    assert settings.parameters == expected
    assert (settings.access_log, settings.log_format, settings.log_level) == (False, "text", "debug")
    assert (settings.dead_letters, settings.sink) == ("dead.jsonl", "lancedb://store")


def test_serve_unset_options_use_default_settings(served: list[Settings], tmp_path: Path) -> None:
    assert run_and_get_exit_code("--state", str(tmp_path)) == 0
    assert served == [Settings(state=tmp_path)]


def test_serve_reads_tokens_from_the_environment(
    served: list[Settings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIPPLEVEC_WRITE_TOKENS", TOKEN)
    assert run_and_get_exit_code("--state", str(tmp_path), "--host", "0.0.0.0") == 0
    assert served[0].tokens == Tokens.of([], [TOKEN])


def test_serve_on_public_host_without_token_exits_with_bad_input(
    served: list[Settings], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_and_get_exit_code("--state", str(tmp_path), "--host", "0.0.0.0") == 3
    assert "tokens are required" in capsys.readouterr().err
    assert served == []


def test_serve_without_extra_prints_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "ripplevec.service.server")
    monkeypatch.delattr("ripplevec.service.server")
    assert run_and_get_exit_code("--state", str(tmp_path)) == 4
    assert install_command("serve") in capsys.readouterr().err
