"""Studies with invented records, and the axes drawn from them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripplevec.lab.experiments.plots import draw_plot
from ripplevec.lab.experiments.record import Record, configuration_key
from ripplevec.lab.experiments.study import Plot, Study

MetricsFunction = Callable[[str, str, int], dict[str, float]]


@pytest.fixture
def make_study(tmp_path: Path, calls: object) -> Callable[..., tuple[Study, Record]]:
    """Return a function that makes a study, and a record with `metrics(setting, dataset, seed)` for every trial."""

    def make(settings: tuple[str, ...], metrics: MetricsFunction, **more: Any) -> tuple[Study, Record]:
        own = {setting: {"number": number} for number, setting in enumerate(settings)}
        given: dict[str, Any] = {"datasets": ["cora", "blog"], "seeds": [0, 1]} | more
        parameters = {"kind": "fake", "start": 0.5}
        study = Study(name="s", title="T", parameters=parameters, settings=own, figures={"micro": "M"}, **given)
        record = Record(tmp_path / "s.json")
        for setting, dataset, configuration in study.trials():
            if found := metrics(setting, dataset, configuration["seed"]):
                record.trials[configuration_key(configuration)] = {"configuration": configuration, "figures": found}
        return study, record

    return make


@pytest.fixture
def draw_axes(make_study: Callable[..., tuple[Study, Record]]) -> Callable[..., list[Any]]:
    """Return a function that draws a plot of such a study and returns its axes."""

    def draw(plot: Plot, settings: tuple[str, ...], metrics: MetricsFunction, **more: Any) -> list[Any]:
        study, record = make_study(settings, metrics, plots={"plot": plot}, **more)
        return draw_plot(study, "plot", record).axes

    return draw
