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


def normalize_name(name: str) -> str:
    """Normalize a package name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock_file(path: Path) -> list[tuple[str, str, list[str]]]:
    """Return names, versions and hashes of a lock file."""
    packages = []
    for entry in re.split(r"\n(?! )", path.read_text().strip()):
        name, version = re.match(r"([\w.-]+)==([\w.!+]+)(?: ;[^\\]*)? \\\n", entry).groups()
        packages.append((normalize_name(name), version, re.findall(r"--hash=(\S+)", entry)))
    return packages


def collect_packages(requirements: list[str]) -> set[str]:
    """Return the packages that requirements name, including those of extras of this project."""
    names: set[str] = set()
    for requirement in requirements:
        name, extras = re.match(r"([\w.-]+)(?:\[([\w,]+)\])?", requirement).groups()
        if name == PROJECT["name"]:
            names |= collect_packages([dependency for extra in extras.split(",") for dependency in EXTRAS[extra]])
        else:
            names.add(normalize_name(name))
    return names


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_of_a_workflow_are_pinned_by_commit(workflow: Path) -> None:
    used = re.findall(r"uses: *(.*)", workflow.read_text())
    assert used
    assert [line for line in used if not re.fullmatch(r"[\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_locked_requirements_have_hashes_and_name_no_index(lock: Path) -> None:
    for name, version, hashes in read_lock_file(lock):
        assert hashes, f"{name}=={version}"
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", value) for value in hashes)
    assert "://" not in lock.read_text()


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_locked_versions_are_those_of_the_constraints(lock: Path) -> None:
    lines = (ROOT / "constraints.txt").read_text().split()
    versions = {normalize_name(name): version for name, version in (line.split("==") for line in lines)}
    assert [(name, version) for name, version, _ in read_lock_file(lock) if versions.get(name) != version] == []


@pytest.mark.parametrize("extra", ["demo", "serve", "test", "docs", "tutorials", "eval", "dist"])
def test_lock_file_contains_all_packages_of_its_extra(extra: str) -> None:
    names = {name for name, _, _ in read_lock_file(ROOT / f"requirements/{extra}.txt")}
    assert collect_packages([*PROJECT["dependencies"], *EXTRAS[extra], "hatchling"]) <= names


def test_makefile_installs_only_torch_and_the_project_without_hashes() -> None:
    lines = re.findall(r"pip install (.*)", (ROOT / "Makefile").read_text())
    checked = [line for line in lines if "--require-hashes" in line]
    rest = [line for line in lines if "--require-hashes" not in line]
    assert len(checked) == 2
    assert all("--no-deps" in line and ("-e ." in line or "torch" in line) for line in rest)


def test_building_the_site_does_not_install_ray():
    assert "ray" not in collect_packages(EXTRAS["docs"])
    assert "\nray==" not in (ROOT / "requirements/docs.txt").read_text()
