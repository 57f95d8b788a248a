from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ripplevec.lab.experiments.record import Record
from ripplevec.lab.experiments.report import format_values, render_markdown
from ripplevec.lab.experiments.runner import find_pending, run_trials
from ripplevec.lab.experiments.study import Plot, load_study


def test_render_markdown_table_has_means_and_reference_values(study_file: Path, tmp_path: Path) -> None:
    study, record = load_study(study_file), Record.read(tmp_path / "small.json")
    run_trials(find_pending(study, record), record)
    text = render_markdown(study, record)
    assert text.startswith(
        "# A small study\n\nSays little.\n\nMean ± standard deviation over the seeds 0, 1 (8 trials)."
    )
    assert "## A score\n\n|  | cora | blog |\n| --- | ---: | ---: |" in text
    assert "| plain | 1.50 ± 0.71 | 2.50 ± 0.71 |" in text
    assert "| double | 3.00 ± 1.41 (floor 3.5) | 5.00 ± 1.41 |" in text
    assert "- commit " in text


def test_render_markdown_shows_dash_for_missing_trials(study_file: Path, tmp_path: Path) -> None:
    study, record = load_study(study_file), Record.read(tmp_path / "small.json")
    run_trials(find_pending(study, record, {"seed": "0", "dataset": "cora"}), record)
    text = render_markdown(study, record)
    assert "(2 of 8 trials)" in text
    assert "| plain | 1.00 | – |" in text


def test_render_markdown_ignores_trials_removed_from_study(study_file: Path, tmp_path: Path) -> None:
    record = Record.read(tmp_path / "small.json")
    run_trials(find_pending(load_study(study_file), record), record)
    study_file.write_text(study_file.read_text().replace("[0, 1]", "[0]"))
    assert "| plain | 1.00 | 2.00 |" in render_markdown(load_study(study_file), record)


def test_render_markdown_places_pictures_before_tables(study_file: Path, tmp_path: Path) -> None:
    plot = Plot(kind="bars", title="Scores", figure="score")
    study = replace(load_study(study_file), plots={"score": plot})
    assert "trials).\n\n![Scores](figures/small-score.svg)\n\n## A score" in render_markdown(
        study, Record(tmp_path / "small.json")
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], "–"),
        ([7, 7], "7"),
        ([7, 8], "7.50 ± 0.71"),
        ([81.26], "81.3"),
        ([81.0, 83.0], "82.0 ± 1.4"),
        ([0.9634, 0.9634], "0.963 ± 0.000"),
        ([123.4], "123"),
        ([0.0, 0.0], "0 ± 0"),
        ([-1.5, 1.5], "0.00 ± 2.12"),
        ([0.00012], "0.000"),
    ],
)
def test_format_values_shows_three_digits(values: list[Any], expected: str) -> None:
    assert format_values(values) == expected
