"""Settings of `ripplevec serve` from options, environment variables and a TOML file."""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from ripplevec.cli.configuration import OTHER_VARIABLES, PREFIX, mask_secrets
from ripplevec.cli.main import ExitCode, app, run

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "operations.md").read_text()

Serve = Callable[..., tuple[Any, str, str]]


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Serve:
    """Run `ripplevec serve --print-config` with a TOML file and environment variables; return status and output."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # `run` replaces it

    def serve_once(*options: str, toml: str = "", **environment: str) -> tuple[Any, str, str]:
        (tmp_path / "config.toml").write_text(toml)
        for name, value in environment.items():
            monkeypatch.setenv(f"{PREFIX}_{name}", value)
        with warnings.catch_warnings(action="default"), pytest.raises(SystemExit) as exit_:
            run(["serve", "--config", str(tmp_path / "config.toml"), "--print-config", *options])
        return exit_.value.code, *capsys.readouterr()

    return serve_once


def test_config_option_overrides_environment_and_environment_overrides_file(serve: Serve) -> None:
    toml = 'state = "s"\nport = 1\nmax-batch = 1\nmax_body_mb = 1\naccess_log = false'
    status, out, _ = serve("--port", "3", toml=toml, PORT="2", MAX_BATCH="2")
    printed = tomllib.loads(out)
    assert status == ExitCode.OK
    assert (printed["port"], printed["max_batch"], printed["max_body_mb"]) == (3, 2, 1)
    assert (printed["access_log"], printed["host"], printed["state"]) == (False, "127.0.0.1", "s")
    origins = {line.split(" ")[0]: line.rpartition("# ")[2] for line in out.splitlines()}
    assert (origins["port"], origins["max_batch"], origins["host"]) == (
        "command line",
        "RIPPLEVEC_MAX_BATCH",
        "default",
    )
    assert origins["max_body_mb"].endswith("config.toml")


def test_config_lists_come_from_file_and_environment(serve: Serve) -> None:
    _, out, _ = serve(
        "--state", "s", toml='allow_host = ["a", "b"]\nset = "start_size=3"', SET="start_size=4 on_empty=zero"
    )
    printed = tomllib.loads(out)
    assert (printed["allow_host"], printed["set"]) == (["a", "b"], ["start_size=4", "on_empty=zero"])


def test_config_printed_is_accepted_as_a_file(serve: Serve) -> None:
    _, out, _ = serve("--state", "s", "--allow-host", "a", "--set", "start_size=3", "--dim", "7")
    status, again, _ = serve(toml=out)
    assert (status, tomllib.loads(again)) == (ExitCode.OK, tomllib.loads(out))


@pytest.mark.parametrize(
    ("toml", "reason"),
    [
        ("prot = 1", "prot is not a setting. Did you mean port?"),
        ("port = true", "port: "),
        ("port = 70000", "port: "),
        ("port = [1, 2]", "port: "),
        ("[port]\nx = 1", "port: expected text, a number, true, false or a list"),
        ("port = ", "expected a TOML file"),
    ],
)
def test_config_file_with_an_error_is_refused_with_its_name(serve: Serve, toml: str, reason: str) -> None:
    status, out, error = serve("--state", "s", toml=toml)
    assert (status, out) == (ExitCode.BAD_INPUT, "")
    assert "config.toml: " in error
    assert reason in error


def test_config_variable_with_a_bad_value_is_refused_with_its_name(serve: Serve) -> None:
    status, _, error = serve("--state", "s", PORT="tcp://10.0.0.1:80")
    assert status == ExitCode.BAD_INPUT
    assert error.startswith("ripplevec: RIPPLEVEC_PORT: ")
    assert "'tcp://10.0.0.1:80'" in error


def test_config_variable_with_a_similar_name_is_a_warning(serve: Serve) -> None:
    status, _, error = serve("--state", "s", PROT="1", LOGLEVEL="debug", DATA="/data")
    assert status == ExitCode.OK
    assert "RIPPLEVEC_PROT is not a setting. Did you mean RIPPLEVEC_PORT?" in error
    assert "RIPPLEVEC_LOGLEVEL is not a setting. Did you mean RIPPLEVEC_LOG_LEVEL?" in error
    assert "RIPPLEVEC_DATA" not in error


def test_config_settings_are_checked_before_they_are_printed(serve: Serve) -> None:
    status, out, error = serve("--state", "s", toml='log_level = "loud"')
    assert (status, out) == (ExitCode.BAD_INPUT, "")
    assert "log_level: expected one of 'debug'" in error


@pytest.mark.parametrize(
    ("address", "masked"),
    [
        ("redis://:pass@host:1/0?stream=x", "redis://:***@host:1/0?stream=x"),
        ("postgresql://me:pass@host/db?table=t", "postgresql://me:***@host/db?table=t"),
        ("kafka://host/topic?sasl.password=p&group=g", "kafka://host/topic?sasl.password=***&group=g"),
        ("https://me@host/x", "https://me@host/x"),
        ("/path/a:b@c", "/path/a:b@c"),
    ],
)
def test_config_prints_no_passwords(address: str, masked: str) -> None:
    assert mask_secrets(address) == masked


def test_config_page_documents_every_setting_and_variable() -> None:
    command: Any = typer.main.get_command(app)
    names = [option.name for option in command.commands["serve"].params if option.name not in ("help", "print_config")]
    assert [name for name in names if f"`{PREFIX}_{name.upper()}`" not in DOCS] == []
    assert [name for name in OTHER_VARIABLES if f"`{name}`" not in DOCS] == []
