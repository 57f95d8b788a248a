"""The workflow and issue forms refer to existing targets and files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
STEPS = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]
FORMS = [path for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml"]


def join_text(part: object) -> str:
    return str(part).replace("\\n", " ")


def find_python_versions(text: str) -> set[str]:
    return set(re.findall(r"\b3\.\d+\b", text))


def test_workflow_make_targets_exist():
    called = {target for step in STEPS for target in re.findall(r"\bmake (\S+)", step.get("run", ""))}
    assert {"test", "dist"} <= called
    assert called <= set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))


def test_workflow_files_exist():
    named = set(re.findall(r"[\w./-]+\.(?:toml|txt|py|md|yml)\b", join_text(STEPS)))
    assert named
    assert not [name for name in named if not (ROOT / name).exists()]


def test_workflow_actions_get_no_secrets():
    assert "secrets" not in (ROOT / ".github/workflows/ci.yml").read_text()
    assert WORKFLOW["permissions"] == {"contents": "read"}


def test_python_versions_are_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = find_python_versions(" ".join(project["classifiers"]))
    assert min(named) == project["requires-python"].removeprefix(">=")
    assert set(WORKFLOW["jobs"]["test"]["strategy"]["matrix"]["python"]) == named
    assert find_python_versions(join_text(WORKFLOW["jobs"]["dist"])) == named
    assert (
        find_python_versions(
            re.search(r"^PYTHONS = .*", (ROOT / "release/check_wheel.py").read_text(), flags=re.MULTILINE)[0]
        )
        == named
    )


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_issue_forms_have_required_fields(form):
    form_content = yaml.safe_load(form.read_text())
    assert form_content["name"]
    assert form_content["description"]
    names = [field["id"] for field in form_content["body"]]
    assert len(set(names)) == len(names) > 0
    assert all(field["attributes"]["label"] for field in form_content["body"])
