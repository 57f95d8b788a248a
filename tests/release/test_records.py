"""Every record in results/ names the commit that made it, and that commit contains the code that ran."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

RESULTS = Path(__file__).resolve().parents[2] / "results"
RECORDS = sorted(path.stem for path in RESULTS.glob("*.json"))

# Records from before their programs named the commit. Remove a name when its record is made again; add none.
WITHOUT_COMMIT = {"crash"}
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


@cache
def read_history(until: str = "HEAD") -> frozenset[str]:
    """Return the commits that a commit contains; an empty set without git or without the whole history."""

    def run_git(*arguments: str) -> str:
        command = ["git", *arguments]
        return subprocess.run(command, cwd=RESULTS, capture_output=True, text=True, check=True).stdout

    try:
        top, shallow = run_git("rev-parse", "--show-toplevel", "--is-shallow-repository").split("\n")[:2]
        whole = shallow == "false" and Path(top) == RESULTS.parent
        return frozenset(run_git("rev-list", until).split()) if whole else frozenset()
    except (OSError, subprocess.CalledProcessError):
        return frozenset()


@pytest.mark.parametrize("name", RECORDS)
def test_record_commit_is_in_the_history(name: str) -> None:
    if not read_history():
        pytest.skip("needs the whole history of the repository")
    commits = {one["commit"] for one in read_environments(name) if one["commit"]}
    assert not commits - read_history()


SHORT_ROWS_ARE_ZERO = "01dc11c9ca76"  # since this commit, evaluations treat rows of rounding errors as zero
DISCONNECTED = ("cora", "citeseer", "wiki")  # on these graphs, NetMF returns such rows


@pytest.mark.parametrize("name", ["classification", "grid"])
def test_trials_of_netmf_on_disconnected_graphs_have_no_rows_of_rounding_errors(name: str) -> None:
    if not read_history():
        pytest.skip("needs the whole history of the repository")
    before = read_history(f"{SHORT_ROWS_ARE_ZERO}~1")
    assert before
    trials = [trial for trial in read_trials(name) if trial["configuration"]["method"] == "netmf"]
    assert len(trials) >= 30
    old = [trial for trial in trials if trial["commit"] in before]
    assert not [one["configuration"] for one in old if one["configuration"]["dataset"] in DISCONNECTED]


def test_record_exceptions_are_records() -> None:
    assert not (WITHOUT_COMMIT | MODIFIED) - set(RECORDS)


def read_trials(name: str) -> list[dict[str, Any]]:
    """Return the trials of a study, each with the commit that made it."""
    record = json.loads((RESULTS / f"{name}.json").read_text())
    return [trial | {"commit": record["environments"][trial["environment"]]["commit"]} for trial in record["cells"]]


READING = {"depth": 1, "on_empty": "neighbors", "late_placement": True, "components": "together"}  # the defaults


def describe_paper_trial(configuration: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return data set, seed and reading of a trial of rule `paper` with 50 % for the start; None for other trials."""
    other_readings = {"normalization", "reuse_influence", "edges", "arrival_order"} & configuration.keys()
    if "paper" not in (configuration.get("method"), configuration.get("rule")) or other_readings:
        return None
    reading = READING | {name: configuration[name] for name in READING if name in configuration}
    return configuration["dataset"], configuration["seed"], *reading.values()


def test_trials_that_several_studies_share_have_equal_scores() -> None:
    """Studies overlap: rule `paper` on the same stream, measured at different times by different commits."""
    scores: dict[tuple[Any, ...], list[list[float | None]]] = {}
    for name in ("classification", "readings", "systems", "readings_grid"):
        for trial in read_trials(name):
            if (key := describe_paper_trial(trial["configuration"])) is not None:
                metrics = trial["figures"]
                scores.setdefault(key, []).append(
                    [metrics.get(f"{when}_micro@50", metrics.get(f"{when}_micro")) for when in ("arrival", "current")]
                )
    shared = {key: repeated for key, repeated in scores.items() if len(repeated) > 1}
    assert len(shared) >= 16
    for key, (first, *others) in shared.items():
        for other in others:
            assert other == pytest.approx(first, abs=1e-9), key
