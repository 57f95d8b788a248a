"""Fixtures that run tutorials and compare them with their committed pages."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = re.compile(r"```text\n(.*?)```", flags=re.DOTALL)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module that builds the pages."""
    monkeypatch.syspath_prepend(ROOT / "tutorials")
    return importlib.import_module("build")


@pytest.fixture
def run_tutorial(build: ModuleType, tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """Run a tutorial, compare it with its committed page, and return its variables."""

    def run(name: str) -> dict[str, Any]:
        cells, names = build.run(name, tmp_path)
        built, committed = build.render_page(name, cells), (build.PAGES / f"{name}.md").read_text()
        assert OUTPUT.sub("", built) == OUTPUT.sub("", committed), f"run `python tutorials/build.py {name}`"
        for actual, expected in zip(OUTPUT.findall(built), OUTPUT.findall(committed), strict=True):
            assert have_similar_outputs(actual, expected), f"{name} prints\n{actual}where its page has\n{expected}"
        return names

    return run


def have_similar_outputs(one: str, other: str) -> bool:
    """Tell whether two outputs have the same words, and numbers that agree up to differences between machines."""
    words, numbers = zip(*(_separate_numbers(text) for text in (one, other)), strict=True)
    return words[0] == words[1] and all(
        abs(actual - expected) <= 0.02 + 0.05 * abs(expected) for actual, expected in zip(*numbers, strict=True)
    )


def _separate_numbers(text: str) -> tuple[list[str], list[float]]:
    """Split a text into its words, regardless of whitespace, and its numbers."""
    numbers = [float(number.replace(",", "")) for number in NUMBER.findall(text)]
    return NUMBER.sub("0", text).split(), numbers


@pytest.fixture(name="have_similar_outputs")
def _have_similar_outputs() -> Callable[[str, str], bool]:
    return have_similar_outputs
