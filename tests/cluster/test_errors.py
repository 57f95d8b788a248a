"""What is refused is refused as on one machine, and leaves every shard as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ripplevec.batch import Batch, Op
from ripplevec.cluster import shard_graph
from ripplevec.embedder import Embedder
from ripplevec.errors import RipplevecError

BAD: dict[str, Callable[[Embedder], Any]] = {
    "an unknown edge goes": lambda m: m.remove_edges([(0, 1), (1, 17)]),
    "an edge goes twice": lambda m: m.remove_edges([(0, 1), (1, 0)]),
    "an edge of strangers goes": lambda m: m.remove_edges([("who", 1), (0, "what")]),
    "an unknown vertex goes": lambda m: m.remove_vertex("who"),
    "a vertex goes twice": lambda m: m.partial_fit(Batch.of([0, 0], [0, 0], op=[Op.REMOVE_VERTEX] * 2)),
    "an edge goes after its vertex": lambda m: m.partial_fit(
        Batch.of([30, 0, 0], [31, 0, 1], op=[Op.ADD, Op.REMOVE_VERTEX, Op.REMOVE])
    ),
    "a good edge and a bad one": lambda m: m.partial_fit(
        Batch.of([50, 1, 1, 0], [51, 2, 17, 1], op=[Op.ADD, Op.REMOVE, Op.REMOVE, Op.REMOVE])
    ),
    "a weight that is no number": lambda m: m.partial_fit([(0, 1, float("nan"))]),
    "a weight below zero": lambda m: m.partial_fit([(0, 1, -1.0)]),
    "weights that do not fit": lambda m: m.add_vertex("new", [0, 1], [1.0]),
    "a weight of an arrival that is no number": lambda m: m.add_vertex("new", [0, 1], [1.0, float("nan")]),
    "a name that is none": lambda m: m.partial_fit([(0.5, 1)]),
    "a newcomer without a name": lambda m: m.add_vertex(None, [0]),  # type: ignore[arg-type]
    "a neighbor without a name": lambda m: m.add_vertex("new", [None]),  # type: ignore[list-item]
    "neighbors that are one": lambda m: m.add_vertex("new", "old"),
    "vectors of strangers": lambda m: m.vectors([0, "who", "what"]),
    "degrees of strangers": lambda m: m.degree(["who"]),
    "ages of strangers": lambda m: m.age([-1]),
    "neighbors of a stranger": lambda m: m.neighbors("who"),
    "a preview among strangers": lambda m: m.preview([0, "who"]),
    "a preview with too few weights": lambda m: m.preview([0, 1], [1.0]),
    "who is near a stranger": lambda m: m.nearest("who"),
    "who is near a vector that is too short": lambda m: m.nearest([1.0]),
    "nobody near": lambda m: m.nearest(0, 0),
}


def outcome(model: Embedder, bad: Callable[[Embedder], Any]) -> tuple[type[Exception], str]:
    with pytest.raises(Exception) as refused:  # noqa: PT011  # which, the other model says
        bad(model)
    return refused.type, str(refused.value)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("case", BAD)
def test_the_same_error_and_nothing_changed(new: Any, case: str, directed: bool) -> None:
    one, other = new(3, directed=directed)
    edges = [(number, (number + step) % 20) for number in range(20) for step in (1, 3)]
    for model in (one, other):
        model.fit(edges)
    state, digest = other.engine.state(), other.digest()
    assert outcome(one, BAD[case]) == outcome(other, BAD[case])
    after = other.engine.state()
    assert state.keys() == after.keys()
    assert all(np.array_equal(state[name], after[name]) for name in state)
    assert other.digest() == one.digest() == digest
    other.check()
    assert other.partial_fit([(0, 99)]).ids == one.partial_fit([(0, 99)]).ids


def test_a_shard_that_is_full_says_so(new: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A neighbor elsewhere is a code in a slot, and the code goes up to rows times shards."""
    monkeypatch.setattr(shard_graph, "MAX_ROWS", 30)
    _, other = new(3)
    with pytest.raises(RipplevecError, match="one of 3 shards holds at most 10 vertices"):
        other.partial_fit([(number, number + 1) for number in range(40)])
