"""What a soak has seen: samples over time, how flat they are once it has settled, and a picture of them."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from _served import Served
from _soak_traffic import Log
from numpy.typing import NDArray

from ripplevec.lab.experiments.plots.common import make_log
from ripplevec.lab.experiments.plots.figure import style, svg
from ripplevec.lab.experiments.plots.style import COLORS

KILLED = "#d55e00"
ON_TIME = 1.0  # seconds that a stream may be late and still be called on time


@dataclass(frozen=True, slots=True)
class Sample:
    """The service at one moment; `settled`: on time, warm, and all the changes that it may keep for followers kept."""

    seconds: float
    resident_mb: float
    state_mb: float
    handles: int
    batches: int
    settled: bool


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill: when, how long the service was away, how much of that was recovery, how many batches it replayed."""

    seconds: float
    away: float
    recovery: float
    replayed: int


def sample(service: Served, state: Path, seconds: float, batches: int, calm: bool) -> Sample | None:
    """How it stands now; None while it is away."""
    try:
        feed = service.get("/v1/stats")[1]["feed"]
        process = psutil.Process(service.process.pid)
        resident, handles = process.memory_info().rss / 2**20, process.num_fds()
    except (psutil.Error, OSError, HTTPException, KeyError):
        return None
    full = feed["oldest"] > service.ready_event()["sequence"]  # some of its own have gone again
    sizes = round(resident, 1), round(_size(state) / 2**20, 1)
    return Sample(round(seconds, 2), *sizes, handles, batches, calm and full)


def _size(folder: Path) -> int:
    """Bytes in a folder, some of which may be going just now."""
    total = 0
    for place, _, names in os.walk(folder):  # passes over folders that have gone; `rglob` fails there
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total


class Course:
    """The samples of a soak with the latencies that lie between them."""

    def __init__(self, samples: list[Sample], logs: dict[str, Log], begun: float) -> None:
        self._begun = begun  # seconds after which it is judged
        self.time = np.array([each.seconds for each in samples])
        self.settled = np.array([each.settled for each in samples], bool)
        self.settled[1:] &= self.settled[:-1]  # of an interval: at both of its ends
        self.samples = samples
        self.latencies = {name: self._by_interval(np.array(log).reshape(-1, 2)) for name, log in logs.items()}

    def _by_interval(self, log: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Milliseconds of the requests answered before each sample and behind the one before it."""
        place = np.searchsorted(self.time, log[:, 0])
        return [1000 * log[place == number, 1] for number in range(len(self.time))]

    def percentile(self, name: str, share: float) -> NDArray[np.float64]:
        """Of every interval; NaN where nothing was asked."""
        return np.array([np.percentile(part, share) if part.size else np.nan for part in self.latencies[name]])

    def column(self, name: str) -> NDArray[np.float64]:
        """One figure of all samples."""
        return np.array([getattr(each, name) for each in self.samples], np.float64)

    def broken(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same without the first sample after each time that the service was away, so that no line crosses it."""
        steps = np.diff(self.time, prepend=self.time[0])
        return np.where(steps > 2 * np.median(steps), np.nan, values)

    def flatness(self) -> dict[str, dict[str, float | None]]:
        """Of everything that should stay as it is: how it was in the settled parts, and how it went on."""
        found = {name: self._of_column(name) for name in ("resident_mb", "state_mb", "handles")}
        for name in self.latencies:
            for share in (50, 99):
                found[f"{name}_p{share}_ms"] = self._of_latency(name, share)
        return found

    def after_kills(self) -> dict[str, float | None]:
        """The latencies of the parts between that are left out above."""
        apart = np.flatnonzero(~self.settled & (self.time > self._begun))
        return {
            f"{name}_p{share}_ms": _number(_percentile(parts, apart, share))
            for name, parts in self.latencies.items()
            for share in (50, 99)
        }

    def _thirds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The settled intervals of the first third of the time that is judged, and of the last."""
        third = (self.time[-1] - self._begun) / 3
        first, last = self.time < self._begun + third, self.time > self.time[-1] - third
        return np.flatnonzero(first & self.settled), np.flatnonzero(last & self.settled)

    def _of_column(self, name: str) -> dict[str, float | None]:
        values = self.column(name)
        first, last = (float(values[part].mean()) if part.size else np.nan for part in self._thirds())
        return self._judged(first, last, values)

    def _of_latency(self, name: str, share: float) -> dict[str, float | None]:
        first, last = (_percentile(self.latencies[name], part, share) for part in self._thirds())
        return self._judged(first, last, self.percentile(name, share))

    def _judged(self, first: float, last: float, values: NDArray[np.float64]) -> dict[str, float | None]:
        """First and last third, their ratio, and the change that a line through all of it says, over the mean."""
        use = self.settled & ~np.isnan(values)
        slope = np.polyfit(self.time[use], values[use], 1)[0] if np.count_nonzero(use) > 2 else np.nan
        change = slope * (self.time[-1] - self._begun) / values[use].mean() if use.any() else np.nan
        judged = {"first_third": first, "last_third": last, "last_over_first": last / first, "fitted_change": change}
        return {what: _number(value) for what, value in judged.items()}

    def rows(self) -> list[dict[str, Any]]:
        """Every sample with the latencies before it, for the record."""
        shown = {f"{name}_p{share}_ms": self.percentile(name, share) for name in self.latencies for share in (50, 99)}
        return [
            asdict(each) | {name: _number(column[place]) for name, column in shown.items()}
            for place, each in enumerate(self.samples)
        ]


def _number(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 3)


def _percentile(parts: list[NDArray[np.float64]], chosen: NDArray[np.int64], share: float) -> float:
    together = np.concatenate([np.empty(0), *(parts[place] for place in chosen)])
    return float(np.percentile(together, share)) if together.size else np.nan


def draw(course: Course, kills: list[Kill], path: Path) -> None:
    """Memory, disk and latencies over time, with the time the service was away after each kill."""
    sizes = {"memory of the service": course.column("resident_mb"), "state directory": course.column("state_mb")}
    panels = [("MB", sizes)]
    for name in ("write", "read"):
        panels.append(("ms", {f"{name}, p{share}": course.percentile(name, share) for share in (50, 99)}))
    with style() as figure_of:
        figure = figure_of(8.0, 6.6)
        for place, (unit, lines) in enumerate(panels, 1):
            axes = figure.add_subplot(len(panels), 1, place)
            for kill in kills:
                axes.axvspan(kill.seconds / 60, (kill.seconds + kill.away) / 60, color=KILLED, alpha=0.35, linewidth=0)
            for color, (name, values) in zip(COLORS, lines.items(), strict=False):
                axes.plot(course.time / 60, course.broken(values), color=color, linewidth=1.3, label=name)
            axes.set(ylabel=unit, xlim=(0, course.time[-1] / 60))
            if unit == "ms":
                make_log(axes, "y")
            else:
                axes.set_ylim(0)
            axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        axes.set_xlabel("minutes at half of the greatest rate; orange: killed, until it is back")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(svg(figure, path.stem), encoding="utf-8")
