"""What readers and followers were told, compared with a model that is given the same batches and is read by nobody."""

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
"""Rows that are turned alone or together may differ in the last bit, as BLAS has it."""


def stream(batches: int = 40) -> list[Batch]:
    """A start, then edges with vertices that come, and go again."""
    given = [Batch.from_any(DATA.edges[:START])]
    for number, first in enumerate(range(START, START + SIZE * batches, SIZE)):
        src, dst = DATA.edges[first : first + SIZE].T.tolist()
        op = [Op.ADD] * len(src)
        src, dst, op = [*src, f"new {number}"], [*dst, number], [*op, Op.ADD]
        if number % 4 == 3:
            gone = f"new {number - 2}"
            src, dst, op = [*src, gone], [*dst, gone], [*op, Op.REMOVE_VERTEX]
        given.append(Batch.of(src, dst, op=op))
    return given


class State(NamedTuple):
    """All that a reader can see of a state."""

    sequence: int
    ids: list[Id]
    vectors: NDArray[np.float32]
    edges: int
    anchors: int
    growth: float
    next_arrival: int

    def same_as(self, other: State) -> bool:
        """Whether two are the same, to the bit."""
        mine, theirs = (state._replace(vectors=state.vectors.tobytes()) for state in (self, other))  # type: ignore[arg-type]
        return bool(mine == theirs)


def seen(model: Embedder, between: Callable[[], None] = lambda: None) -> State:
    """What a reader sees now; something may be done in the middle of it."""
    with model.lock.reading():
        engine = model.engine
        sequence, rows = engine.sequence, engine.rows_by_arrival()
        between()
        numbers = engine.edges, engine.anchors, engine.growth, engine.next_arrival
        return State(sequence, engine.ids_of(rows), engine.get_vectors(rows), *numbers)


@dataclass
class Reference:
    """The state after every batch, by its number."""

    states: list[State] = field(default_factory=list)

    @classmethod
    def of(cls, model: Embedder, apply: Any, batches: Iterable[Batch]) -> Reference:
        """Apply batches one by one, looking at the model after each."""
        found = cls([seen(model)])
        for batch in batches:
            apply(batch)
            found.states.append(seen(model))
        return found

    def check(self, state: State) -> None:
        """Fail where what was read under a number is not the state of that number."""
        expected = self.states[state.sequence]
        assert state.same_as(expected), f"what was read as batch {state.sequence} is another state"


class Follower:
    """Begins with what it reads, and goes on with what it is told."""

    def __init__(self, state: State) -> None:
        self.sequence = state.sequence
        self.vectors = dict(zip(state.ids, state.vectors, strict=True))

    def follow(self, batches: Sequence[Changes]) -> None:
        """Take over what batches changed, but for those that are in what was read."""
        for changes in batches:
            if changes.sequence <= self.sequence:
                continue
            assert changes.sequence == self.sequence + 1, "a batch is missing"
            self.sequence = changes.sequence
            for name in changes.removed:
                self.vectors.pop(name, None)
            self.vectors.update(zip(changes.ids, changes.vectors, strict=True))

    def check(self, reference: Reference) -> None:
        """Fail where the follower has come to other vectors than the model has."""
        expected = reference.states[self.sequence]
        assert set(self.vectors) == set(expected.ids)
        mine = np.array([self.vectors[name] for name in expected.ids], np.float32).reshape(expected.vectors.shape)
        wrong = (np.abs(mine - expected.vectors) > ROUNDING).any(axis=1)
        assert not wrong.any(), f"after batch {self.sequence}: {np.count_nonzero(wrong)} of {len(wrong)} are wrong"
