"""Every record in results/ names the commit that made it, and that commit contains the code that ran."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

RESULTS = Path(__file__).resolve().parents[2] / "results"
RECORDS = sorted(path.stem for path in RESULTS.glob("*.json"))

# Records from before their programs named the commit. Remove a name when its record is made again; add none.
WITHOUT_COMMIT = {"crash", "durable", "file_fuzz", "io_errors", "load_fuzz", "power_cuts"}
MODIFIED: set[str] = set()  # made with changes that were not committed


def environments(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every mapping in a record that tells the commit and whether the code was modified."""
    if isinstance(value, dict):
        if "commit" in value and "modified" in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from environments(part)


def read_environments(name: str) -> list[dict[str, Any]]:
    """Return all environments of a record."""
    return list(environments(json.loads((RESULTS / f"{name}.json").read_text())))


@pytest.mark.parametrize("name", RECORDS)
def test_record_commit_is_named(name: str) -> None:
    found = read_environments(name)
    assert (bool(found) and all(one["commit"] for one in found)) == (name not in WITHOUT_COMMIT)


@pytest.mark.parametrize("name", RECORDS)
def test_record_code_is_committed(name: str) -> None:
    assert any(one["modified"] for one in read_environments(name)) == (name in MODIFIED)


def test_record_exceptions_are_records() -> None:
    assert not (WITHOUT_COMMIT | MODIFIED) - set(RECORDS)
