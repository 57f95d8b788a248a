"""A batch in steps that all shards take together, the driver seeing no row and no vector.

The same steps as `rules/_kernels.ripple`, in the same order: what is read in a step was there before it, so that it
does not matter who has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplet.cluster.crew import Crew
from ripplet.cluster.shares import rows_by_shard

Rows = NDArray[np.int64]


class Steps:
    """One batch on its way."""

    def __init__(self, crew: Crew, sequence: int, depth: int) -> None:
        self.crew, self.sequence, self.depth = crew, sequence, depth

    def take(self, arrived: Rows, numbers: Rows, wave: Rows, reads: int) -> list[Rows]:
        """Let the vectors follow the graph; per shard the rows that may have moved.

        `arrived` are the codes of the newcomers with their numbers, in order, and the wave of each; `reads` are the
        rows that may be read beyond them.
        """
        crew, shards = self.crew, self.crew.size
        order = np.argsort(arrived)
        mine, fresh = rows_by_shard(arrived, shards), arrived[order]
        crew.call("ripple", mine, fresh=fresh, numbers=numbers[order], sequence=self.sequence)
        self._admit(arrived, wave)
        self._place()
        self._rounds(reads)
        marks = self._given(crew.call("want_marks", parts=shards), "marks")
        wanted = crew.call("see_outdated", *marks, parts=shards)
        return crew.get(crew.call("finish", *self._given(wanted, "vectors")))

    def _given(self, wanted: Sequence[Any], kind: str) -> list[Any]:
        """What each shard wants of each: had from there, to be handed on unseen."""
        return self.crew.call("give", *wanted, kind=kind, parts=self.crew.size)

    def _admit(self, arrived: Rows, wave: Rows) -> None:
        crew, shards = self.crew, self.crew.size
        for turn in range(int(wave.max(initial=-1)) + 1):
            wanted = crew.call("want_to_admit", rows_by_shard(arrived[wave == turn], shards), parts=shards)
            crew.call("admit", *self._given(wanted, "and_places"))

    def _place(self) -> None:
        """Place, ring by ring, who has come to have a placed neighbour. Hardly ever is there anybody."""
        crew, shards = self.crew, self.crew.size
        answers = crew.call("settle", parts=shards + 1)
        wanted, first = [parts[:-1] for parts in answers], True
        left = sum(crew.get([parts[-1] for parts in answers]))
        while left:
            candidates = crew.call("place", *self._given(wanted, "and_places"), first=first, parts=shards)
            left, first = sum(crew.get(crew.call("expect", *candidates))), False
            wanted = crew.call("want_to_place", parts=shards)

    def _rounds(self, left: int) -> None:
        """Refresh the front and let it spread, until it is empty, deep enough or has read enough."""
        crew, depth = self.crew, 0
        front = sum(crew.get(crew.call("shake")))
        while True:
            limit = left // (2 * max(1, front))
            if limit == 0:
                return
            if front:
                how = {"limit": limit, "depth": depth}
                given = self._given(crew.call("want_to_refresh", **how, parts=crew.size), "vectors")
                left -= sum(crew.get(crew.call("refresh", *given, **how)))
            if depth == self.depth:
                return
            depth += 1
            limit = max(1, left // (2 * max(1, front)))
            spread = crew.call("spread", limit=limit, depth=depth, parts=crew.size + 1)
            front = sum(crew.get(crew.call("reached", *(parts[:-1] for parts in spread), depth=depth)))
            left -= sum(crew.get([parts[-1] for parts in spread]))
            if not front:
                return
