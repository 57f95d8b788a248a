"""A batch in steps that all shards take together, the driver seeing no row and no vector.

The same steps as `rules/_kernels.ripple`, in the same order: what is read in a step was there before it, so that it
does not matter who has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.cluster.routing import split_positions
from ripplevec.cluster.transport import Transport
from ripplevec.rules.ripple import RippleRule

Rows = NDArray[np.int64]
Parts = list[Sequence[Any]]
"""By shard, what it has for each shard: handed on unseen."""


class BatchResult(NamedTuple):
    """What has come of a batch."""

    moved: list[Rows]  # per shard, the rows that may have
    edges: int  # that there are,
    changed: int  # and that have changed
    shortened: int  # rows that were made longer than they may be, and scaled back


class BatchProtocol:
    """One batch on its way."""

    def __init__(self, transport: Transport, rule: RippleRule, sequence: int) -> None:
        self.transport, self.rule, self.sequence = transport, rule, sequence
        self.ringed = False  # whether vertices were placed that had been known before

    def take(self, arrived: Rows, when: tuple[Rows, Rows], first_new: int, gone: Rows) -> BatchResult:
        """Let the vectors follow the graph.

        `arrived` are the codes of the newcomers, in order, and `when` says in which wave and turn each is admitted;
        they have numbers from `first_new` on. `gone` are the numbers of those who are no longer there.
        """
        transport, waves = self.transport, int(when[0].max(initial=-1)) + 1
        by_shard = split_positions(arrived % transport.size, transport.size)
        newcomers = [[column[places] for places in by_shard] for column in (arrived // transport.size, *when)]
        how = {"first_new": first_new, "gone": gone, "waves": waves, "sequence": self.sequence}
        shown, left, counts = self._told("begin_batch", *newcomers, **how, notes=2)
        for number in range(waves):
            shown, left = self._told("admit_wave", *shown, wave=number)
        if sum(transport.get(left)):
            self._place()
        edges, changed, known = map(sum, zip(*transport.get(counts), strict=True))
        shown = self._rounds(shown, self.rule.max_reads * max(arrived.size + known, 1))
        given = self._given(transport.call("request_late_rows", parts=transport.size), "vectors") if self.ringed else []
        moved, shortened = zip(*transport.get(transport.call("finish_batch", *shown, *given)), strict=True)
        return BatchResult(list(moved), edges, changed, sum(shortened))

    def _told(self, method: str, *columns: Sequence[Any], notes: int = 1, **constants: Any) -> list[Any]:
        """What every shard has for each, and then a few notes of every shard."""
        size = self.transport.size
        answers = self.transport.call(method, *columns, parts=size + notes, **constants)
        return [[parts[:size] for parts in answers], *zip(*(parts[size:] for parts in answers), strict=True)]

    def _given(self, wanted: Parts, kind: str) -> Parts:
        """What each shard wants of each: had from there."""
        return self.transport.call("pull_rows", *wanted, kind=kind, parts=self.transport.size)

    def _place(self) -> None:
        """Place, ring by ring, who has come to have a placed neighbor. Hardly ever is there anybody."""
        transport, first, left, self.ringed = self.transport, True, 1, True
        while left:
            wanted = transport.call("request_frontier_rows", parts=transport.size)
            candidates = transport.call(
                "place_frontier", *self._given(wanted, "and_places"), first=first, parts=transport.size
            )
            left, first = sum(transport.get(transport.call("set_frontier", *candidates))), False

    def _rounds(self, shown: Parts, left: int) -> Parts:
        """Refresh the front and let it spread until it is empty, deep enough or has read enough; what is shown then."""
        transport, depth, deepest = self.transport, 0, self.rule.depth
        wanted, notes = self._told("begin_refresh", *shown)
        while True:
            fronts = transport.get(notes)
            front = sum(size for at, size, _ in fronts if at == depth)
            limit = left // (2 * max(1, front))
            if limit == 0 or (not front and depth):
                break
            if front:
                how = {"limit": limit, "depth": depth}
                if any(at > depth or most > limit for at, _, most in fronts):
                    wanted = transport.call("request_refresh_rows", **how, parts=transport.size)
                shown, read = self._told("refresh", *self._given(wanted, "vectors"), **how, last=depth == deepest)
                if depth == deepest:
                    return shown
                left -= sum(transport.get(read))
            if depth == deepest:
                break
            depth += 1
            if front or (self.ringed and depth == 1):
                chances, tried = self._told("send_influence", limit=max(1, left // (2 * max(1, front))), depth=depth)
                left -= sum(transport.get(tried))
                wanted, notes = self._told("draw_influenced", *chances, depth=depth)
        return transport.call("push_moved_rows", parts=transport.size)
