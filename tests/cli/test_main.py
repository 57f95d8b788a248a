from __future__ import annotations

import os
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

HEAVY_MODULES = ("numpy", "numba", "pyarrow", "scipy", "sklearn", "matplotlib", "plotly")


@pytest.fixture(autouse=True)
def _restore_showwarning(monkeypatch):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)


def run_and_get_exit_code(arguments):
    with pytest.raises(SystemExit) as exit_:
        run(arguments)
    return exit_.value.code


def create_failing_app(error):
    def command() -> None:
        raise error

    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(command)
    return app


def test_shell_completion_completes_commands():
    variables = os.environ | {"_RIPPLEVEC_COMPLETE": "complete_bash", "COMP_WORDS": "ripplevec warm", "COMP_CWORD": "1"}
    code = "import sys; sys.argv[0] = 'ripplevec'; from ripplevec.cli.main import run; run()"
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["warmup"], done.stderr


def test_version_option_prints_version(capsys):
    assert run_and_get_exit_code(["--version"]) == ExitCode.OK
    assert capsys.readouterr().out == f"ripplevec {__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["embed", "--help"], ["demo", "--help"], ["datasets", "--help"]])
def test_help_option_prints_usage(capsys, arguments):
    assert run_and_get_exit_code(arguments) == ExitCode.OK
    assert "Usage: ripplevec" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["embed"], ["nothing"], ["embed", "x.csv", "--dim", "many"]])
def test_wrong_usage_exits_with_usage_code(arguments):
    assert run_and_get_exit_code(arguments) == ExitCode.USAGE


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InvalidValueError("dim: expected\nmore"), ExitCode.BAD_INPUT, "ripplevec: dim: expected more\n"),
        (FileNotFoundError(2, "No such file", "e.csv"), ExitCode.BAD_INPUT, "ripplevec: e.csv: No such file\n"),
        (MissingExtraError("it", "demo"), ExitCode.MISSING_EXTRA, None),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED, ""),
    ],
)
def test_expected_errors_print_one_line_and_exit_with_their_code(monkeypatch, capsys, error, code, line):
    monkeypatch.setattr(main, "app", create_failing_app(error))
    assert run_and_get_exit_code([]) == code
    shown = capsys.readouterr().err
    if line is None:
        assert shown.count("\n") == 1
        assert install_command("demo") in shown
    else:
        assert shown == line


def test_unexpected_errors_keep_their_traceback(monkeypatch):
    monkeypatch.setattr(main, "app", create_failing_app(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        run([])


def test_warnings_are_printed_as_one_line(monkeypatch, capsys):
    app = typer.Typer()
    app.command()(lambda: warnings.warn("a self-loop", UserWarning, stacklevel=1))
    monkeypatch.setattr(main, "app", app)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert run_and_get_exit_code([]) == ExitCode.OK
    assert capsys.readouterr().err == "warning: a self-loop\n"


def test_help_documents_every_exit_code(capsys):
    run_and_get_exit_code(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert all(f"{code.value} " in text for code in ExitCode)


def test_importing_main_does_not_import_heavy_modules():
    code = f"import sys, ripplevec.cli.main; print([name for name in {HEAVY_MODULES} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_process_with_missing_file_prints_one_line(tmp_path):
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


def test_documentation_contains_every_command_and_option():
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    for name, command in typer.main.get_command(main.app).commands.items():
        assert f"`ripplevec {name}" in page
        options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        missing = {option for option in options if option.startswith("-") and f"`{option}`" not in page}
        assert not missing, f"docs/cli.md does not describe {missing} of {name}"
