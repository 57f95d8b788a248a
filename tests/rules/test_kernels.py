from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.batch import Batch, Op
from ripplevec.engine.engine import Engine
from ripplevec.influence._kernels import sample_slot
from ripplevec.rules import _kernels as kernels
from ripplevec.rules._gather_kernels import KernelState
from ripplevec.rules._kernels import UNLIMITED, BatchContext

SEEDS = st.integers(0, 2**32 - 1)


def apply_to_graph(engine: Engine, batch: Batch) -> Any:
    """Apply a batch to the graph, not to the vectors."""
    (delta,) = [engine.store.apply_delta(step) for step in engine.graph.apply(batch)]
    return delta


def context_for(engine: Engine, delta: Any, depth: int = 1, max_reads: int = 4096) -> BatchContext:
    return BatchContext(7, 1, depth, max_reads, engine.graph.next_arrival - delta.arrived.size)


def mixed_batch(seed: int, existing: list[tuple[int, int, float]], size: int = 25) -> Batch:
    """Return a batch of edges among existing vertices and new ones 100 … 109, including repeated and removed edges."""
    rng = np.random.default_rng(seed)
    names = np.array([*range(40), *range(100, 110)])
    rows: dict[tuple[int, int], tuple[int, int, float, int]] = {}
    for u, v in rng.choice(names, (size, 2)).tolist():
        if u != v:
            rows[min(u, v), max(u, v)] = (u, v, float(2.0 ** rng.integers(-3, 4)), Op.ADD)
    for u, v, _ in existing[: size // 3]:
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
def test_apply_batch_agrees_with_the_reference(
    engine_of: Any, edges_of: Any, reference: Any, seed: int, depth: int, max_reads: int, directed: bool, dense: bool
) -> None:
    edges = edges_of(seed, edges=250 if dense else 60)
    engine = engine_of(edges, directed=directed)
    delta = apply_to_graph(
        engine, mixed_batch(seed, [] if directed else list({tuple(sorted(e[:2])): e for e in edges}.values()))
    )
    state, context = engine.rule.kernel_state(engine.store), context_for(engine, delta, depth, max_reads)
    expected_rule = reference(state, context)
    expected = expected_rule.apply(delta)
    moved, _ = kernels.apply_batch(
        state, delta.arrived, delta.pairs, delta.arrival_numbers, delta.changed_share, engine.store.seen, context
    )
    assert sorted(moved.tolist()) == sorted(expected)
    assert np.array_equal(state.placed.astype(bool), expected_rule.placed)
    scale = np.abs(expected_rule.x).max(initial=1)
    np.testing.assert_allclose(state.vectors, expected_rule.x, atol=2e-4 * scale)


@settings(max_examples=30)
@given(seed=SEEDS, max_reads=st.integers(2, 60))
def test_apply_batch_at_a_hub_reads_at_most_max_reads(
    engine_of: Any, reference: Any, seed: int, max_reads: int
) -> None:
    """An arrival at a hub with 400 leaves may refresh it and test its neighbors, but reads a sample only."""
    engine = engine_of([(0, leaf) for leaf in range(1, 400)] + [(1, 2), (3, 4)], seed=seed)
    delta = apply_to_graph(engine, Batch.from_any([(1000 + seed % 7, 0)]))
    context = BatchContext(seed, 1, 3, max_reads, engine.graph.next_arrival - 1)
    engine.rule.kernel_state(engine.store).links.in_strength[0] = 1e-9  # the hub is influenced with certainty
    state = engine.rule.kernel_state(engine.store)
    expected_rule = reference(state, context)
    expected = expected_rule.apply(delta)
    moved, _ = kernels.apply_batch(
        state, delta.arrived, delta.pairs, delta.arrival_numbers, delta.changed_share, engine.store.seen, context
    )
    assert set(moved.tolist()) == expected
    assert 0 < expected_rule.reads <= max_reads
    np.testing.assert_allclose(state.vectors, expected_rule.x, atol=1e-3 * np.abs(expected_rule.x).max())


def test_compute_refresh_reads_sampled_neighbors_only(engine_of: Any, reference: Any) -> None:
    """Rows outside the sample have no effect, even NaN."""
    engine = engine_of([(0, leaf) for leaf in range(1, 300)] + [(1, 2)])
    state = engine.rule.kernel_state(engine.store)
    expected_rule, key = reference(state, BatchContext(0, 1, 1, 1, 300)), np.uint64(99)
    rows = np.array([engine.graph.ids.find_row(0)])
    out, again = np.empty((2, 1, 4), np.float32)
    kernels.compute_refresh(state, rows, 5, key, out)
    np.testing.assert_allclose(out[0], expected_rule.refresh(int(rows[0]), 5, key), rtol=1e-3, atol=1e-4)
    read = {expected_rule.slots(rows[0])[0] + sample_slot(key, int(state.arrival[rows[0]]), i, 299) for i in range(5)}
    others = [int(state.links.neighbor[slot]) for slot in expected_rule.slots(rows[0]) if slot not in read]
    assert len(others) >= 294
    state.vectors[others] = np.nan
    kernels.compute_refresh(state, rows, 5, key, again)
    assert again.tobytes() == out.tobytes()


@settings(max_examples=30)
@given(seed=SEEDS)
def test_kernels_agree_with_the_reference_one_by_one(engine_of: Any, edges_of: Any, reference: Any, seed: int) -> None:
    engine = engine_of(edges_of(seed))
    delta = apply_to_graph(engine, Batch.from_any(edges_of(seed + 1, vertices=55, edges=30)))
    state, context = engine.rule.kernel_state(engine.store), context_for(engine, delta)
    expected_rule, rng = reference(state, context), np.random.default_rng(seed)
    rows = np.flatnonzero(state.placed)
    out = np.empty((rows.size, 4), np.float32)
    kernels.compute_refresh(state, rows, UNLIMITED, np.uint64(1), out)
    np.testing.assert_allclose(out, [expected_rule.refresh(row, UNLIMITED, 1) for row in rows], rtol=2e-3, atol=1e-4)
    assert kernels.count_neighbor_reads(state.links, rows, 3) == np.minimum(state.links.degree[rows], 3).sum()

    chosen, weights = rng.choice(rows, 3, replace=False), np.array([0.5, 2, 1], np.float32)
    row = np.zeros(4, np.float32)
    kernels.preview_row(state, chosen, weights, row)
    expected = expected_rule.local_step([(float(a), expected_rule.x[u]) for a, u in zip(weights, chosen, strict=True)])
    np.testing.assert_allclose(row, expected, rtol=2e-3, atol=1e-4)

    assert sorted(
        kernels.sample_changed_endpoints(state, delta.pairs, delta.arrival_numbers, delta.changed_share, context)
    ) == sorted(expected_rule.sample_changed_endpoints(delta))
    kernels.admit(state, delta.arrived)
    touched = delta.pairs.reshape(-1)
    assert kernels.find_placement_candidates(state, touched).tolist() == [
        row for row in touched.tolist() if not state.placed[row]
    ]
    newcomers, _ = kernels.place_reachable(state, delta.arrived, delta.pairs.reshape(-1), engine.store.seen, 1)
    assert newcomers.tolist() == expected_rule.place(delta.arrived.tolist(), delta.pairs.ravel().tolist())
    np.testing.assert_allclose(state.vectors, expected_rule.x, rtol=2e-3, atol=1e-4)


def test_preview_row_without_a_placed_neighbor_writes_nothing(engine_of: Any) -> None:
    engine = engine_of([(0, 1), (1, 2), (2, 0)])
    delta = apply_to_graph(engine, Batch.vertices(["lonely"]))
    row = np.zeros(4, np.float32)
    kernels.preview_row(engine.rule.kernel_state(engine.store), delta.arrived, np.ones(1, np.float32), row)
    assert not row.any()


@settings(max_examples=30)
@given(seed=SEEDS)
def test_admission_waves_follow_the_new_neighbors_that_are_read(engine_of: Any, edges_of: Any, seed: int) -> None:
    engine = engine_of(edges_of(0))
    delta = apply_to_graph(engine, Batch.from_any([(u + 30, v + 30, w) for u, v, w in edges_of(seed)]))
    state, context = engine.rule.kernel_state(engine.store), context_for(engine, delta)
    wave = dict(
        zip(
            delta.arrived.tolist(),
            kernels.admission_waves(state, delta.arrived, context.first_new).tolist(),
            strict=True,
        )
    )
    for row, own_wave in wave.items():
        earlier = [
            wave[u]
            for u in engine.graph.adjacency.neighbors(row).tolist()
            if context.first_new <= state.arrival[u] < state.arrival[row]
        ]
        assert own_wave == max(earlier, default=-1) + 1


def test_unplace_isolated_clears_vertices_without_edges(engine_of: Any) -> None:
    engine = engine_of([("a", "b"), ("b", "c"), ("c", "a"), ("a", "d"), ("d", "e")])
    delta = apply_to_graph(engine, Batch.of(["a", "d"], ["d", "e"], op=[Op.REMOVE] * 2))
    state, gone = engine.rule.kernel_state(engine.store), [engine.graph.ids.find_row(name) for name in "de"]
    assert sorted(set(kernels.find_placement_candidates(state, delta.pairs.reshape(-1)).tolist())) == sorted(gone)
    lost = kernels.unplace_isolated(state, delta.pairs.reshape(-1))
    assert sorted(lost.tolist()) == sorted(gone)
    assert not state.placed[gone].any()
    assert not state.vectors[gone].any()
    assert state.placed[engine.graph.ids.find_row("a")]


@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_compute_refresh_of_an_exact_embedding_changes_nothing(engine_of: Any, edges_of: Any, ridge: float) -> None:
    """Without the ridge, eigenvectors solve the equation of the local step."""
    from ripplevec.views.spectral import SpectralView

    engine = engine_of(edges_of(3, edges=200), views=[SpectralView(tau=0.25, diffusion=1, ridge=ridge)])
    rule, store = engine.rule, engine.store
    basis = rule.coordinates.views[0].start(engine.graph.adjacency, engine.graph.row_count, 4, threads=1)
    assert basis.mu.min() > 0.02 * basis.mu.max()
    rows = np.flatnonzero(store.placed)
    exact = KernelState(
        engine.graph.adjacency.links,
        engine.graph.arrival,
        store.placed,
        basis.rows.copy(),
        rule.coordinates.refresh_coefficients(np.float64),
    )
    out = np.empty((rows.size, 4))
    kernels.compute_refresh(exact, rows, UNLIMITED, np.uint64(1), out)
    difference = np.abs(out - basis.rows[rows]).max()
    assert (difference < 1e-6) == (ridge == 0)
