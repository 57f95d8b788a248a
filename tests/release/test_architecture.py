"""The layout of the package: the architecture page matches the checked layers, and modules have tests."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE, TESTS = ROOT / "src" / "ripplevec", ROOT / "tests"
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
LARGEST_WITHOUT_TESTS = 50  # lines
MAX_TERMS = 30


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def first_column(table: str) -> list[str]:
    return [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")][2:]


def test_architecture_page_lists_exactly_the_checked_layers():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    checked = [{name.strip() for name in layer.split("|")} for layer in contracts[0]["layers"]]
    described = [
        {name.removesuffix("/").removesuffix(".py") for name in re.findall(r"`([^`]+)`", cell)}
        for cell in first_column(section("Layers"))
    ]
    assert described == checked


def test_architecture_page_names_existing_files_only():
    named = {name for name in re.findall(r"`([a-z_/]+(?:\.py|/))`", PAGE) if not name.startswith("_")}
    assert len(named) > 20
    assert [name for name in named if not (SOURCE / name).exists() and not (ROOT / name).exists()] == []


def test_glossary_is_short_and_sorted():
    terms = first_column(section("Glossary"))
    assert 20 < len(terms) <= MAX_TERMS
    assert terms == sorted(terms)


def test_every_module_of_some_size_has_a_test_file_of_its_name():
    missing = []
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE)
        name = {"__init__": "init", "__main__": "main"}.get(path.stem, path.stem.lstrip("_"))
        test = f"test_{name}.py"
        candidates = [TESTS / place.parent / test, TESTS / place.parent / "on_ray" / test]
        if len(path.read_text().splitlines()) > LARGEST_WITHOUT_TESTS and not any(map(Path.exists, candidates)):
            missing.append(str(place))
    assert missing == []
