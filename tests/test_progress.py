from __future__ import annotations

import pytest

from ripplet.progress import progress


def test_bars_are_silent_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as bars:
        bars.advance(bars.add_task("work", total=1, note=""))
    assert capsys.readouterr() == ("", "")


def test_bars_show_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress() as bars:
        bars.advance(bars.add_task("work", total=2, note="so far"))
    shown = capsys.readouterr().err
    assert "work" in shown
    assert "1/2" in shown
    assert "so far" in shown
