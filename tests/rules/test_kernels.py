from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.batch import Batch, Op
from ripplevec.engine.engine import Engine
from ripplevec.influence._kernels import sampled_slot
from ripplevec.rules import _kernels as kernels
from ripplevec.rules._gather_kernels import World
from ripplevec.rules._kernels import UNLIMITED, Turn

SEEDS = st.integers(0, 2**32 - 1)


def follow(engine: Engine, batch: Batch) -> Any:
    """Change the graph, not the vectors."""
    (delta,) = [engine.field.follow(step) for step in engine.graph.apply(batch)]
    return delta


def turn_for(engine: Engine, delta: Any, depth: int = 1, max_reads: int = 4096) -> Turn:
    return Turn(7, 1, depth, max_reads, engine.graph.next_arrival - delta.arrived.size)


def mixed_batch(seed: int, known: list[tuple[int, int, float]], size: int = 25) -> Batch:
    """Edges among known vertices and newcomers 100 … 109, repeated and removed ones included."""
    rng = np.random.default_rng(seed)
    names = np.array([*range(40), *range(100, 110)])
    rows: dict[tuple[int, int], tuple[int, int, float, int]] = {}
    for u, v in rng.choice(names, (size, 2)).tolist():
        if u != v:
            rows[min(u, v), max(u, v)] = (u, v, float(2.0 ** rng.integers(-3, 4)), Op.ADD)
    for u, v, _ in known[: size // 3]:
        rows[min(u, v), max(u, v)] = (u, v, 1.0, Op.REMOVE)
    columns = zip(*[rows[key] for key in sorted(rows, key=lambda key: hash((seed, *key)))], strict=True)
    return Batch.of(*map(list, columns))


@settings(max_examples=40)
@given(
    seed=SEEDS,
    depth=st.sampled_from([0, 1, 2, -1]),
    max_reads=st.sampled_from([1, 3, 4096]),
    directed=st.booleans(),
    dense=st.booleans(),
)
def test_a_batch_is_the_rule_in_plain_python(
    engine_of: Any, edges_of: Any, reference: Any, seed: int, depth: int, max_reads: int, directed: bool, dense: bool
) -> None:
    edges = edges_of(seed, edges=250 if dense else 60)
    engine = engine_of(edges, directed=directed)
    delta = follow(
        engine, mixed_batch(seed, [] if directed else list({tuple(sorted(e[:2])): e for e in edges}.values()))
    )
    world, turn = engine.rule.world(engine.field), turn_for(engine, delta, depth, max_reads)
    plain = reference(world, turn)
    expected = plain.apply(delta)
    moved, _ = kernels.ripple(world, delta.arrived, delta.pairs, delta.numbers, delta.chance, engine.field.seen, turn)
    assert sorted(moved.tolist()) == sorted(expected)
    assert np.array_equal(world.placed.astype(bool), plain.placed)
    scale = np.abs(plain.x).max(initial=1)
    np.testing.assert_allclose(world.vectors, plain.x, atol=2e-4 * scale)


@settings(max_examples=30)
@given(seed=SEEDS, max_reads=st.integers(2, 60))
def test_the_work_is_bounded_whatever_the_graph(engine_of: Any, reference: Any, seed: int, max_reads: int) -> None:
    """A hub with 400 leaves: an arrival at the hub may refresh it and test its neighbors, but reads a sample only."""
    engine = engine_of([(0, leaf) for leaf in range(1, 400)] + [(1, 2), (3, 4)], seed=seed)
    delta = follow(engine, Batch.from_any([(1000 + seed % 7, 0)]))
    turn = Turn(seed, 1, 3, max_reads, engine.graph.next_arrival - 1)
    engine.rule.world(engine.field).links.in_strength[0] = 1e-9  # the hub is influenced for certain
    world = engine.rule.world(engine.field)
    plain = reference(world, turn)
    expected = plain.apply(delta)
    moved, _ = kernels.ripple(world, delta.arrived, delta.pairs, delta.numbers, delta.chance, engine.field.seen, turn)
    assert set(moved.tolist()) == expected
    assert 0 < plain.reads <= max_reads
    np.testing.assert_allclose(world.vectors, plain.x, atol=1e-3 * np.abs(plain.x).max())


def test_a_sample_reads_no_more_than_the_limit(engine_of: Any, reference: Any) -> None:
    """Rows that were not sampled may hold anything."""
    engine = engine_of([(0, leaf) for leaf in range(1, 300)] + [(1, 2)])
    world = engine.rule.world(engine.field)
    plain, key = reference(world, Turn(0, 1, 1, 1, 300)), np.uint64(99)
    rows = np.array([engine.graph.ids.find_one(0)])
    out, again = np.empty((2, 1, 4), np.float32)
    kernels.refresh(world, rows, 5, key, out)
    np.testing.assert_allclose(out[0], plain.refreshed(int(rows[0]), 5, key), rtol=1e-3, atol=1e-4)
    read = {plain.around(rows[0])[0] + sampled_slot(key, int(world.arrival[rows[0]]), i, 299) for i in range(5)}
    others = [int(world.links.neighbor[slot]) for slot in plain.around(rows[0]) if slot not in read]
    assert len(others) >= 294
    world.vectors[others] = np.nan
    kernels.refresh(world, rows, 5, key, again)
    assert again.tobytes() == out.tobytes()


@settings(max_examples=30)
@given(seed=SEEDS)
def test_each_small_step_agrees_with_the_reference(engine_of: Any, edges_of: Any, reference: Any, seed: int) -> None:
    engine = engine_of(edges_of(seed))
    delta = follow(engine, Batch.from_any(edges_of(seed + 1, vertices=55, edges=30)))
    world, turn = engine.rule.world(engine.field), turn_for(engine, delta)
    plain, rng = reference(world, turn), np.random.default_rng(seed)
    rows = np.flatnonzero(world.placed)
    out = np.empty((rows.size, 4), np.float32)
    kernels.refresh(world, rows, UNLIMITED, np.uint64(1), out)
    np.testing.assert_allclose(out, [plain.refreshed(row, UNLIMITED, 1) for row in rows], rtol=2e-3, atol=1e-4)
    assert kernels.room_for(world.links, rows, 3) == np.minimum(world.links.count[rows], 3).sum()

    chosen, weights = rng.choice(rows, 3, replace=False), np.array([0.5, 2, 1], np.float32)
    row = np.zeros(4, np.float32)
    kernels.preview(world, chosen, weights, row)
    expected = plain.step([(float(a), plain.x[u]) for a, u in zip(weights, chosen, strict=True)])
    np.testing.assert_allclose(row, expected, rtol=2e-3, atol=1e-4)

    assert sorted(kernels.shaken(world, delta.pairs, delta.numbers, delta.chance, turn)) == sorted(plain.shaken(delta))
    kernels.admit(world, delta.arrived)
    touched = delta.pairs.reshape(-1)
    assert kernels.unsettled(world, touched).tolist() == [row for row in touched.tolist() if not world.placed[row]]
    newcomers, _ = kernels.place(world, delta.arrived, delta.pairs.reshape(-1), engine.field.seen, 1)
    assert newcomers.tolist() == plain.place(delta.arrived.tolist(), delta.pairs.ravel().tolist())
    np.testing.assert_allclose(world.vectors, plain.x, rtol=2e-3, atol=1e-4)


def test_a_preview_without_a_placed_neighbor_writes_nothing(engine_of: Any) -> None:
    engine = engine_of([(0, 1), (1, 2), (2, 0)])
    delta = follow(engine, Batch.vertices(["lonely"]))
    row = np.zeros(4, np.float32)
    kernels.preview(engine.rule.world(engine.field), delta.arrived, np.ones(1, np.float32), row)
    assert not row.any()


@settings(max_examples=30)
@given(seed=SEEDS)
def test_waves_put_everyone_behind_the_newcomers_they_read(engine_of: Any, edges_of: Any, seed: int) -> None:
    engine = engine_of(edges_of(0))
    delta = follow(engine, Batch.from_any([(u + 30, v + 30, w) for u, v, w in edges_of(seed)]))
    world, turn = engine.rule.world(engine.field), turn_for(engine, delta)
    wave = dict(zip(delta.arrived.tolist(), kernels.waves(world, delta.arrived, turn.first_new).tolist(), strict=True))
    for row, own in wave.items():
        earlier = [
            wave[u]
            for u in engine.graph.adjacency.neighbors(row).tolist()
            if turn.first_new <= world.arrival[u] < world.arrival[row]
        ]
        assert own == max(earlier, default=-1) + 1


def test_release_takes_back_what_has_no_edge_left(engine_of: Any) -> None:
    engine = engine_of([("a", "b"), ("b", "c"), ("c", "a"), ("a", "d"), ("d", "e")])
    delta = follow(engine, Batch.of(["a", "d"], ["d", "e"], op=[Op.REMOVE] * 2))
    world, gone = engine.rule.world(engine.field), [engine.graph.ids.find_one(name) for name in "de"]
    assert sorted(set(kernels.unsettled(world, delta.pairs.reshape(-1)).tolist())) == sorted(gone)
    lost = kernels.release(world, delta.pairs.reshape(-1))
    assert sorted(lost.tolist()) == sorted(gone)
    assert not world.placed[gone].any()
    assert not world.vectors[gone].any()
    assert world.placed[engine.graph.ids.find_one("a")]


@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_a_refresh_of_an_exact_embedding_changes_nothing(engine_of: Any, edges_of: Any, ridge: float) -> None:
    """Without the ridge the local step is the equation that the eigenvectors solve."""
    from ripplevec.views.spectral import SpectralView

    engine = engine_of(edges_of(3, edges=200), views=[SpectralView(tau=0.25, diffusion=1, ridge=ridge)])
    rule, field = engine.rule, engine.field
    basis = rule.space.views[0].start(engine.graph.adjacency, engine.graph.rows, 4, threads=1)
    assert basis.mu.min() > 0.02 * basis.mu.max()
    rows = np.flatnonzero(field.placed)
    exact = World(
        engine.graph.adjacency.links,
        engine.graph.arrival,
        field.placed,
        basis.rows.copy(),
        rule.space.frame(np.float64),
    )
    out = np.empty((rows.size, 4))
    kernels.refresh(exact, rows, UNLIMITED, np.uint64(1), out)
    apart = np.abs(out - basis.rows[rows]).max()
    assert (apart < 1e-6) == (ridge == 0)
