"""Measurements of one part of the soak test: samples over time, their trend in settled periods, and a figure."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from _service_process import ServiceProcess
from _soak_record import warm_processes
from _soak_traffic import LatencyLog
from numpy.typing import NDArray

from ripplevec.lab.experiments.plots.style import COLORS, figure_style, render_svg, set_log_scale

DOWNTIME_COLOR = "#d55e00"
ON_TIME_SECONDS = 1.0  # delay up to which a stream counts as on time
PROBES = {"write": "work", "read": "health", "nearest": "health"}
"""For each kind of request, the probe of similar length: other programs on the machine slow down both alike."""


@dataclass(frozen=True, slots=True)
class Sample:
    """State of the service at one moment; `settled`: warmed up, on time, and with a full feed of changes."""

    seconds: float
    resident_mb: float
    state_mb: float
    handles: int
    batches: int
    processor_seconds: float  # of the service since it was started
    load_average: float  # of the machine
    settled: bool


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill: its time, the downtime (`away`), the recovery time in it, and the number of batches replayed."""

    seconds: float
    away: float
    recovery: float
    replayed: int


def take_sample(service: ServiceProcess, state: Path, seconds: float, batches: int, calm: bool) -> Sample | None:
    """Measure the service; return None while it is down. `calm`: the warm-up is over and the stream is on time."""
    try:
        feed = service.get("/v1/stats")[1]["feed"]
        process = psutil.Process(service.process.pid)
        resident, handles = process.memory_info().rss / 2**20, process.num_fds()
        processor = sum(process.cpu_times()[:2])
    except (psutil.Error, OSError, HTTPException, KeyError):
        return None
    # A restarted service begins with an empty feed; the feed is full once it has dropped a batch received since then.
    feed_full = feed["oldest"] > service.ready_event()["sequence"]
    sizes = round(resident, 1), round(_directory_bytes(state) / 2**20, 1)
    load = round(os.getloadavg()[0], 1)
    return Sample(round(seconds, 2), *sizes, handles, batches, round(processor, 2), load, calm and feed_full)


def _directory_bytes(folder: Path) -> int:
    """Return the bytes in a folder; files may be removed meanwhile."""
    total = 0
    for place, _, names in os.walk(folder):  # skips folders that were removed; `rglob` fails there
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total


