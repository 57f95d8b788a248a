"""The record of a soak in parts: each part as it was, and figures over all of them."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

STEP = 1.05  # between two bins of latencies: percentiles over all parts are exact to five percent
SAMPLES = 60  # of a part that are kept
SAME = ("vertices", "arrivals", "dim", "seed")  # of all parts


def bins(milliseconds: np.ndarray[Any, Any]) -> dict[str, int]:
    """How many latencies lie in each bin, by the number of the bin."""
    numbers = np.ceil(np.log(np.maximum(milliseconds, 1e-3)) / math.log(STEP)).astype(int)
    return {str(number): count for number, count in sorted(Counter(numbers.tolist()).items())}


def percentile(counts: dict[str, int], share: float) -> float | None:
    """The upper end of the bin that a share of the latencies does not exceed."""
    total, seen = sum(counts.values()), 0
    for number in sorted(map(int, counts)):
        seen += counts[str(number)]
        if seen >= share / 100 * total:
            return round(STEP**number, 3)
    return None


class Parts:
    """The parts of a record file; those of another size or seed do not belong together."""

    def __init__(self, path: Path | None, plan: dict[str, Any]) -> None:
        self._path = path
        self.found: dict[str, Any] = {name: plan[name] for name in SAME} | {"hours": 0.0, "parts": []}
        if path is not None and path.exists():
            there = json.loads(path.read_text())
            if any(there.get(name) != plan[name] for name in SAME) or "parts" not in there:
                raise SystemExit(f"{path}: expected parts with {self.found}. Remove it to begin anew.")
            self.found = there

    def add(self, part: dict[str, Any]) -> None:
        """Add a part, and write the record: it is there whole, before or after."""
        self.found["parts"].append(part)
        self.found["hours"] = round(sum(each["minutes"] for each in self.found["parts"]) / 60, 3)
        self.found["overall"] = overall(self.found["parts"])
        if self._path is not None:
            draft = self._path.with_name(f"{self._path.name}.part")
            draft.write_text(json.dumps(self.found, indent=1) + "\n")
            os.replace(draft, self._path)


def overall(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Figures over all parts."""
    sums = ("batches", "anchors", "snapshots", "reads", "searches", "looks_at_changes", "killed", "sent_again")
    away = [kill["away"] for part in parts for kill in part["kills_at"]]
    found: dict[str, Any] = {name: sum(part[name] for part in parts) for name in sums}
    return found | {
        "faults": [fault for part in parts for fault in part["faults"]],
        "continued_parts": sum(part["continued"] for part in parts),
        "away_seconds_median": round(median(away), 2) if away else None,
        "away_seconds_longest": round(max(away), 2) if away else None,
        "memory_mb_per_hour": slope(parts),
        "latency_ms": {name: _percentiles(parts, name) for name in parts[0]["latency_bins"]},
    }


def _percentiles(parts: list[dict[str, Any]], name: str) -> dict[str, float | None]:
    together: Counter[str] = Counter()
    for part in parts:
        together.update(part["latency_bins"][name])
    return {f"p{share:g}": percentile(together, share) for share in (50, 99, 99.9)}


def slope(parts: list[dict[str, Any]]) -> float | None:
    """Megabytes per hour of a line through the settled samples of all parts, one part behind the other."""
    hours, memory, before = [], [], 0.0
    for part in parts:
        for each in part["samples"]:
            if each["settled"]:
                hours.append(before + each["seconds"] / 3600)
                memory.append(each["resident_mb"])
        before += part["minutes"] / 60
    return round(float(np.polyfit(hours, memory, 1)[0]), 2) if len(hours) > 2 else None


def thinned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Samples at equal distances, so that the record of many parts stays small."""
    chosen = np.unique(np.linspace(0, len(rows) - 1, min(SAMPLES, len(rows))).astype(int))
    return [rows[place] for place in chosen]
