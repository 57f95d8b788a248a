"""Whatever comes, a model on shards is the model on one machine, to the bit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ripplevec.batch import Batch, Op
from ripplevec.graph import adjacency
from ripplevec.rules import ripple

Operations = list[tuple[Op, int, int, float]]

numbers = st.integers(0, 23)
kinds_of_op = st.sampled_from([Op.ADD] * 7 + [Op.VERTEX, Op.REMOVE, Op.REMOVE_VERTEX])
operations = st.tuples(kinds_of_op, numbers, numbers, st.sampled_from([0.25, 0.3, 1.0, 1.0, 7.5]))
batches = st.lists(st.lists(operations, max_size=25), min_size=1, max_size=5)
starts = st.lists(st.tuples(st.just(Op.ADD), numbers, numbers, st.just(1.0)), min_size=10, max_size=40)
parameters = st.fixed_dictionaries(
    {
        "directed": st.booleans(),
        "depth": st.sampled_from([0, 1, 2, 3, None]),
        "max_reads": st.sampled_from([1, 3, 10, 4096]),
        "storage": st.sampled_from(["float32", "float16"]),
        "duplicates": st.sampled_from(["add", "ignore", "replace"]),
        "seed": st.integers(0, 3),
        "threads": st.sampled_from([1, 3]),
    }
)
PLAIN: dict[str, Any] = {}


def follow(
    new: Any, stream: Any, same: Any, shards: int, start: Batch | None, given: list[Operations], **how: Any
) -> None:
    one, other = new(shards, **how)
    if start is not None:
        one.fit(start)
        other.fit(start)
        assert one.digest() == other.digest()
    for operations in given:
        batch = stream.batch(operations)
        assert same(one.partial_fit(batch), other.partial_fit(batch))
        assert one.digest() == other.digest()
        other.check()
    assert one.ids == other.ids


@settings(max_examples=120)
@given(
    shards=st.integers(1, 5), kind=st.sampled_from(["int", "text", "mixed"]), first=starts, then=batches, how=parameters
)
def test_after_every_batch(
    new: Any, stream_of: Any, same: Any, shards: int, kind: str, first: Operations, then: list[Operations], how: Any
) -> None:
    stream = stream_of(kind, how["directed"])
    follow(new, stream, same, shards, stream.batch(first), then, **how)


@settings(max_examples=100)
@given(shards=st.integers(1, 5), kind=st.sampled_from(["int", "mixed"]), then=batches, how=parameters)
@example(shards=5, kind="int", then=[[(Op.ADD, 0, 1, 1.0)], [(Op.VERTEX, 2, 2, 1.0)], []], how=PLAIN)  # empty shards
def test_a_model_that_begins_empty(
    new: Any, stream_of: Any, same: Any, shards: int, kind: str, then: list[Operations], how: Any
) -> None:
    follow(new, stream_of(kind, how.get("directed", False)), same, shards, None, then, **how)


@settings(max_examples=15)
@given(first=starts, then=batches, how=parameters)
def test_threads_that_share_every_step(
    new: Any, stream_of: Any, same: Any, first: Operations, then: list[Operations], how: Any
) -> None:
    stream = stream_of("int", how["directed"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ripple, "MIN_ROWS_PER_TASK", 2)
        follow(new, stream, same, 3, stream.batch(first), then, **how | {"threads": 3})


@settings(max_examples=40)
@given(first=starts, then=batches, how=parameters)
def test_tables_that_move_whenever_they_grow(
    new: Any, stream_of: Any, same: Any, first: Operations, then: list[Operations], how: Any
) -> None:
    """A halo makes a table longer, and whoever had looked at it before would go on with an old one."""
    stream = stream_of("int", how["directed"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adjacency, "next_capacity", lambda rows, needed: needed)
        follow(new, stream, same, 3, None, [first[:8], first, *then], **how)


@pytest.mark.parametrize("shards", [2, 5])
def test_arrivals_one_by_one(new: Any, shards: int) -> None:
    one, other = new(shards, depth=2)
    for number in range(40):
        around = [number // 2, number // 3, number // 3] if number else []
        for model in (one, other):
            vector = model.add_vertex(number, around, [1.0, 0.5, 2.0][: len(around)])
            assert vector.shape == (model.dim,)
        assert one.digest() == other.digest()


@pytest.mark.parametrize("directed", [False, True])
def test_a_hub_and_its_leaves(new: Any, same: Any, directed: bool) -> None:
    """A list so long that it has an index, and is read in part."""
    one, other = new(3, directed=directed, max_reads=50)
    ring = [(number, (number + 1) % 30) for number in range(30)]
    star = [(0, number) for number in range(100, 4_300)]
    again, gone = [(0, 5, 2.0), (0, 4_000, 3.0), (7, 4_001, 1.0)], [(0, number) for number in range(150, 3_900, 7)]
    for model in (one, other):
        model.fit(ring)
    for edges in (star, again):
        assert same(one.partial_fit(edges), other.partial_fit(edges))
    assert same(one.remove_edges(gone), other.remove_edges(gone))
    assert same(one.remove_vertex(3), other.remove_vertex(3))
    assert same(one.remove_vertex(0), other.remove_vertex(0))
    assert one.digest() == other.digest()
    other.check()


def test_a_graph_that_loses_its_last_edge_begins_anew(new: Any, same: Any) -> None:
    one, other = new(3)
    edges = [(number, (number * 3 + 1) % 20) for number in range(20) if number != (number * 3 + 1) % 20]
    edges = list({frozenset(edge): edge for edge in edges}.values())
    for model in (one, other):
        model.fit(edges)
    assert same(one.remove_edges(edges), other.remove_edges(edges))
    assert other.diagnostics()["ready"] is False
    assert same(one.partial_fit(edges), other.partial_fit(edges))
    assert one.digest() == other.digest()
