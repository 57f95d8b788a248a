"""Tests that run all examples of the documentation: the blocks of a page in order, with real servers if needed."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if page.parent.name != "tutorials"]  # built from scripts, which tests/tutorials runs
BLOCK = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)

ONLY_COMPILED = {"docs/cluster.md": "eight shards on a Ray cluster: tests/cluster/on_ray make the same call"}
NOT_RUN = {  # commands that test_commands.py checks, with the reason why they are not run here
    r"pip install|-m venv|^make\b": "sets up environments",
    r"ripplevec (serve|demo|bench|reproduce)\b|--built-in": "takes minutes or runs forever; has its own tests",
    r"python (benchmarks|studies|examples)/": "takes minutes; has its own tests",
    r"text/event-stream": "never ends",
    r"\bdocker\b|deploy/": "needs Docker; tests/release/test_deploy.py checks the files",
    r"--download|\.example\.|example\.org": "needs the network",
    r"systemctl|useradd|/etc/|/var/|/opt/|\bDIR\b": "changes the machine of the reader",
}
SHELL_PROLOGUE = (
    'set -euo pipefail\ncurl() { command curl --silent --show-error --fail-with-body --max-time 60 "$@"; }\n'
)


def list_blocks(page: Path) -> list[tuple[str, str]]:
    """Return language and code of the blocks of a page."""
    return [(language, textwrap.dedent(code)) for _, language, code in BLOCK.findall(page.read_text())]


def split_commands(code: str) -> Iterator[str]:
    """Yield the commands of a shell block; a command may span several lines."""
    lines = iter(code.splitlines())
    for line in lines:
        while line.endswith("\\") or not has_closed_quotes(line):
            line += "\n" + next(lines)
        if heredoc := re.search(r"<<\s*'?(\w+)'?", line):
            while line.splitlines()[-1] != heredoc[1]:
                line += "\n" + next(lines)
        yield line


def has_closed_quotes(line: str) -> bool:
    try:
        shlex.split(line, comments=True)
    except ValueError:  # a quotation continues on the next line
        return False
    return True


def is_run(command: str) -> bool:
    return not any(re.search(pattern, command) for pattern in NOT_RUN)


@pytest.fixture
def replace_addresses(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Return a function that replaces addresses in code by those of servers, which are started on first use."""
    service: list[str] = []

    def replace(code: str) -> str:
        if re.search(r"(localhost|127\.0\.0\.1):8080", code):
            if not service:
                dimensions = {"attribute_dim": 4} if "attributes" in code else {}  # such a page says to set them
                started = request.getfixturevalue("start")(parameters={"dim": 8, "threads": 1} | dimensions)
                service.append(started.url.partition("//")[2])
            code = re.sub(r"(localhost|127\.0\.0\.1):8080", service[0], code)
        if "localhost:6379" in code:
            code = code.replace("localhost:6379", f"127.0.0.1:{request.getfixturevalue('redis_server').port}")
        if "localhost:9092" in code:
            code = code.replace("localhost:9092", request.getfixturevalue("kafka_servers"))
        return code

    return replace


@pytest.mark.usefixtures("contributing")  # unregisters what the examples register
@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in PAGES if list_blocks(page)])
def test_examples_of_a_page_run(
    page: str,
    page_setups: dict[str, Callable[[], dict[str, Any] | None]],
    replace_addresses: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "reader"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    variables = {"__name__": "__main__"} | (page_setups[page]() or {} if page in page_setups else {})
    printed = ""
    for language, code in list_blocks(ROOT / page):
        if language == "python":
            program = compile(replace_addresses(code), page, "exec")
            page in ONLY_COMPILED or exec(program, variables)
        elif language == "sh":
            printed = run_shell("\n".join(filter(is_run, split_commands(code))), replace_addresses)
            continue
        elif language == "py":  # needs a large optional library; the test of that integration runs it
            compile(code, page, "exec")
        elif language == "json" and printed:
            assert json.loads(code) == json.loads(printed), "expected the output of the commands before it"
        else:
            check_syntax(language, code)
        printed = ""


def run_shell(script: str, replace_addresses: Callable[[str], str]) -> str:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = ["bash", "-c", SHELL_PROLOGUE + replace_addresses(script)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout


def check_syntax(language: str, code: str) -> None:
    """Check that a block which is not a program can be parsed as its language."""
    if language == "json":
        _ = (
            [json.loads(line) for line in code.splitlines()]
            if code.count("\n{") or code.count("\n[")
            else json.loads(code)
        )
    elif language == "ini":
        configparser.ConfigParser(interpolation=None).read_string(code)
    elif language == "yaml":
        assert yaml.safe_load(code)
    elif language == "toml":
        assert tomllib.loads(code)
    else:
        assert language in ("", "text"), f"unknown language of a block: {language}"
        assert not re.search(r"^\s*(ripplevec|curl|pip|python|make|import) ", code, re.MULTILINE), (
            "a block of commands needs a language"
        )
