from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import typer

from ripplevec import __version__
from ripplevec.cli import main
from ripplevec.cli.main import ExitCode, run
from ripplevec.errors import InvalidValueError, MissingExtraError
from ripplevec.install_hint import install_command

HEAVY = ("numpy", "numba", "pyarrow", "scipy", "sklearn", "matplotlib", "plotly")


@pytest.fixture(autouse=True)
def _usual_warnings(monkeypatch):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)


def leave(arguments):
    with pytest.raises(SystemExit) as left:
        run(arguments)
    return left.value.code


def failing(error):
    def command() -> None:
        raise error

    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(command)
    return app


def test_version(capsys):
    assert leave(["--version"]) == ExitCode.OK
    assert capsys.readouterr().out == f"ripplevec {__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["embed", "--help"], ["demo", "--help"], ["datasets", "--help"]])
def test_help(capsys, arguments):
    assert leave(arguments) == ExitCode.OK
    assert "Usage: ripplevec" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["embed"], ["nothing"], ["embed", "x.csv", "--dim", "many"]])
def test_wrong_usage(arguments):
    assert leave(arguments) == ExitCode.USAGE


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InvalidValueError("dim: expected\nmore"), ExitCode.BAD_INPUT, "ripplevec: dim: expected more\n"),
        (FileNotFoundError(2, "No such file", "e.csv"), ExitCode.BAD_INPUT, "ripplevec: e.csv: No such file\n"),
        (MissingExtraError("it", "demo"), ExitCode.MISSING_EXTRA, None),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED, ""),
    ],
)
def test_errors_for_users_are_one_line_and_a_code(monkeypatch, capsys, error, code, line):
    monkeypatch.setattr(main, "app", failing(error))
    assert leave([]) == code
    shown = capsys.readouterr().err
    if line is None:
        assert shown.count("\n") == 1
        assert install_command("demo") in shown
    else:
        assert shown == line


def test_what_nobody_expected_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr(main, "app", failing(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        run([])


def test_warnings_are_one_line(monkeypatch, capsys):
    app = typer.Typer()
    app.command()(lambda: warnings.warn("a self-loop", UserWarning, stacklevel=1))
    monkeypatch.setattr(main, "app", app)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert leave([]) == ExitCode.OK
    assert capsys.readouterr().err == "warning: a self-loop\n"


def test_every_exit_code_is_documented(capsys):
    leave(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert all(f"{code.value} " in text for code in ExitCode)


def test_help_loads_nothing_heavy():
    code = f"import sys, ripplevec.cli.main; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_as_a_process(tmp_path):
    command = [
        sys.executable,
        "-m",
        "ripplevec.cli",
        "embed",
        str(tmp_path / "none.csv"),
        "-o",
        str(tmp_path / "v.csv"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.BAD_INPUT
    assert done.stderr.count("\n") == 1
    assert "none.csv: No such file or directory" in done.stderr


def test_every_command_and_option_is_in_the_documentation():
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    for name, command in typer.main.get_command(main.app).commands.items():
        assert f"`ripplevec {name}" in page
        options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        missing = {option for option in options if option.startswith("-") and f"`{option}`" not in page}
        assert not missing, f"docs/cli.md does not say what {missing} of {name} are"
