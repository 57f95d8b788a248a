"""Every example runs: the blocks of a page in order, in an empty folder, with real servers where they need one."""

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
PAGES = [page for page in PAGES if page.parent.name != "tutorials"]  # those are scripts, run by tests/tutorials
BLOCK = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)

ONLY_COMPILED = {"docs/scaling.md": "eight shards on a Ray cluster: tests/cluster/on_ray make the same call"}
ONLY_READ = {  # commands that are checked by test_commands.py, and not run here
    r"pip install|-m venv|^make\b": "sets up environments",
    r"ripplevec (serve|demo|bench|reproduce)\b|--built-in": "takes minutes, or goes on for ever; has tests of its own",
    r"python (benchmarks|studies|examples)/": "takes minutes; has tests of its own",
    r"text/event-stream": "ends only when the reader does",
    r"--download|\.example\.|example\.org": "reaches beyond this machine",
    r"systemctl|useradd|/etc/|/var/|/opt/|\bDIR\b": "is about the reader's own machine",
}
CAREFUL = 'set -euo pipefail\ncurl() { command curl --silent --show-error --fail-with-body --max-time 60 "$@"; }\n'


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(language, textwrap.dedent(code)) for _, language, code in BLOCK.findall(page.read_text())]


def commands(code: str) -> Iterator[str]:
    """The commands of a shell block; one may go over several lines."""
    lines = iter(code.splitlines())
    for line in lines:
        while line.endswith("\\") or not is_closed(line):
            line += "\n" + next(lines)
        if heredoc := re.search(r"<<\s*'?(\w+)'?", line):
            while line.splitlines()[-1] != heredoc[1]:
                line += "\n" + next(lines)
        yield line


def is_closed(line: str) -> bool:
    try:
        shlex.split(line, comments=True)
    except ValueError:  # a quotation goes on in the next line
        return False
    return True


def is_run(command: str) -> bool:
    return not any(re.search(pattern, command) for pattern in ONLY_READ)


@pytest.fixture
def at_home(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Puts the addresses of servers that really run into code; they are started when they are first spoken of."""
    service: list[str] = []

    def replaced(code: str) -> str:
        if re.search(r"(localhost|127\.0\.0\.1):8080", code):
            service or service.append(request.getfixturevalue("start")().url.partition("//")[2])
            code = re.sub(r"(localhost|127\.0\.0\.1):8080", service[0], code)
        if "localhost:6379" in code:
            code = code.replace("localhost:6379", f"127.0.0.1:{request.getfixturevalue('redis_server').port}")
        if "localhost:9092" in code:
            code = code.replace("localhost:9092", request.getfixturevalue("kafka_servers"))
        return code

    return replaced


@pytest.mark.usefixtures("contributing")  # what the examples register is forgotten again
@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in PAGES if blocks(page)])
def test_the_examples_of_a_page_run(
    page: str,
    prepared: dict[str, Callable[[], dict[str, Any] | None]],
    at_home: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "reader"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names = {"__name__": "__main__"} | (prepared[page]() or {} if page in prepared else {})
    printed = ""
    for language, code in blocks(ROOT / page):
        if language == "python":
            program = compile(at_home(code), page, "exec")
            page in ONLY_COMPILED or exec(program, names)
        elif language == "sh":
            printed = run("\n".join(filter(is_run, commands(code))), at_home)
            continue
        elif language == "py":  # wants a library too large for every reader: run by the test of that integration
            compile(code, page, "exec")
        elif language == "json" and printed:
            assert json.loads(code) == json.loads(printed), "what the commands before it print"
        else:
            understood(language, code)
        printed = ""


def run(script: str, at_home: Callable[[str], str]) -> str:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = ["bash", "-c", CAREFUL + at_home(script)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout


def understood(language: str, code: str) -> None:
    """What is no program is at least what it says it is."""
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
        assert language in ("", "text"), f"no test knows what to do with a block of {language}"
        assert not re.search(r"^\s*(ripplevec|curl|pip|python|make|import) ", code, re.MULTILINE), "name its language"
