"""Third-party code is pinned: actions to a commit, packages to hashes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.y*ml"))
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(path: Path) -> list[tuple[str, str, list[str]]]:
    """Return names, versions and hashes of a lock file."""
    found = []
    for entry in re.split(r"\n(?! )", path.read_text().strip()):
        name, version = re.match(r"([\w.-]+)==([\w.!+]+)(?: ;[^\\]*)? \\\n", entry).groups()
        found.append((normalized(name), version, re.findall(r"--hash=(\S+)", entry)))
    return found


def wanted(requirements: list[str]) -> set[str]:
    """Return the packages that requirements name, including those of extras of this project."""
    names: set[str] = set()
    for requirement in requirements:
        name, extras = re.match(r"([\w.-]+)(?:\[([\w,]+)\])?", requirement).groups()
        if name == PROJECT["name"]:
            names |= wanted([each for extra in extras.split(",") for each in EXTRAS[extra]])
        else:
            names.add(normalized(name))
    return names


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_of_a_workflow_are_pinned_by_commit(workflow: Path) -> None:
    used = re.findall(r"uses: *(.*)", workflow.read_text())
    assert used
    assert [line for line in used if not re.fullmatch(r"[\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_locked_requirements_have_hashes_and_name_no_index(lock: Path) -> None:
    for name, version, hashes in locked(lock):
        assert hashes, f"{name}=={version}"
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for each in hashes)
    assert "://" not in lock.read_text()


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_locked_versions_are_those_of_the_constraints(lock: Path) -> None:
    lines = (ROOT / "constraints.txt").read_text().split()
    versions = {normalized(name): version for name, version in (line.split("==") for line in lines)}
    assert [(name, version) for name, version, _ in locked(lock) if versions.get(name) != version] == []


@pytest.mark.parametrize("extra", ["demo", "serve", "test", "docs", "tutorials", "eval", "dist"])
def test_lock_of_an_extra_holds_everything_that_it_names(extra: str) -> None:
    names = {name for name, _, _ in locked(ROOT / f"requirements/{extra}.txt")}
    assert wanted([*PROJECT["dependencies"], *EXTRAS[extra], "hatchling"]) <= names


def test_makefile_installs_nothing_unchecked_but_torch_and_the_project() -> None:
    lines = re.findall(r"pip install (.*)", (ROOT / "Makefile").read_text())
    checked = [line for line in lines if "--require-hashes" in line]
    rest = [line for line in lines if "--require-hashes" not in line]
    assert len(checked) == 2
    assert all("--no-deps" in line and ("-e ." in line or "torch" in line) for line in rest)
