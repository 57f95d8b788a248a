"""Studies of the kind of cell that only counts, with made-up records, and what is drawn of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripplevec.lab.experiments.plots import draw
from ripplevec.lab.experiments.record import Record, configuration_key
from ripplevec.lab.experiments.study import Plot, Study

Figures = Callable[[str, str, int], dict[str, float]]


@pytest.fixture
def made(tmp_path: Path, calls: object) -> Callable[..., tuple[Study, Record]]:
    """A study of some settings, and a record of what `figures` says of a setting, a data set and a seed."""

    def made(settings: tuple[str, ...], figures: Figures, **more: Any) -> tuple[Study, Record]:
        own = {setting: {"number": number} for number, setting in enumerate(settings)}
        given: dict[str, Any] = {"datasets": ["cora", "blog"], "seeds": [0, 1]} | more
        parameters = {"kind": "fake", "start": 0.5}
        study = Study(name="s", title="T", parameters=parameters, settings=own, figures={"micro": "M"}, **given)
        record = Record(tmp_path / "s.json")
        for setting, dataset, configuration in study.trials():
            if found := figures(setting, dataset, configuration["seed"]):
                record.trials[configuration_key(configuration)] = {"configuration": configuration, "figures": found}
        return study, record

    return made


@pytest.fixture
def drawn(made: Callable[..., tuple[Study, Record]]) -> Callable[..., list[Any]]:
    """The axes of a plot of such a study."""

    def drawn(plot: Plot, settings: tuple[str, ...], figures: Figures, **more: Any) -> list[Any]:
        study, record = made(settings, figures, plots={"plot": plot}, **more)
        return draw(study, "plot", record).axes

    return drawn
