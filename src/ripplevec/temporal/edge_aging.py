"""Aging of edges: applies batches to a graph with decaying weights and removes expired edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch, Op
from ripplevec.graph.adjacency import DECAYING_DUPLICATE_POLICIES
from ripplevec.graph.graph import Graph, GraphDelta, strip_prefix
from ripplevec.temporal.clock import EventClock
from ripplevec.temporal.decay import Decay
from ripplevec.temporal.time_limit import LASTING_PERIODS, TimeLimit
from ripplevec.temporal.window import Window


class EdgeAging:
    """Event clock of a model, with decay of weights (`half_life`), expiry of edges (`expire_after`), or both."""

    def __init__(
        self,
        half_life: float | None,
        expire_after: float | None,
        *,
        directed: bool = False,
        max_time_jump: float | None = None,
    ) -> None:
        self.clock = EventClock()
        periods = [period for period in (half_life, expire_after) if period is not None]
        self.max_time_jump = LASTING_PERIODS * min(periods) if max_time_jump is None else max_time_jump
        self.decay = None if half_life is None else Decay(half_life)
        self.window = None if expire_after is None else Window(expire_after, directed=directed)
        self.expired_count = 0  # edges that expired with the last batch

    @property
    def time(self) -> float | None:
        """Latest event time; None before the first timestamp."""
        return None if np.isnan(self.clock.latest) else self.clock.latest

    @property
    def nbytes(self) -> int:
        """Bytes allocated for edge times."""
        return 0 if self.window is None else self.window.nbytes

    def attach(self, graph: Graph) -> None:
        """Configure a graph for decaying weights and expiring edges."""
        graph.edges_expire = self.window is not None
        if self.decay is not None:
            adjacency = graph.adjacency
            adjacency.duplicate_policy = DECAYING_DUPLICATE_POLICIES[adjacency.duplicates]
            adjacency.weight_scale = self.decay.weight_scale(self.clock.now, adjacency.edge_count)

    def create_time_limit(self) -> TimeLimit:
        """Create the check of the times of the next batches."""
        return TimeLimit(self.clock.latest, self.max_time_jump)

    def count_expiring(self, batch: Batch) -> int:
        """Return an upper bound of the number of edges that expire with a batch."""
        return 0 if self.window is None else self.window.count_due(self.clock.now_after(batch.time))

    def advance(self, batch: Batch) -> tuple[Batch, float]:
        """Advance the clock; return the batch as it is stored, and the factor by which stored weights are rescaled.

        A stored batch has the weights that the graph stores, and times since the first timestamp. The weights in the
        graph must be multiplied by the factor before the batch is applied.
        """
        times, weight, factor = self.clock.advance(batch.time, len(batch)), batch.weight, 1.0
        if self.decay is not None:
            added = np.ones(len(batch), np.bool_) if batch.op is None else batch.op == Op.ADD
            factor = self.decay.rescale(self.clock.now)
            weight = self.decay.stored_weights(batch.weight, times, added)
        return Batch.from_checked_columns(batch.src, batch.dst, weight, batch.op, times), factor

    def apply(self, graph: Graph, batch: Batch) -> Iterator[GraphDelta]:
        """Apply a batch step by step; the last step removes the edges that have expired by then."""
        stored, factor = self.advance(batch)
        if factor != 1.0:
            graph.adjacency.scale_weights(factor)
        steps = []
        for delta in graph.apply(stored):
            if not delta.vacated_rows.size:
                steps.append(delta)
            yield delta
        self.expired_count = 0
        if self.window is not None and steps and stored.time is not None:
            op = np.zeros(len(stored), np.int8) if stored.op is None else stored.op
            on_edges = op != Op.REMOVE_VERTEX
            pairs, numbers = (
                np.concatenate([getattr(step, name) for step in steps]) for name in ("pairs", "arrival_numbers")
            )
            self.window.record(op[on_edges], pairs, numbers, stored.time[on_edges])
        if self.window is not None:
            expired = self._pop_expired_rows(graph, self.window)
            if len(expired):
                self.expired_count = len(expired)
                yield graph.remove_edges(expired)
        if self.decay is not None:
            graph.adjacency.weight_scale = self.decay.weight_scale(self.clock.now, graph.adjacency.edge_count)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the complete state as plain arrays."""
        state: dict[str, NDArray[Any]] = {"clock": self.clock.state()}
        if self.decay is not None:
            state["decay"] = self.decay.state()
        if self.window is not None:
            state |= {f"window_{name}": array for name, array in self.window.state().items()}
        return state

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore the state returned by `state`."""
        self.clock = EventClock(*state["clock"].tolist())  # an empty array restores a clock without a timestamp
        if self.decay is not None:
            self.decay.restore(state["decay"])
        if self.window is not None:
            self.window.restore(strip_prefix("window_", state))

    def _pop_expired_rows(self, graph: Graph, window: Window) -> NDArray[np.int64]:
        """Return the rows of expired edges whose endpoints still exist, and remove the edges from the window."""
        rows, numbers, _ = window.pop_expired(self.clock.now)
        return rows[(graph.arrival[rows] == numbers).all(axis=1)]


def select_digest_arrays(state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a `state` that enter a digest: all but the rows of endpoints.

    Models that are equal in all other respects may have vertices in different rows.
    """
    return {f"memory_{name}": array for name, array in state.items() if name != "window_ends"}
