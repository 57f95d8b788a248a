"""An anchor on its way: worked out in the background while batches go on, taken over a number of events later.

It is begun once batch `since` is complete, and prepared before the first batch after `until` events changes anything:
readers go on meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph.graph import strip_prefix
from ripplevec.rules.anchor import Correction, PreparedCorrection, Rows, TouchedRows
from ripplevec.rules.ripple import RippleRule
from ripplevec.rules.vector_store import VectorStore
from ripplevec.util.parallel import run_in_background

STEPS = 32
"""In how many steps the rows that batches have touched meanwhile are refreshed in the new coordinates, at most."""


@dataclass(slots=True)
class BackgroundAnchor:
    """What is worked out on a copy of the state after batch `since`, for the first batch after `until` events."""

    since: int
    until: int
    correction: Future[Correction] | None = None  # None until it is begun
    touched: list[TouchedRows] = field(default_factory=list)  # by every batch since then
    shared: bool = False  # whether a copy of the state has the correction too, so that it must stay as it is

    def begin(self, rule: RippleRule, vectors: VectorStore) -> None:
        """Have an anchor of the state as it is now worked out by another thread."""
        self.correction = _in_background(rule.correction(vectors, self.since))

    def note(self, rows: Rows, vectors: VectorStore) -> None:
        """Remember what a batch has moved, to move it again."""
        self.touched.append(TouchedRows(rows, vectors.graph.arrival[rows]))

    def result(self) -> Correction:
        """What was worked out; waits for it if need be."""
        if self.correction is None:
            raise RuntimeError("the anchor has not been begun")
        return self.correction.result()

    def prepare(self, rule: RippleRule, vectors: VectorStore, threshold: float) -> PreparedCorrection:
        """What it makes of the state as it is now, which is only read."""
        correction = self.result()
        if self.shared:
            correction = correction._replace(rows=vectors.make_rows(correction.rows.array))
        return rule.prepare(vectors, correction, _merged(self.touched), self.until, threshold)

    def copy(self) -> BackgroundAnchor:
        """As it stands now, whatever is touched or taken over later."""
        self.shared = True
        return replace(self, touched=list(self.touched))

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything as plain arrays; waits until it is worked out."""
        rows, arrival = (
            np.concatenate([np.empty(0, np.int64), *(getattr(each, name) for each in self.touched)])
            for name in ("rows", "arrival")
        )
        sizes = np.array([each.rows.size for each in self.touched], np.int64)
        own = {"batches": np.array([self.since, self.until]), "rows": rows, "arrival": arrival, "sizes": sizes}
        return {**{f"touched_{name}": array for name, array in own.items()}, **self.result().state()}

    @classmethod
    def from_state(cls, state: dict[str, NDArray[Any]], rule: RippleRule, vectors: VectorStore) -> BackgroundAnchor:
        """What `state` wrote down."""
        own, correction = strip_prefix("touched_", state), Future[Correction]()
        correction.set_result(rule.correction_from_state(state, vectors))
        since, until = own["batches"].tolist()
        ends = np.cumsum(own["sizes"])
        parts = (np.split(own[name], ends)[:-1] for name in ("rows", "arrival"))
        return cls(since, until, correction, list(map(TouchedRows, *parts)))


def _merged(touched: list[TouchedRows]) -> list[TouchedRows]:
    """What batches have touched, in a bounded number of steps: many small batches would take as long as the anchor."""
    if len(touched) <= STEPS:
        return touched
    ends = [len(touched) * step // STEPS for step in range(STEPS + 1)]
    return [_union(touched[first:last]) for first, last in pairwise(ends)]


def _union(touched: list[TouchedRows]) -> TouchedRows:
    """The rows of several batches, each once, and whose they were in the last of them."""
    rows, arrival = (np.concatenate(part)[::-1] for part in zip(*touched, strict=True))
    rows, last = np.unique(rows, return_index=True)
    return TouchedRows(rows, arrival[last])


def _in_background(work: Callable[[], Correction]) -> Future[Correction]:
    pool = ThreadPoolExecutor(1, thread_name_prefix="ripplevec-anchor")
    try:
        return pool.submit(run_in_background, work)
    finally:
        pool.shutdown(wait=False)
