"""Checks of what readers and followers see, against a model that gets the same batches and has no readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec import Batch, Changes, Embedder, Op
from ripplevec.batch import Id
from ripplevec.lab.datasets.synthetic import planted_partition

DATA = planted_partition(communities=4, size=30, inside=8, elsewhere=2, seed=5)
START, SIZE = 200, 12
ROUNDING = 1e-6
"""Rows that BLAS rotates one by one or together may differ in the last bit."""


def make_batches(batches: int = 40) -> list[Batch]:
    """Create an initial graph, then batches with edges, new vertices and removals of some of them."""
    made = [Batch.from_any(DATA.edges[:START])]
    for number, first in enumerate(range(START, START + SIZE * batches, SIZE)):
        src, dst = DATA.edges[first : first + SIZE].T.tolist()
        op = [Op.ADD] * len(src)
        src, dst, op = [*src, f"new {number}"], [*dst, number], [*op, Op.ADD]
        if number % 4 == 3:
            removed = f"new {number - 2}"
            src, dst, op = [*src, removed], [*dst, removed], [*op, Op.REMOVE_VERTEX]
        made.append(Batch.of(src, dst, op=op))
    return made


class State(NamedTuple):
    """Everything that a reader can see of a state."""

    sequence: int
    ids: list[Id]
    vectors: NDArray[np.float32]
    edges: int
    anchors: int
    growth: float
    next_arrival: int

    def equals(self, other: State) -> bool:
        """Return whether two states are equal to the bit."""
        first, second = (state._replace(vectors=state.vectors.tobytes()) for state in (self, other))  # type: ignore[arg-type]
        return bool(first == second)


def read_state(model: Embedder, between: Callable[[], None] = lambda: None) -> State:
    """Read the state of a model; `between` is called in the middle of the read."""
    with model.lock.reading():
        engine = model.engine
        sequence, rows = engine.sequence, engine.rows_by_arrival()
        between()
        numbers = engine.edges, engine.anchors, engine.growth, engine.next_arrival
        return State(sequence, engine.ids_of(rows), engine.get_vectors(rows), *numbers)


@dataclass
class Reference:
    """The expected state after every batch, by sequence number."""

    states: list[State] = field(default_factory=list)

    @classmethod
    def of(cls, model: Embedder, apply: Any, batches: Iterable[Batch]) -> Reference:
        """Apply batches one by one and read the state after each."""
        reference = cls([read_state(model)])
        for batch in batches:
            apply(batch)
            reference.states.append(read_state(model))
        return reference

    def check(self, state: State) -> None:
        """Check that a state equals the expected one of its sequence number."""
        expected = self.states[state.sequence]
        assert state.equals(expected), f"the state read as batch {state.sequence} is another state"


class Follower:
    """A copy of the vectors that starts from a state and applies changes."""

    def __init__(self, state: State) -> None:
        self.sequence = state.sequence
        self.vectors = dict(zip(state.ids, state.vectors, strict=True))

    def follow(self, batches: Sequence[Changes]) -> None:
        """Apply changes, except for those that the initial state already has."""
        for changes in batches:
            if changes.sequence <= self.sequence:
                continue
            assert changes.sequence == self.sequence + 1, "a batch is missing"
            self.sequence = changes.sequence
            for name in changes.removed:
                self.vectors.pop(name, None)
            self.vectors.update(zip(changes.ids, changes.vectors, strict=True))

    def check(self, reference: Reference) -> None:
        """Check that the vectors equal the expected ones."""
        expected = reference.states[self.sequence]
        assert set(self.vectors) == set(expected.ids)
        vectors = np.array([self.vectors[name] for name in expected.ids], np.float32).reshape(expected.vectors.shape)
        wrong = (np.abs(vectors - expected.vectors) > ROUNDING).any(axis=1)
        assert not wrong.any(), f"after batch {self.sequence}: {np.count_nonzero(wrong)} of {len(wrong)} are wrong"
