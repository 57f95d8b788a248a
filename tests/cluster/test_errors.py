"""Tests of errors: a bad call raises the same error as on one machine and changes no shard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ripplevec.batch import Batch, Op
from ripplevec.cluster import shard_graph
from ripplevec.embedder import Embedder
from ripplevec.errors import RipplevecError

BAD_CALLS: dict[str, Callable[[Embedder], Any]] = {
    "remove an unknown edge": lambda m: m.remove_edges([(0, 1), (1, 17)]),
    "remove an edge twice": lambda m: m.remove_edges([(0, 1), (1, 0)]),
    "remove an edge of unknown vertices": lambda m: m.remove_edges([("unknown", 1), (0, "missing")]),
    "remove an unknown vertex": lambda m: m.remove_vertex("unknown"),
    "remove a vertex twice": lambda m: m.partial_fit(Batch.of([0, 0], [0, 0], op=[Op.REMOVE_VERTEX] * 2)),
    "remove an edge after its vertex": lambda m: m.partial_fit(
        Batch.of([30, 0, 0], [31, 0, 1], op=[Op.ADD, Op.REMOVE_VERTEX, Op.REMOVE])
    ),
    "remove a known and an unknown edge": lambda m: m.partial_fit(
        Batch.of([50, 1, 1, 0], [51, 2, 17, 1], op=[Op.ADD, Op.REMOVE, Op.REMOVE, Op.REMOVE])
    ),
    "NaN weight": lambda m: m.partial_fit([(0, 1, float("nan"))]),
    "negative weight": lambda m: m.partial_fit([(0, 1, -1.0)]),
    "too few weights": lambda m: m.add_vertex("new", [0, 1], [1.0]),
    "NaN weight of an arrival": lambda m: m.add_vertex("new", [0, 1], [1.0, float("nan")]),
    "float as an id": lambda m: m.partial_fit([(0.5, 1)]),
    "None as the id of an arrival": lambda m: m.add_vertex(None, [0]),  # type: ignore[arg-type]
    "None as the id of a neighbor": lambda m: m.add_vertex("new", [None]),  # type: ignore[list-item]
    "string instead of a list of neighbors": lambda m: m.add_vertex("new", "old"),
    "vectors of unknown vertices": lambda m: m.vectors([0, "unknown", "missing"]),
    "degree of an unknown vertex": lambda m: m.degree(["unknown"]),
    "age of an unknown vertex": lambda m: m.age([-1]),
    "neighbors of an unknown vertex": lambda m: m.neighbors("unknown"),
    "preview with an unknown neighbor": lambda m: m.preview([0, "unknown"]),
    "preview with too few weights": lambda m: m.preview([0, 1], [1.0]),
    "nearest of an unknown vertex": lambda m: m.nearest("unknown"),
    "nearest of a vector that is too short": lambda m: m.nearest([1.0]),
    "nearest with count 0": lambda m: m.nearest(0, 0),
}


def outcome(model: Embedder, bad: Callable[[Embedder], Any]) -> tuple[type[Exception], str]:
    with pytest.raises(Exception) as refused:  # noqa: PT011  # the type is compared with that of the other model
        bad(model)
    return refused.type, str(refused.value)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("case", BAD_CALLS)
def test_bad_call_raises_single_machine_error_and_changes_nothing(new_models: Any, case: str, directed: bool) -> None:
    single, sharded = new_models(3, directed=directed)
    edges = [(number, (number + step) % 20) for number in range(20) for step in (1, 3)]
    for model in (single, sharded):
        model.fit(edges)
    state, digest = sharded.engine.state(), sharded.digest()
    assert outcome(single, BAD_CALLS[case]) == outcome(sharded, BAD_CALLS[case])
    after = sharded.engine.state()
    assert state.keys() == after.keys()
    assert all(np.array_equal(state[name], after[name]) for name in state)
    assert sharded.digest() == single.digest() == digest
    sharded.check()
    assert sharded.partial_fit([(0, 99)]).ids == single.partial_fit([(0, 99)]).ids


def test_full_shard_raises(new_models: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slot stores the row code of a remote neighbor, which is as large as rows times shards."""
    monkeypatch.setattr(shard_graph, "MAX_ROWS", 30)
    _, sharded = new_models(3)
    with pytest.raises(RipplevecError, match="expected at most 10 vertices on one of 3 shards, got"):
        sharded.partial_fit([(number, number + 1) for number in range(40)])
