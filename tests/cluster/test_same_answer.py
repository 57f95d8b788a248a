"""Tests that a model on shards equals the model on one machine bit for bit, for random streams."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ripplevec.batch import Batch, Op
from ripplevec.embedder import Embedder
from ripplevec.errors import RipplevecError
from ripplevec.graph import adjacency
from ripplevec.rules import batch_step

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
DEFAULTS: dict[str, Any] = {}


def compare_streams(
    new_models: Any,
    stream: Any,
    changes_equal: Any,
    shards: int,
    start: Batch | None,
    given: list[Operations],
    **options: Any,
) -> None:
    single, sharded = new_models(shards, **options)
    if start is not None:
        single.fit(start)
        sharded.fit(start)
        assert single.digest() == sharded.digest()
    for operations in given:
        batch = stream.batch(operations)
        assert changes_equal(single.partial_fit(batch), sharded.partial_fit(batch))
        assert single.digest() == sharded.digest()
        sharded.check()
    assert single.ids == sharded.ids


@settings(max_examples=120)
@given(
    shards=st.integers(1, 5),
    kind=st.sampled_from(["int", "text", "mixed"]),
    first=starts,
    then=batches,
    options=parameters,
)
def test_digest_after_every_batch_matches_single_machine(
    new_models: Any,
    stream_of: Any,
    changes_equal: Any,
    shards: int,
    kind: str,
    first: Operations,
    then: list[Operations],
    options: Any,
) -> None:
    stream = stream_of(kind, options["directed"])
    compare_streams(new_models, stream, changes_equal, shards, stream.batch(first), then, **options)


@settings(max_examples=100)
@given(shards=st.integers(1, 5), kind=st.sampled_from(["int", "mixed"]), then=batches, options=parameters)
@example(  # empty shards
    shards=5, kind="int", then=[[(Op.ADD, 0, 1, 1.0)], [(Op.VERTEX, 2, 2, 1.0)], []], options=DEFAULTS
)
def test_model_without_start_matches_single_machine(
    new_models: Any, stream_of: Any, changes_equal: Any, shards: int, kind: str, then: list[Operations], options: Any
) -> None:
    compare_streams(
        new_models, stream_of(kind, options.get("directed", False)), changes_equal, shards, None, then, **options
    )


times = st.lists(st.one_of(st.just(math.nan), st.integers(0, 60).map(float)), min_size=1, max_size=7)


@settings(max_examples=60)
@given(
    shards=st.integers(1, 4),
    first=starts,
    then=st.lists(st.tuples(st.lists(operations, max_size=25), times), min_size=1, max_size=5),
    options=parameters,
    half_life=st.sampled_from([None, 0.5, 10.0]),
    expire_after=st.sampled_from([None, 8.0, 30.0]),
)
def test_aging_edges_match_single_machine(
    new_models: Any,
    stream_of: Any,
    changes_equal: Any,
    shards: int,
    first: Operations,
    then: list[tuple[Operations, list[float]]],
    options: Any,
    half_life: float | None,
    expire_after: float | None,
) -> None:
    """Weights decay by many half-lives, so that they are rescaled; edges expire, also of removed vertices."""
    models = new_models(shards, **options, half_life=half_life, expire_after=expire_after, max_time_jump=1e6)
    single, sharded = models
    stream = stream_of("int", options["directed"])
    for model in models:
        model.fit(stream.batch(first, [0.0, 5.0]))
    assert single.digest() == sharded.digest()
    for operations, clock in then:
        batch = stream.batch(operations, clock)
        results = [outcome(model, batch) for model in models]
        assert results[0] == results[1] if isinstance(results[0], str) else changes_equal(*results)
        assert single.digest() == sharded.digest()
        sharded.check()
    assert single.diagnostics() | {"bytes": 0} == approximately(sharded.diagnostics() | {"bytes": 0})
    for vertex in single.ids[:3]:
        assert single.neighbors(vertex) == sharded.neighbors(vertex)
        assert np.array_equal(single.preview([vertex, vertex]), sharded.preview([vertex, vertex]))
    restored = new_models(shards, **options, half_life=half_life, expire_after=expire_after, max_time_jump=1e6)[1]
    restored.engine.restore(sharded.engine.state())
    more = stream.batch([(Op.ADD, 1, 2, 1.0), (Op.ADD, 30, 2, 1.0)], [70.0])
    for model in (*models, restored):
        model.partial_fit(more)
    assert single.digest() == sharded.digest() == restored.digest()


def outcome(model: Embedder, batch: Batch) -> Any:
    """Return the changes of a batch, or the error: a stream may remove an edge of a vertex whose edge has expired."""
    try:
        return model.partial_fit(batch)
    except RipplevecError as error:
        return str(error)


def approximately(report: dict[str, Any]) -> dict[str, Any]:
    return report | {"orthogonality_error": pytest.approx(report["orthogonality_error"], rel=1e-4, abs=1e-7)}


@settings(max_examples=40)
@given(
    shards=st.integers(1, 4),
    kind=st.sampled_from(["int", "mixed"]),
    first=st.one_of(st.none(), starts),
    then=batches,
    directed=st.booleans(),
    depth=st.sampled_from([1, 2, None]),
    on_empty=st.sampled_from(["neighbors", "zero", "resample"]),
    reuse=st.booleans(),
)
def test_rule_paper_matches_single_machine(
    new_models: Any,
    stream_of: Any,
    changes_equal: Any,
    shards: int,
    kind: str,
    first: Operations | None,
    then: list[Operations],
    directed: bool,
    depth: int | None,
    on_empty: str,
    reuse: bool,
) -> None:
    stream = stream_of(kind, directed)
    options = {
        "directed": directed,
        "depth": depth,
        "on_empty": on_empty,
        "reuse_influence": reuse and depth is not None,
    }
    start = None if first is None else stream.batch(first)
    compare_streams(new_models, stream, changes_equal, shards, start, then, rule="paper", **options)


@settings(max_examples=15)
@given(first=starts, then=batches, options=parameters)
def test_threaded_steps_match_single_machine(
    new_models: Any, stream_of: Any, changes_equal: Any, first: Operations, then: list[Operations], options: Any
) -> None:
    stream = stream_of("int", options["directed"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_step, "MIN_ROWS_PER_TASK", 2)
        compare_streams(new_models, stream, changes_equal, 3, stream.batch(first), then, **options | {"threads": 3})


@settings(max_examples=40)
@given(first=starts, then=batches, options=parameters)
def test_tables_reallocated_on_growth_match_single_machine(
    new_models: Any, stream_of: Any, changes_equal: Any, first: Operations, then: list[Operations], options: Any
) -> None:
    """A halo makes tables longer, which may reallocate them; code that kept the old table would fail here."""
    stream = stream_of("int", options["directed"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adjacency, "next_capacity", lambda rows, needed, row_bytes: needed)
        compare_streams(new_models, stream, changes_equal, 3, None, [first[:8], first, *then], **options)


@pytest.mark.parametrize("shards", [2, 5])
def test_single_arrivals_match_single_machine(new_models: Any, shards: int) -> None:
    single, sharded = new_models(shards, depth=2)
    for number in range(40):
        neighbors = [number // 2, number // 3, number // 3] if number else []
        for model in (single, sharded):
            vector = model.add_vertex(number, neighbors, [1.0, 0.5, 2.0][: len(neighbors)])
            assert vector.shape == (model.dim,)
        assert single.digest() == sharded.digest()


@pytest.mark.parametrize("directed", [False, True])
def test_hub_with_indexed_adjacency_matches_single_machine(new_models: Any, changes_equal: Any, directed: bool) -> None:
    """The adjacency of the hub is so long that it has an index and is read only in part."""
    single, sharded = new_models(3, directed=directed, max_reads=50)
    ring = [(number, (number + 1) % 30) for number in range(30)]
    star = [(0, number) for number in range(100, 4_300)]
    more, removed = [(0, 5, 2.0), (0, 4_000, 3.0), (7, 4_001, 1.0)], [(0, number) for number in range(150, 3_900, 7)]
    for model in (single, sharded):
        model.fit(ring)
    for edges in (star, more):
        assert changes_equal(single.partial_fit(edges), sharded.partial_fit(edges))
    assert changes_equal(single.remove_edges(removed), sharded.remove_edges(removed))
    assert changes_equal(single.remove_vertex(3), sharded.remove_vertex(3))
    assert changes_equal(single.remove_vertex(0), sharded.remove_vertex(0))
    assert single.digest() == sharded.digest()
    sharded.check()


def test_graph_without_edges_restarts_like_single_machine(new_models: Any, changes_equal: Any) -> None:
    single, sharded = new_models(3)
    edges = [(number, (number * 3 + 1) % 20) for number in range(20) if number != (number * 3 + 1) % 20]
    edges = list({frozenset(edge): edge for edge in edges}.values())
    for model in (single, sharded):
        model.fit(edges)
    assert changes_equal(single.remove_edges(edges), sharded.remove_edges(edges))
    assert sharded.diagnostics()["ready"] is False
    assert changes_equal(single.partial_fit(edges), sharded.partial_fit(edges))
    assert single.digest() == sharded.digest()
