from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ripplet.experiments.__main__ import main
from ripplet.experiments.record import Record


def test_a_study_leaves_its_record_and_its_report_in_results(study_file: Path, tmp_path: Path) -> None:
    main([str(study_file)])
    assert sorted(file.name for file in (tmp_path / "results").iterdir()) == ["small.json", "small.md"]
    assert "(8 cells)" in (tmp_path / "results" / "small.md").read_text()


def test_options_choose_cells_and_place(study_file: Path, tmp_path: Path, calls: list[dict[str, Any]]) -> None:
    arguments = [str(study_file), "--only", "seed=0, dataset=cora", "--results", str(tmp_path / "else")]
    main(arguments)
    assert len(Record.read(tmp_path / "else" / "small.json").cells) == len(calls) == 2
    main([*arguments, "--again"])
    assert len(calls) == 4


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [(["--only", "seed"], "--only: expected name=value"), (["--only", "seed=9"], "values that some cell has")],
)
def test_mistakes_are_one_line(study_file: Path, arguments: list[str], expected: str) -> None:
    with pytest.raises(SystemExit, match=expected):
        main([str(study_file), *arguments])


def test_a_study_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"ripplet.experiments: .*nowhere.yaml"):
        main([str(tmp_path / "nowhere.yaml")])
