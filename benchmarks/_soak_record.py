"""Record of the soak test: its parts, and metrics over all of them."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

BIN_RATIO = 1.05  # of two neighboring latency bins: percentiles over all parts are exact to five percent
SAMPLES_PER_PART = 60  # number of samples kept in the record
SHARED_OPTIONS = ("vertices", "arrivals", "dim", "seed")  # must be equal in all parts


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
        self.content: dict[str, Any] = {name: plan[name] for name in SHARED_OPTIONS} | {"hours": 0.0, "parts": []}
        if path is not None and path.exists():
            saved = json.loads(path.read_text())
            if any(saved.get(name) != plan[name] for name in SHARED_OPTIONS) or "parts" not in saved:
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
        "memory_mb_per_hour": memory_slope(parts),
        "latency_ms": {name: _percentiles(parts, name) for name in parts[0]["latency_bins"]},
    }


def _percentiles(parts: list[dict[str, Any]], name: str) -> dict[str, float | None]:
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part["latency_bins"][name])
    return {f"p{share:g}": percentile(counts, share) for share in (50, 99, 99.9)}


def memory_slope(parts: list[dict[str, Any]]) -> float | None:
    """Fit a line through the settled samples of all parts in sequence; return its slope in megabytes per hour."""
    hours, memory, before = [], [], 0.0
    for part in parts:
        for sample in part["samples"]:
            if sample["settled"]:
                hours.append(before + sample["seconds"] / 3600)
                memory.append(sample["resident_mb"])
        before += part["minutes"] / 60
    return round(float(np.polyfit(hours, memory, 1)[0]), 2) if len(hours) > 2 else None


def thin_out(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return samples at equal distances, so that the record of many parts stays small."""
    chosen = np.unique(np.linspace(0, len(rows) - 1, min(SAMPLES_PER_PART, len(rows))).astype(int))
    return [rows[number] for number in chosen]
