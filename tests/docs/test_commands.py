"""Every command that a page names is there: its options, its files, its targets; in blocks and within sentences."""

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
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
COMMAND = r"(?:ripplevec|make|python3?) "


def words(line: str) -> list[list[str]]:
    """The commands of a line of shell, each as its words."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    found: list[list[str]] = [[]]
    for word in lexer:
        found.append([]) if set(word) <= set("|&;<>") else found[-1].append(word)
    return [command for command in found if command]


def in_blocks(page: str) -> Iterator[list[str]]:
    for code in re.findall(r"^ *```(?:sh|ini)\n(.*?)^ *```", page, re.MULTILINE | re.DOTALL):
        joined = code.replace("\\\n", " ").replace("ExecStart=", "")
        lines = [line for line in joined.splitlines() if re.search(rf"(^|[\s/|]){COMMAND}", line)]
        for command in (command for line in lines for command in words(line)):
            yield [Path(command[0]).name, *command[1:]]


def in_sentences(page: str) -> Iterator[list[str]]:
    prose = re.sub(r"^ *```.*?^ *```", "", page, flags=re.MULTILINE | re.DOTALL)
    for code in re.findall(rf"`({COMMAND}[^`]+)`", prose):
        yield code.split()


def command_of(given: list[str]) -> tuple[Any, list[str]]:
    """The command that words mean, and its arguments."""
    found: Any = typer.main.get_command(app)
    while hasattr(found, "commands") and given and not given[0].startswith("-"):
        assert given[0] in found.commands, f"there is no command {given[0]}"
        found, given = found.commands[given[0]], given[1:]
    return found, given


def check_file(given: list[str]) -> None:
    """What is run by `python`: a file of the repository with these options, or a module."""
    if given[0] == "-m":
        assert given[1] == "venv" or find_spec(given[1])
    elif given[0] != "-c":
        text = (ROOT / given[0]).read_text() + (ROOT / "benchmarks/_report.py").read_text()  # which has common options
        options = [word[2:].partition("=")[0] for word in given if word.startswith("--")]
        assert [name for name in options if not re.search(f'"(--)?{name}"', text)] == []
    named = [word for word in given if re.match(r"(studies|benchmarks|examples|results)/[\w/]+\.\w+$", word)]
    assert [name for name in named if not (ROOT / name).exists() and "--json" not in given] == []


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in PAGES])
def test_commands_of_blocks_can_be_given(page: str) -> None:
    for name, *given in in_blocks((ROOT / page).read_text()):
        if name == "ripplevec":
            command, arguments = command_of(given)
            command.make_context(" ".join(given), list(arguments))
        elif name == "make":
            assert {word for word in given if "=" not in word} <= TARGETS
        elif name.startswith("python"):
            check_file(given)


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in PAGES])
def test_commands_within_sentences_have_these_options(page: str) -> None:
    for name, *given in in_sentences((ROOT / page).read_text()):
        if name == "ripplevec" and given[0].split("|")[0].islower() and "|" not in given[1:2]:
            command, arguments = command_of([word.split("|")[0] for word in given])
            options = {
                option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
            }
            missing = [word for word in arguments if word.startswith("--") and word.partition("=")[0] not in options]
            assert missing in ([], ["--help"]), " ".join(given)
        elif name == "make":
            assert given[0] in TARGETS
        elif name.startswith("python"):
            check_file(given)
