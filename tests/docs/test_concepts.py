"""The concept pictures: the record matches the engine, and the pictures match the record."""

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
    content = json.loads(concepts.RECORD.read_text())
    content.pop("environment", None)
    return content


def separate_numbers(value: Any) -> tuple[Any, list[float]]:
    """Separate a record into everything but its numbers, and its numbers in order."""
    if isinstance(value, dict):
        value = [part for item in value.items() for part in item]
    if isinstance(value, list):
        parts = [separate_numbers(part) for part in value]
        return [words for words, _ in parts], [number for _, inner in parts for number in inner]
    return (None, [value]) if isinstance(value, float) else (value, [])


def test_concepts_record_matches_the_engine(concepts: ModuleType, record: Any) -> None:
    words, values = separate_numbers(json.loads(json.dumps(concepts.record_steps())))
    expected_words, expected = separate_numbers(record)
    assert words == expected_words
    assert values == pytest.approx(expected, abs=0.02)


def test_concepts_record_influence_matches_its_probability(record: Any) -> None:
    for vertex, chance in record["chances"].items():
        deviation = (chance * (1 - chance) / record["seeds"]) ** 0.5
        assert abs(record["influenced"][vertex] / record["seeds"] - chance) < 3 * deviation


def test_concept_pictures_match_the_record(concepts: ModuleType, record: Any) -> None:
    if f"matplotlib=={matplotlib.__version__}" not in (ROOT / "constraints.txt").read_text():
        pytest.skip("another version of matplotlib than in constraints.txt draws slightly differently")
    drawn = {f"{name}.svg": picture for name, picture in concepts.draw_pictures(record).items()}
    committed = {path.name: path.read_text() for path in concepts.PICTURES.iterdir()}
    assert drawn.keys() == committed.keys()
    assert [name for name in drawn if drawn[name] != committed[name]] == [], "run python studies/concepts.py"
    page = (ROOT / "docs/concepts.md").read_text()
    assert [name for name in committed if f"(images/concepts/{name})" not in page] == []
