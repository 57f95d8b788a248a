"""An anchor on its way: worked out in the background while batches go on, taken over a fixed number of them later.

It is begun once batch `since` is complete, and prepared before batch `until` changes anything: readers go on meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplet.graph.graph import under
from ripplet.parallel import in_background
from ripplet.rules.anchor import Correction, Rows, TakeOver, Touched
from ripplet.rules.field import Field
from ripplet.rules.ripple import RippleRule


@dataclass(slots=True)
class Pending:
    """What is worked out on a copy of the state after batch `since` and is taken over with batch `until`."""

    since: int
    until: int
    correction: Future[Correction] | None = None  # None until it is begun
    touched: list[Touched] = field(default_factory=list)  # by every batch since then
    shared: bool = False  # whether a copy of the state has the correction too, so that it must stay as it is

    def begin(self, rule: RippleRule, vectors: Field) -> None:
        """Have an anchor of the state as it is now worked out by another thread."""
        self.correction = _in_background(rule.correction(vectors, self.since))

    def note(self, rows: Rows, vectors: Field) -> None:
        """Remember what a batch has moved, to move it again."""
        self.touched.append(Touched(rows, vectors.graph.arrival[rows]))

    def result(self) -> Correction:
        """What was worked out; waits for it if need be."""
        if self.correction is None:
            raise RuntimeError("the anchor has not been begun")
        return self.correction.result()

    def prepare(self, rule: RippleRule, vectors: Field, threshold: float) -> TakeOver:
        """What it makes of the state as it is now, which is only read."""
        correction = self.result()
        if self.shared:
            correction = correction._replace(rows=vectors.filled(correction.rows.array))
        return rule.prepare(vectors, correction, self.touched, self.until, threshold)

    def copy(self) -> Pending:
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
    def from_state(cls, state: dict[str, NDArray[Any]], rule: RippleRule, vectors: Field) -> Pending:
        """What `state` wrote down."""
        own, correction = under("touched_", state), Future[Correction]()
        correction.set_result(rule.correction_from(state, vectors))
        since, until = own["batches"].tolist()
        ends = np.cumsum(own["sizes"])
        parts = (np.split(own[name], ends)[:-1] for name in ("rows", "arrival"))
        return cls(since, until, correction, list(map(Touched, *parts)))


def _in_background(work: Callable[[], Correction]) -> Future[Correction]:
    pool = ThreadPoolExecutor(1, thread_name_prefix="ripplet-anchor")
    try:
        return pool.submit(in_background, work)
    finally:
        pool.shutdown(wait=False)
