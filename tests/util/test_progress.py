from __future__ import annotations

import pytest
from rich.progress import Progress

from ripplevec.util.progress import TimeLeftColumn, create_progress


def test_progress_without_terminal_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with create_progress() as bars:
        bars.advance(bars.add_task("work", total=1, note=""))
    assert capsys.readouterr() == ("", "")


def test_progress_on_terminal_is_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with create_progress() as bars:
        bars.advance(bars.add_task("work", total=2, note="so far"))
    shown = capsys.readouterr().err
    assert "work" in shown
    assert "1/2" in shown
    assert "so far" in shown


@pytest.mark.parametrize(
    ("fields", "shown"),
    [({}, "-:--:--"), ({"ends": None}, "-:--:--"), ({"ends": 3725.0}, "1:02:00"), ({"ends": 3.0}, "0:00:00")],
)
def test_time_left_with_an_end_time_is_the_time_until_then(fields: dict[str, float | None], shown: str) -> None:
    bars = Progress(TimeLeftColumn(), disable=True, get_time=lambda: 5.0)
    bars.add_task("work", total=10, note="", **fields)
    assert TimeLeftColumn()(bars.tasks[0]).plain == shown


def test_time_left_without_an_end_time_is_estimated_from_speed() -> None:
    clock = iter(range(100))
    bars = Progress(TimeLeftColumn(), disable=True, get_time=lambda: float(next(clock)))
    task = bars.add_task("work", total=10, note="")
    for _ in range(3):
        bars.advance(task)
    assert TimeLeftColumn()(bars.tasks[0]).plain == "0:00:07"
