"""Record of the soak test: its parts, and metrics over all of them."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

BIN_RATIO = 1.05  # of two neighboring latency bins: percentiles over all parts are exact to five percent
SAMPLES_PER_PART = 60  # number of samples kept in the record
WARM_BATCHES = 1000  # of a process; until then its allocator still takes memory, although the state keeps its size
SHARED_OPTIONS = ("vertices", "arrivals", "dim", "seed", "shards")  # must be equal in all parts


def count_by_bin(milliseconds: np.ndarray[Any, Any]) -> dict[str, int]:
    """Count the latencies in each bin; the keys are the bin numbers."""
    numbers = np.ceil(np.log(np.maximum(milliseconds, 1e-3)) / math.log(BIN_RATIO)).astype(int)
    return {str(number): count for number, count in sorted(Counter(numbers.tolist()).items())}


def percentile(counts: dict[str, int], share: float) -> float | None:
    """Return the upper end of the bin that contains a percentile."""
    total, seen = sum(counts.values()), 0
    for number in sorted(map(int, counts)):
        seen += counts[str(number)]
        if seen >= share / 100 * total:
            return round(BIN_RATIO**number, 3)
    return None


class SoakRecord:
    """Record file of a soak test; all parts must have the same size and seed."""

    def __init__(self, path: Path | None, plan: dict[str, Any]) -> None:
        self._path = path
        self.content: dict[str, Any] = {name: plan.get(name) for name in SHARED_OPTIONS} | {"hours": 0.0, "parts": []}
        if path is not None and path.exists():
            saved = json.loads(path.read_text())
            if any(saved.get(name) != plan.get(name) for name in SHARED_OPTIONS) or "parts" not in saved:
                raise SystemExit(f"{path}: expected parts with {self.content}. Remove it to start a new one.")
            self.content = saved

    def add(self, part: dict[str, Any]) -> None:
        """Add a part, and replace the record file atomically."""
        self.content["parts"].append(part)
        self.content["hours"] = round(sum(each["minutes"] for each in self.content["parts"]) / 60, 3)
        self.content["overall"] = summarize(self.content["parts"])
        if self._path is not None:
            draft = self._path.with_name(f"{self._path.name}.part")
            draft.write_text(json.dumps(self.content, indent=1) + "\n")
            os.replace(draft, self._path)


def summarize(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return metrics over all parts."""
    sums = ("batches", "anchors", "snapshots", "reads", "searches", "looks_at_changes", "killed", "sent_again")
    downtimes = [kill["away"] for part in parts for kill in part["kills_at"]]
    totals: dict[str, Any] = {name: sum(part[name] for part in parts) for name in sums}
    return totals | {
        "faults": [fault for part in parts for fault in part["faults"]],
        "continued_parts": sum(part["continued"] for part in parts),
        "away_seconds_median": round(median(downtimes), 2) if downtimes else None,
        "away_seconds_longest": round(max(downtimes), 2) if downtimes else None,
        **describe_memory(parts),
        "latency_ms": {name: _percentiles(parts, name) for name in parts[0]["latency_bins"]},
    }


def describe_memory(parts: list[dict[str, Any]]) -> dict[str, float | None]:
    """Return the memory trend for the record."""
    trend = memory_trend(parts)
    return {
        "memory_mb_per_hour": None if trend is None else trend.slope,
        "memory_mb_per_hour_error": None if trend is None else trend.error,
        "memory_hours": 0.0 if trend is None else trend.hours,
    }


def _percentiles(parts: list[dict[str, Any]], name: str) -> dict[str, float | None]:
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part["latency_bins"][name])
    return {f"p{share:g}": percentile(counts, share) for share in (50, 99, 99.9)}


@dataclass(frozen=True, slots=True)
class MemoryTrend:
    """Slope of a process's memory over its life in megabytes per hour, its standard error, and the hours observed."""

    slope: float
    error: float
    hours: float


def warm_processes(
    seconds: NDArray[np.float64], batches: NDArray[np.float64], kills: Sequence[float]
) -> NDArray[np.int64]:
    """Return for each sample the number of kills before it; -1 until the process has applied `WARM_BATCHES`."""
    process = np.searchsorted(np.asarray(kills, np.float64), seconds)
    first = {number: batches[process == number].min() for number in np.unique(process).tolist()}
    age = batches - np.array([first[number] for number in process.tolist()])
    return np.where(age >= WARM_BATCHES, process, -1)


def memory_trend(parts: list[dict[str, Any]]) -> MemoryTrend | None:
    """Fit lines with a common slope through the memory of each warm process; None if none ran long enough.

    A restart changes the level, and a process that has just started still grows: a line through all samples would
    show when the service was killed.
    """
    lives = [life for part in parts for life in _warm_lives(part)]
    hours, memory = (np.concatenate([np.empty(0), *(life[row] - life[row].mean() for life in lives)]) for row in (0, 1))
    freedom = hours.size - len(lives) - 1
    if freedom < 1:
        return None
    slope = float(hours @ memory / (hours @ hours))
    variance = float(np.square(memory - slope * hours).sum()) / freedom
    observed = sum(float(np.ptp(life[0])) for life in lives)
    return MemoryTrend(round(slope, 2), round(math.sqrt(variance / float(hours @ hours)), 2), round(observed, 3))


def _warm_lives(part: dict[str, Any]) -> list[NDArray[np.float64]]:
    """Return the hours and the memory of each process of a part since it was warm; at least three samples."""
    names = ("seconds", "batches", "resident_mb")
    seconds, batches, memory = (np.array([sample[name] for sample in part["samples"]], np.float64) for name in names)
    process = warm_processes(seconds, batches, [kill["seconds"] for kill in part["kills_at"]])
    lives = [np.stack([seconds / 3600, memory])[:, process == number] for number in np.unique(process[process >= 0])]
    return [life for life in lives if life.shape[1] > 2]


def thin_out(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return samples at equal distances, so that the record of many parts stays small."""
    chosen = np.unique(np.linspace(0, len(rows) - 1, min(SAMPLES_PER_PART, len(rows))).astype(int))
    return [rows[number] for number in chosen]