class SoakSeries:
    """Samples of a soak part, with the latencies between them."""

    def __init__(
        self, samples: list[Sample], logs: dict[str, LatencyLog], warmup: float, kills: Sequence[Kill] = ()
    ) -> None:
        self._warmup = warmup  # seconds before the evaluated period
        self.time = np.array([sample.seconds for sample in samples])
        self.settled = np.array([sample.settled for sample in samples], bool)
        self.settled[1:] &= self.settled[:-1]  # an interval is settled if both of its ends are
        self.samples = samples
        killed = [kill.seconds for kill in kills]
        self.warm = warm_processes(self.time, self.column("batches"), killed) >= 0  # memory is evaluated here
        self.latencies = {name: self._by_interval(np.array(log).reshape(-1, 2)) for name, log in logs.items()}

    def _by_interval(self, log: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Return the milliseconds of the requests between each sample and the previous one."""
        interval = np.searchsorted(self.time, log[:, 0])
        return [1000 * log[interval == number, 1] for number in range(len(self.time))]

    def percentile(self, name: str, share: float) -> NDArray[np.float64]:
        """Return a latency percentile of every interval; NaN if it has no requests."""
        return np.array([np.percentile(part, share) if part.size else np.nan for part in self.latencies[name]])

    def column(self, name: str) -> NDArray[np.float64]:
        """Return one field of all samples."""
        return np.array([getattr(sample, name) for sample in self.samples], np.float64)

    def relative(self, name: str, share: float) -> NDArray[np.float64]:
        """Return a latency percentile of every interval relative to that of the probe."""
        return self.percentile(name, share) / self.percentile(PROBES[name], share)

    def processor_ms_per_batch(self) -> NDArray[np.float64]:
        """Return the processor time of the service per batch in every interval; NaN if it was restarted or idle."""
        seconds, batches = (np.diff(self.column(name), prepend=np.nan) for name in ("processor_seconds", "batches"))
        usable = (seconds >= 0) & (batches > 0)
        return np.where(usable, 1000 * seconds / np.where(usable, batches, 1), np.nan)

    def break_at_downtime(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Replace the first value after each downtime by NaN, so that no line is drawn across it."""
        steps = np.diff(self.time, prepend=self.time[0])
        return np.where(steps > 2 * np.median(steps), np.nan, values)

    def flatness(self) -> dict[str, dict[str, float | None]]:
        """Compare the first and the last third of the settled time for every metric that should stay constant."""
        trends = {"resident_mb": self._column_trend(self.column("resident_mb"), self.warm)}
        trends |= {name: self._column_trend(self.column(name)) for name in ("state_mb", "handles")}
        trends["processor_ms_per_batch"] = self._column_trend(self.processor_ms_per_batch())
        for share in (50, 99):
            for name in self.latencies:
                trends[f"{name}_p{share}_ms"] = self._latency_trend(name, share)
            for name, probe in PROBES.items():
                trends[f"{name}_p{share}_over_{probe}"] = self._relative_trend(name, probe, share)
        return trends

    def after_kills(self) -> dict[str, float | None]:
        """Return the latencies of the unsettled periods, which `flatness` leaves out."""
        unsettled = np.flatnonzero(~self.settled & (self.time > self._warmup))
        return {
            f"{name}_p{share}_ms": _number(_percentile(parts, unsettled, share))
            for name, parts in self.latencies.items()
            for share in (50, 99)
        }

    def _thirds(self, used: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the used intervals in the first and in the last third of the evaluated time."""
        third = (self.time[-1] - self._warmup) / 3
        first, last = self.time < self._warmup + third, self.time > self.time[-1] - third
        return np.flatnonzero(first & used), np.flatnonzero(last & used)

    def _column_trend(
        self, values: NDArray[np.float64], used: NDArray[np.bool_] | None = None
    ) -> dict[str, float | None]:
        used = self.settled if used is None else used & (self.time > self._warmup)
        thirds = (values[part] for part in self._thirds(used))
        first, last = (float(np.nanmean(third)) if np.isfinite(third).any() else np.nan for third in thirds)
        return self._trend(first, last, values, used)

    def _latency_trend(self, name: str, share: float) -> dict[str, float | None]:
        return self._trend(*self._latency_of_thirds(name, share), self.percentile(name, share), self.settled)

    def _relative_trend(self, name: str, probe: str, share: float) -> dict[str, float | None]:
        latencies, probes = self._latency_of_thirds(name, share), self._latency_of_thirds(probe, share)
        first, last = (latency / of_probe for latency, of_probe in zip(latencies, probes, strict=True))
        return self._trend(first, last, self.relative(name, share), self.settled)

    def _latency_of_thirds(self, name: str, share: float) -> tuple[float, float]:
        first, last = self._thirds(self.settled)
        return _percentile(self.latencies[name], first, share), _percentile(self.latencies[name], last, share)

    def _trend(
        self, first: float, last: float, values: NDArray[np.float64], used: NDArray[np.bool_]
    ) -> dict[str, float | None]:
        """Return the first and last third, their ratio, and the change of a fitted line relative to the mean."""
        use = used & ~np.isnan(values)
        slope = np.polyfit(self.time[use], values[use], 1)[0] if np.count_nonzero(use) > 2 else np.nan
        change = slope * (self.time[-1] - self._warmup) / values[use].mean() if use.any() else np.nan
        trend = {"first_third": first, "last_third": last, "last_over_first": last / first, "fitted_change": change}
        return {name: _number(value) for name, value in trend.items()}

    def rows(self) -> list[dict[str, Any]]:
        """Return every sample with the latencies before it, for the record."""
        percentiles = {
            f"{name}_p{share}_ms": self.percentile(name, share) for name in self.latencies for share in (50, 99)
        }
        return [
            asdict(sample) | {name: _number(column[number]) for name, column in percentiles.items()}
            for number, sample in enumerate(self.samples)
        ]


def _number(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 3)


def _percentile(parts: list[NDArray[np.float64]], chosen: NDArray[np.int64], share: float) -> float:
    latencies = np.concatenate([np.empty(0), *(parts[number] for number in chosen)])
    return float(np.percentile(latencies, share)) if latencies.size else np.nan


def draw(series: SoakSeries, kills: list[Kill], load: float, path: Path) -> None:
    """Draw memory, disk space, and latencies with their probes over time, with the downtime after each kill."""
    sizes = {"memory of the service": series.column("resident_mb"), "state directory": series.column("state_mb")}
    panels = [("MB", sizes)]
    for name, probe in [("write", "work"), ("read", "health")]:
        lines = {f"{name}, p{share}": series.percentile(name, share) for share in (50, 99)}
        panels.append(("ms", lines | {f"probe ({probe}), p50": series.percentile(probe, 50)}))
    with figure_style() as create_figure:
        figure = create_figure(8.0, 6.6)
        for number, (unit, lines) in enumerate(panels, 1):
            axes = figure.add_subplot(len(panels), 1, number)
            for kill in kills:
                axes.axvspan(
                    kill.seconds / 60, (kill.seconds + kill.away) / 60, color=DOWNTIME_COLOR, alpha=0.35, linewidth=0
                )
            for color, (name, values) in zip(COLORS, lines.items(), strict=False):
                axes.plot(series.time / 60, series.break_at_downtime(values), color=color, linewidth=1.3, label=name)
            axes.set(ylabel=unit, xlim=(0, series.time[-1] / 60))
            if unit == "ms":
                set_log_scale(axes, "y")
            else:
                axes.set_ylim(0)
            axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
        axes.set_xlabel(f"minutes at {load:.0%} of the maximum rate; orange: downtime after a kill".replace("%", " %"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_svg(figure, path.stem), encoding="utf-8")
