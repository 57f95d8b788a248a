"""An anchor computed in the background while batches continue, and adopted at a reproducible position in the stream.

The computation starts after batch `since`. When the model has processed `until` events, the next batch first prepares
the result, while readers continue, and adopts it. A graph that grows fast adopts it earlier. Both positions depend on
the stream alone and not on the speed of the computation, so a replay reproduces them exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph.adjacency import RowArray
from ripplevec.graph.graph import strip_prefix
from ripplevec.rules.anchor import Correction, PreparedCorrection, TouchedRows
from ripplevec.rules.ripple import RippleRule
from ripplevec.rules.vector_store import VectorStore
from ripplevec.util.parallel import run_in_background

MAX_REFRESH_STEPS = 32
"""Maximum number of steps in which rows touched in the meantime are refreshed in the new coordinates."""


@dataclass(slots=True)
class BackgroundAnchor:
    """An anchor of the state after batch `since`, to be adopted by the first batch after `until` events."""

    since: int  # sequence number
    until: int  # number of events since the model began
    correction: Future[Correction] | None = None  # None until it is started
    touched: list[TouchedRows] = field(default_factory=list)  # by each batch since then
    shared: bool = False  # whether a copy of the state uses the correction too, so that it must not be modified

    def start(self, rule: RippleRule, store: VectorStore) -> None:
        """Start computing an anchor of the current state on another thread."""
        self.correction = _submit(rule.plan_correction(store, self.since))

    def record_touched(self, rows: RowArray, store: VectorStore) -> None:
        """Record the rows that a batch has moved, to be refreshed in the new coordinates."""
        self.touched.append(TouchedRows(rows, store.graph.arrival[rows]))

    def result(self) -> Correction:
        """Return the correction; wait until it is computed."""
        if self.correction is None:
            raise RuntimeError("background anchor: expected a started anchor, got none. Call start() first.")
        return self.correction.result()

    def prepare(self, rule: RippleRule, store: VectorStore, threshold: float) -> PreparedCorrection:
        """Bring the correction up to date with the current state, which is only read."""
        correction = self.result()
        if self.shared:
            correction = correction._replace(rows=store.make_rows(correction.rows.array))
        return rule.prepare_correction(store, correction, _merge_touched(self.touched), self.until, threshold)

    def copy(self) -> BackgroundAnchor:
        """Return a copy that later batches and adoptions do not affect."""
        self.shared = True
        return replace(self, touched=list(self.touched))

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the anchor as arrays, for saving; wait until it is computed."""
        rows, arrival = (
            np.concatenate([np.empty(0, np.int64), *(getattr(each, name) for each in self.touched)])
            for name in ("rows", "arrival")
        )
        sizes = np.array([each.rows.size for each in self.touched], np.int64)
        arrays = {"batches": np.array([self.since, self.until]), "rows": rows, "arrival": arrival, "sizes": sizes}
        return {**{f"touched_{name}": array for name, array in arrays.items()}, **self.result().state()}

    @classmethod
    def from_state(cls, state: dict[str, NDArray[Any]], rule: RippleRule, store: VectorStore) -> BackgroundAnchor:
        """Restore an anchor from the arrays of `state`."""
        saved, correction = strip_prefix("touched_", state), Future[Correction]()
        correction.set_result(rule.correction_from_state(state, store))
        since, until = saved["batches"].tolist()
        ends = np.cumsum(saved["sizes"])
        parts = (np.split(saved[name], ends)[:-1] for name in ("rows", "arrival"))
        return cls(since, until, correction, list(map(TouchedRows, *parts)))


def _merge_touched(touched: list[TouchedRows]) -> list[TouchedRows]:
    """Merge touched rows into a bounded number of steps; many small batches would take as long as the anchor itself."""
    if len(touched) <= MAX_REFRESH_STEPS:
        return touched
    ends = [len(touched) * step // MAX_REFRESH_STEPS for step in range(MAX_REFRESH_STEPS + 1)]
    return [_union(touched[first:last]) for first, last in pairwise(ends)]


def _union(touched: list[TouchedRows]) -> TouchedRows:
    """Return the rows of several batches, each once, with the arrival numbers of the last batch that touched them."""
    rows, arrival = (np.concatenate(part)[::-1] for part in zip(*touched, strict=True))
    rows, last = np.unique(rows, return_index=True)
    return TouchedRows(rows, arrival[last])


def _submit(work: Callable[[], Correction]) -> Future[Correction]:
    pool = ThreadPoolExecutor(1, thread_name_prefix="ripplevec-anchor")
    try:
        return pool.submit(run_in_background, work)
    finally:
        pool.shutdown(wait=False)
