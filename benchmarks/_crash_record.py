"""Record of the crash test: totals over all streams, continued by later runs."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ripplevec import __version__
from ripplevec.lab.experiments.record import describe_environment


@dataclass
class StreamResult:
    """Result of one stream."""

    source: str
    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0  # last batch that was acknowledged to its sender
    batches: int = 0  # in the final state
    opened: int = 0  # times the state was opened and compared with the reference
    from_snapshot: int = 0
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Record:
    """Totals over all streams and the seed of the next one, written after every stream."""

    def __init__(self, path: Path | None, seed: int) -> None:
        self._path = path
        self.totals: dict[str, Any] = {
            "kills": 0,
            "faults": [],
            "streams": 0,
            "next_seed": seed,
            "batches": 0,
            "by_source": {},
            "by_moment": {},
            "by_version": {},
            "openings_compared": 0,
            "openings_from_a_snapshot": 0,
            "seconds": 0.0,
        }
        if path is not None and path.exists():
            self.totals = self._read(path)
        if "by_commit" not in self.totals:  # older records do not have it
            self.totals["by_commit"] = {"unknown": self.totals["kills"]} if self.totals["kills"] else {}
        self.totals["environment"] = describe_environment()  # of this run; `by_commit` counts all runs

    def _read(self, path: Path) -> dict[str, Any]:
        totals: dict[str, Any] = json.loads(path.read_text())
        if missing := self.totals.keys() - totals.keys():
            raise SystemExit(
                f"{path}: expected a record with {', '.join(sorted(missing))}. Remove it to start a new one."
            )
        return totals

    def add(self, result: StreamResult) -> None:
        """Add the result of a stream, and replace the record file atomically."""
        kills, totals = sum(result.kills.values()), self.totals
        totals["kills"] += kills
        totals["faults"] += [f"{result.source}, seed {result.seed}: {fault}" for fault in result.faults]
        totals["streams"] += 1
        totals["next_seed"] = result.seed + 1
        totals["batches"] += result.batches
        totals["openings_compared"] += result.opened
        totals["openings_from_a_snapshot"] += result.from_snapshot
        totals["seconds"] = round(totals["seconds"] + result.seconds, 1)
        for name, counts in (
            ("source", {result.source: kills}),
            ("moment", result.kills),
            ("version", {__version__: kills}),
            ("commit", {str(totals["environment"]["commit"]): kills}),
        ):
            totals[f"by_{name}"] = dict(sorted((Counter(totals[f"by_{name}"]) + Counter(counts)).items()))
        if self._path is not None:
            part = self._path.with_name(f"{self._path.name}.part")
            part.write_text(json.dumps(totals, indent=1) + "\n")
            os.replace(part, self._path)
