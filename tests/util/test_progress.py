from __future__ import annotations

import pytest
from rich.progress import Progress

from ripplevec.util.progress import TimeLeftColumn, create_progress


def test_bars_are_silent_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with create_progress() as bars:
        bars.advance(bars.add_task("work", total=1, note=""))
    assert capsys.readouterr() == ("", "")


def test_bars_show_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with create_progress() as bars:
        bars.advance(bars.add_task("work", total=2, note="so far"))
    shown = capsys.readouterr().err
    assert "work" in shown
    assert "1/2" in shown
    assert "so far" in shown


@pytest.mark.parametrize(
    ("more", "shown"),
    [({}, "-:--:--"), ({"ends": None}, "-:--:--"), ({"ends": 3725.0}, "1:02:00"), ({"ends": 3.0}, "0:00:00")],
)
def test_the_time_left_is_the_one_that_is_foretold(more: dict[str, float | None], shown: str) -> None:
    bars = Progress(TimeLeftColumn(), disable=True, get_time=lambda: 5.0)
    bars.add_task("work", total=10, note="", **more)
    assert TimeLeftColumn()(bars.tasks[0]).plain == shown


def test_without_a_forecast_the_speed_so_far_tells_the_time_left() -> None:
    clock = iter(range(100))
    bars = Progress(TimeLeftColumn(), disable=True, get_time=lambda: float(next(clock)))
    task = bars.add_task("work", total=10, note="")
    for _ in range(3):
        bars.advance(task)
    assert TimeLeftColumn()(bars.tasks[0]).plain == "0:00:07"
