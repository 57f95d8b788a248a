"""`ripplevec serve`: what its options come to. The service itself is tested as a process in tests/service."""

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
    """The settings that services would have been started with."""
    found: list[Settings] = []
    monkeypatch.setattr(server, "serve", found.append)
    monkeypatch.setattr(logs, "configure_logging", lambda: None)
    return found


def left(*arguments: str) -> Any:
    with pytest.raises(SystemExit) as end:
        run(["serve", *arguments])
    return end.value.code


def test_options_become_settings(served: list[Settings], tmp_path: Path) -> None:
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
    options += ["--max-body-mb", "2", "--no-access-log", "--dim", "32", "--anchor-lag", "8", "--set", "on_empty=zero"]
    options += ["--dead-letters", "dead.jsonl", "--sink", "lancedb://store"]
    assert left(*options) == 0
    (found,) = served
    assert (found.state, found.host, found.port, found.source) == (tmp_path, "0.0.0.0", 9, "edges.csv")
    assert (found.max_delay_ms, found.max_batch, found.limits.body_bytes) == (2, 50, 2 << 20)
    assert (found.tokens, found.hosts) == (Tokens.of([TOKEN]), {"graph.example"})
    assert (found.parameters, found.access_log) == ({"dim": 32, "anchor_lag": 8, "on_empty": "zero"}, False)
    assert (found.dead_letters, found.sink) == ("dead.jsonl", "lancedb://store")


def test_what_is_not_given_is_left_to_the_library(served: list[Settings], tmp_path: Path) -> None:
    assert left("--state", str(tmp_path)) == 0
    assert served == [Settings(state=tmp_path)]


def test_tokens_may_come_from_the_environment(
    served: list[Settings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIPPLEVEC_WRITE_TOKENS", TOKEN)
    assert left("--state", str(tmp_path), "--host", "0.0.0.0") == 0
    assert served[0].tokens == Tokens.of([], [TOKEN])


def test_beyond_this_machine_a_token_is_needed(
    served: list[Settings], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert left("--state", str(tmp_path), "--host", "0.0.0.0") == 3
    assert "tokens are required" in capsys.readouterr().err
    assert served == []


def test_without_the_extra_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "ripplevec.service.server")
    monkeypatch.delattr("ripplevec.service.server")
    assert left("--state", str(tmp_path)) == 4
    assert install_command("serve") in capsys.readouterr().err
