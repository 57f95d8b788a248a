"""The pictures of the concepts are what the engine does, and are drawn from the record of it."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def concepts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "studies")
    return import_module("concepts")


@pytest.fixture
def record(concepts: ModuleType) -> Any:
    return json.loads(concepts.RECORD.read_text())


def numbers(found: Any) -> tuple[Any, list[float]]:
    """What is said in words, and all the numbers, in order."""
    if isinstance(found, dict):
        found = [part for item in found.items() for part in item]
    if isinstance(found, list):
        parts = [numbers(part) for part in found]
        return [words for words, _ in parts], [number for _, inner in parts for number in inner]
    return (None, [found]) if isinstance(found, float) else (found, [])


def test_the_engine_does_what_the_record_says(concepts: ModuleType, record: Any) -> None:
    words, values = numbers(json.loads(json.dumps(concepts.steps())))
    expected_words, expected = numbers(record)
    assert words == expected_words
    assert values == pytest.approx(expected, abs=0.02)


def test_influence_is_as_likely_as_its_chance(record: Any) -> None:
    for vertex, chance in record["chances"].items():
        deviation = (chance * (1 - chance) / record["seeds"]) ** 0.5
        assert abs(record["influenced"][vertex] / record["seeds"] - chance) < 3 * deviation


def test_pictures_are_drawn_from_the_record(concepts: ModuleType, record: Any) -> None:
    if f"matplotlib=={matplotlib.__version__}" not in (ROOT / "constraints.txt").read_text():
        pytest.skip("another matplotlib than that of constraints.txt draws a little differently")
    drawn = {f"{name}.svg": picture for name, picture in concepts.draw(record).items()}
    kept = {path.name: path.read_text() for path in concepts.PICTURES.iterdir()}
    assert drawn.keys() == kept.keys()
    assert [name for name in drawn if drawn[name] != kept[name]] == [], "run python studies/concepts.py"
    page = (ROOT / "docs/concepts.md").read_text()
    assert [name for name in kept if f"(images/concepts/{name})" not in page] == []
