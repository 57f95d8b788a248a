"""Tests of the commands on documentation pages, in blocks and in sentences: commands, options and files exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer

from ripplevec.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
MAKE_TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
COMMAND_START = r"(?:ripplevec|make|python3?) "


def split_commands(line: str) -> list[list[str]]:
    """Split a line of shell into its commands, each a list of words."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    commands: list[list[str]] = [[]]
    for word in lexer:
        commands.append([]) if set(word) <= set("|&;<>") else commands[-1].append(word)
    return [command for command in commands if command]


def find_in_blocks(page: str) -> Iterator[list[str]]:
    """Yield the commands in shell blocks and service files."""
    for code in re.findall(r"^ *```(?:sh|ini)\n(.*?)^ *```", page, re.MULTILINE | re.DOTALL):
        joined = code.replace("\\\n", " ").replace("ExecStart=", "")
        lines = [line for line in joined.splitlines() if re.search(rf"(^|[\s/|]){COMMAND_START}", line)]
        for command in (command for line in lines for command in split_commands(line)):
            yield [Path(command[0]).name, *command[1:]]


def find_in_sentences(page: str) -> Iterator[list[str]]:
    """Yield the commands in inline code."""
    prose = re.sub(r"^ *```.*?^ *```", "", page, flags=re.MULTILINE | re.DOTALL)
    for code in re.findall(rf"`({COMMAND_START}[^`]+)`", prose):
        yield code.split()


def resolve_command(words: list[str]) -> tuple[Any, list[str]]:
    """Return the subcommand that words name, and its arguments."""
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        assert words[0] in command.commands, f"unknown command {words[0]}"
        command, words = command.commands[words[0]], words[1:]
    return command, words


def check_python_arguments(words: list[str]) -> None:
    """Check arguments of `python`: a module, or a file of the repository that has these options."""
    if words[0] == "-m":
        assert words[1] == "venv" or find_spec(words[1])
    elif words[0] != "-c":
        text = (ROOT / words[0]).read_text() + (ROOT / "benchmarks/_report.py").read_text()  # has the common options
        options = [word[2:].partition("=")[0] for word in words if word.startswith("--")]
        assert [name for name in options if not re.search(f'"(--)?{name}"', text)] == []
    files = [word for word in words if re.match(r"(studies|benchmarks|examples|results)/[\w/]+\.\w+$", word)]
    assert [name for name in files if not (ROOT / name).exists() and "--json" not in words] == []


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in PAGES])
def test_commands_in_blocks_can_be_parsed(page: str) -> None:
    for name, *words in find_in_blocks((ROOT / page).read_text()):
        if name == "ripplevec":
            command, arguments = resolve_command(words)
            command.make_context(" ".join(words), list(arguments))
        elif name == "make":
            assert {word for word in words if "=" not in word} <= MAKE_TARGETS
        elif name.startswith("python"):
            check_python_arguments(words)


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in PAGES])
def test_commands_in_sentences_have_existing_options(page: str) -> None:
    for name, *words in find_in_sentences((ROOT / page).read_text()):
        if name == "ripplevec" and words[0].split("|")[0].islower() and "|" not in words[1:2]:
            command, arguments = resolve_command([word.split("|")[0] for word in words])
            options = {
                option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
            }
            missing = [word for word in arguments if word.startswith("--") and word.partition("=")[0] not in options]
            assert missing in ([], ["--help"]), " ".join(words)
        elif name == "make":
            assert words[0] in MAKE_TARGETS
        elif name.startswith("python"):
            check_python_arguments(words)
