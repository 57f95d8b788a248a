"""The record of the crash test: what all streams so far went through. A later run continues it."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ripplevec import __version__


@dataclass
class Stream:
    """What one stream went through."""

    source: str
    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0  # the last batch whose sender was told that it is safe
    batches: int = 0  # in the state at the end
    opened: int = 0  # how often the state was opened and compared with the reference
    from_snapshot: int = 0
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Record:
    """Totals over all streams, with the seed of the next one; written after every stream."""

    def __init__(self, path: Path | None, seed: int) -> None:
        self._path = path
        self.found: dict[str, Any] = {
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
            self.found = self._read(path)

    def _read(self, path: Path) -> dict[str, Any]:
        found = json.loads(path.read_text())
        if missing := self.found.keys() - found.keys():
            raise SystemExit(f"{path}: expected a record with {', '.join(sorted(missing))}. Remove it to begin anew.")
        return found

    def add(self, one: Stream) -> None:
        """Count a stream, and write the record: it is there whole, before or after."""
        kills, found = sum(one.kills.values()), self.found
        found["kills"] += kills
        found["faults"] += [f"{one.source}, seed {one.seed}: {fault}" for fault in one.faults]
        found["streams"] += 1
        found["next_seed"] = one.seed + 1
        found["batches"] += one.batches
        found["openings_compared"] += one.opened
        found["openings_from_a_snapshot"] += one.from_snapshot
        found["seconds"] = round(found["seconds"] + one.seconds, 1)
        for name, counts in (("source", {one.source: kills}), ("moment", one.kills), ("version", {__version__: kills})):
            found[f"by_{name}"] = dict(sorted((Counter(found[f"by_{name}"]) + Counter(counts)).items()))
        if self._path is not None:
            part = self._path.with_name(f"{self._path.name}.part")
            part.write_text(json.dumps(found, indent=1) + "\n")
            os.replace(part, self._path)
