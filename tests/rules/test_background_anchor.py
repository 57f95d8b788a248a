from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from ripplevec import Batch, Embedder, Op
from ripplevec.engine.engine import MAX_PENDING_GROWTH, Engine
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.rules import _kernels as kernels
from ripplevec.rules import background_anchor
from ripplevec.rules.anchor import TouchedRows
from ripplevec.rules.ripple import RippleRule

DATA = planted_partition(communities=4, size=50, inside=8, elsewhere=2, seed=3)
START, SIZE = 500, 20  # edges of the start and of a batch
SHARE, LAG = 0.075, 4  # lag as a share of the graph: the events of nearly three batches, so the fourth adopts


def create_model(lag: float = SHARE, **parameters: Any) -> Embedder:
    model = Embedder(**{"dim": 6, "anchor_growth": 0.1, "seed": 1, **parameters}).fit(DATA.edges[:START])
    model.engine.anchor_lag = lag
    return model


def batches() -> list[Batch]:
    """Return the remaining edges as batches that also add vertices and remove some of them again."""
    stream = []
    for number, first in enumerate(range(START, len(DATA.edges) - SIZE, SIZE)):
        src, dst = DATA.edges[first : first + SIZE].T.tolist()
        op = [Op.ADD] * len(src)
        src, dst, op = [*src, f"new {number}"], [*dst, number], [*op, Op.ADD]
        if number % 3 == 2:
            removed = f"new {number - 2}"
            src, dst, op = [*src, removed], [*dst, removed], [*op, Op.REMOVE_VERTEX]
        stream.append(Batch.of(src, dst, op=op))
    return stream


def run(model: Embedder, stream: list[Batch]) -> list[bool]:
    return [model.partial_fit(batch).anchored for batch in stream]


def test_background_anchor_is_adopted_a_fixed_number_of_batches_later() -> None:
    immediate, delayed = run(create_model(0), batches()), run(create_model(), batches())
    first = immediate.index(True)
    assert delayed.index(True) == first + LAG
    assert sum(delayed) >= 2


def test_background_anchor_is_adopted_before_the_graph_outgrows_it() -> None:
    """With a long lag, it is adopted once the graph has grown by twice the growth that makes an anchor due."""
    model = create_model(lag=1_000, anchor_growth=0.05)
    seen = run(model, batches())
    assert sum(seen) >= 2
    assert model.engine.growth < MAX_PENDING_GROWTH * model.engine.anchor_growth + SIZE / (
        2 * model.engine.edges_at_anchor
    )


def test_batches_continue_while_an_anchor_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are applied while the anchor is computed; only the batch that adopts it waits."""
    proceed, real = threading.Event(), RippleRule.plan_correction

    def delayed(self: RippleRule, *given: Any) -> Any:
        work = real(self, *given)
        return lambda: (proceed.wait(30), work())[1]

    monkeypatch.setattr(RippleRule, "plan_correction", delayed)
    model, stream = create_model(), batches()
    while model.engine.pending_anchor is None:
        model.partial_fit(stream.pop(0))
    for _ in range(LAG - 1):
        assert not model.partial_fit(stream.pop(0)).anchored
        assert not model.engine.pending_anchor.correction.done()
    threading.Timer(0.2, proceed.set).start()
    assert model.partial_fit(stream.pop(0)).anchored
    assert model.engine.pending_anchor is None


def test_background_anchor_result_is_independent_of_its_duration(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, one = batches(), create_model()
    run(one, stream)

    def run_now(work: Any) -> Any:
        done: Any = background_anchor.Future()
        done.set_result(work())
        return done

    monkeypatch.setattr(background_anchor, "_submit", run_now)
    other = create_model(threads=2)
    run(other, stream)
    assert other.digest() == one.digest()
    assert one.engine.anchors >= 2


def test_plan_correction_is_unaffected_by_later_batches() -> None:
    model = create_model(0)
    rule, store = model.engine.rule, model.engine.store
    work = rule.plan_correction(store, 7)
    expected = rule.plan_correction(store, 7)()
    model.partial_fit(DATA.edges[START : START + 200])
    found = work()
    np.testing.assert_array_equal(found.rows.array, expected.rows.array)
    np.testing.assert_array_equal(found.coordinates.rotation, expected.coordinates.rotation)


def test_background_anchor_adopted_immediately_equals_an_anchor() -> None:
    """Without batches in between, the copy gives the same result as an anchor in place."""
    one, other = create_model(0), create_model(0)
    for model in (one, other):
        model.partial_fit(DATA.edges[START : START + 10])
    moved = one.anchor()
    rule, store, sequence = other.engine.rule, other.engine.store, other.engine.sequence
    prepared = rule.prepare_correction(
        store, rule.plan_correction(store, sequence)(), [], sequence, other.change_threshold
    )
    rule.adopt_correction(store, prepared)
    rows = prepared.moved
    np.testing.assert_array_equal(one.to_numpy(), other.to_numpy())
    np.testing.assert_array_equal(store.placed, one.engine.store.placed)
    assert set(other.engine.graph.ids.to_list(rows)) == set(moved.ids)


def test_prepare_places_new_vertices_and_drops_removed_ones() -> None:
    model, stream = create_model(0.01), batches()  # a lag of seven or eight events
    while model.engine.pending_anchor is None:
        model.partial_fit(stream.pop(0))
    model.partial_fit(Batch.of(["late", "lost", "far"], [0, 1, "away"]))
    model.partial_fit(Batch.of(["lost", 3], ["lost", 3], op=[Op.REMOVE_VERTEX] * 2))
    model.partial_fit(
        Batch.of(["successor", "lonely"], [0, "lonely"], op=[Op.ADD, Op.VERTEX])
    )  # reuses the row of a removed vertex
    model.partial_fit(Batch.of(["one", "more"], [2, 3]))
    changes = model.partial_fit(Batch.of(["last"], [5]))
    assert changes.anchored
    for name in ("late", "successor", "last"):
        assert np.linalg.norm(model[name]) == pytest.approx(1, abs=1e-5)
    for name in ("far", "away", "lonely"):
        assert not model[name].any()
    engine = model.engine
    free = engine.graph.arrival[: engine.graph.row_count] < 0
    assert not engine.store.vectors[: engine.graph.row_count][free].any()
    assert not engine.store.placed[: engine.graph.row_count][free].any()
    assert {"late", "successor", "last"} <= set(changes.ids)
    model.check()


def test_vertices_touched_in_between_are_near_their_community() -> None:
    """A vertex that arrives in between is as close to its community as without the delay."""
    model, stream = create_model(), batches()
    while model.engine.pending_anchor is None:
        model.partial_fit(stream.pop(0))
    model.partial_fit(Batch.of(["new"] * 6, DATA.edges[:, 0][DATA.labels[DATA.edges[:, 0]] == 1][:6].tolist()))
    while model.engine.pending_anchor is not None:
        model.partial_fit(stream.pop(0))
    known = [name for name in model.ids if isinstance(name, int)]
    cosines = model.vectors(known) @ model["new"]
    same = DATA.labels[known] == 1
    assert cosines[same].mean() > cosines[~same].mean() + 0.3


def test_background_anchor_is_as_accurate_as_an_immediate_one() -> None:
    exact = Embedder(dim=6).fit(DATA.edges[: len(DATA.edges) - SIZE]).engine.rule.coordinates.mu
    one, other = create_model(0), create_model()
    errors = []
    for model in (one, other):
        run(model, batches())
        errors.append(np.abs(model.engine.rule.coordinates.mu - exact).max())
    assert errors[1] < errors[0] + 0.05


def test_graph_without_edges_discards_the_pending_anchor() -> None:
    model, stream = create_model(), batches()
    while model.engine.pending_anchor is None:
        model.partial_fit(stream.pop(0))
    model.partial_fit(Batch.vertices(model.ids, Op.REMOVE_VERTEX))
    assert model.engine.pending_anchor is None
    model.partial_fit(DATA.edges[:100])


def test_explicit_anchor_replaces_the_pending_one() -> None:
    model, stream = create_model(), batches()
    while model.engine.pending_anchor is None:
        model.partial_fit(stream.pop(0))
    model.anchor()
    assert model.engine.pending_anchor is None


def test_single_arrivals_are_recorded_as_touched() -> None:
    one, other = create_model(0.003), create_model(0.003)
    for number in range(60):
        one.add_vertex(f"v{number}", [number, number + 1])
        other.partial_fit(Batch.arrival(f"v{number}", [number, number + 1]))
    assert one.digest() == other.digest()
    assert one.engine.anchors >= 1


@pytest.mark.parametrize("after", range(LAG))
def test_pending_anchor_survives_saving(after: int) -> None:
    model, stream = create_model(), batches()
    while model.engine.pending_anchor is None:
        model.partial_fit(stream.pop(0))
    run(model, stream[:after])
    again = create_model()
    again.engine.restore(model.engine.state())
    assert again.digest() == model.digest()
    restored: Any = again.engine.pending_anchor
    assert (restored.since, restored.until) == (model.engine.pending_anchor.since, model.engine.pending_anchor.until)
    for each in (model, again):
        run(each, stream[after:])
    assert again.digest() == model.digest()


def test_loaded_model_adopts_the_pending_anchor(tmp_path: Any) -> None:
    model, stream = create_model(), batches()
    while model.engine.pending_anchor is None:
        model.partial_fit(stream.pop(0))
    model.save(tmp_path / "model")
    again = Embedder.load(tmp_path / "model")
    assert [again.partial_fit(batch).anchored for batch in stream[:LAG]] == [False] * (LAG - 1) + [True]


def test_digest_includes_the_pending_anchor() -> None:
    def engine() -> Engine:
        model, stream = create_model(), batches()
        while model.engine.pending_anchor is None:
            model.partial_fit(stream.pop(0))
        return model.engine

    one, other = engine(), engine()
    assert one.digest() == other.digest()
    other.pending_anchor = None
    assert one.digest() != other.digest()


def test_record_touched_keeps_every_batch() -> None:
    model, stream = create_model(), batches()
    while model.engine.pending_anchor is None:
        model.partial_fit(stream.pop(0))
    for number in range(1, LAG):
        changes = model.partial_fit(stream.pop(0))
        recorded = model.engine.pending_anchor.touched
        assert len(recorded) == number
        assert set(model.engine.graph.ids.to_list(recorded[-1].rows)) == set(changes.ids)
        np.testing.assert_array_equal(recorded[-1].arrival, model.engine.graph.arrival[recorded[-1].rows])


def test_prepare_refreshes_touched_rows_in_order() -> None:
    """Rows of each batch are refreshed together, batch by batch; rows of another vertex by now are skipped."""
    results = []
    for touched in ([], [[3, 7], [7, 9], [11]]):
        model = create_model(0)
        rule, store = model.engine.rule, model.engine.store
        touched_rows = [TouchedRows(np.array(rows), store.graph.arrival[rows] + (rows == [11])) for rows in touched]
        rule.adopt_correction(
            store, rule.prepare_correction(store, rule.plan_correction(store, 5)(), touched_rows, 5, 0.0)
        )
        results.append((model, store.vectors[: store.graph.row_count].copy()))
    (plain, before), (_, after) = results
    rule, store = plain.engine.rule, plain.engine.store
    state, value = rule.kernel_state(store), np.empty((2, 6), np.float32)
    for rows in ([3, 7], [7, 9]):
        kernels.compute_refresh(state, np.array(rows), 1 << 40, np.uint64(0), value)
        store.vectors[rows] = value
    np.testing.assert_array_equal(after, store.vectors[: store.graph.row_count])
    assert sorted(np.flatnonzero((after != before).any(axis=1))) == [3, 7, 9]


def test_snapshot_is_unaffected_by_a_later_adoption() -> None:
    """A snapshot is written in the background; the model may have adopted the anchor by then."""
    model, stream = create_model(), batches()
    while model.engine.pending_anchor is None:
        model.partial_fit(stream.pop(0))
    copy = model.engine.snapshot()
    digest, rest = model.digest(), stream[: LAG + 3]
    assert any(run(model, rest))
    again = create_model()
    again.engine.restore(copy.state())
    assert again.digest() == digest == copy.digest()
    run(again, rest)
    assert again.digest() == model.digest()


def test_lag_in_events_is_independent_of_the_batch_size() -> None:
    """The lag counts events: batches of one leave the background computation as much time as large batches."""
    edges = DATA.edges[START : START + 300]
    adopted_at = []
    for size in (1, 10):
        model = create_model(0.1)
        for first in range(0, len(edges), size):
            model.partial_fit(edges[first : first + size])
            if model.engine.pending_anchor is None and model.engine.anchors:
                break
        adopted_at.append(model.engine.events - START)
    assert abs(adopted_at[0] - adopted_at[1]) <= 20
    waited = adopted_at[0] - 0.1 * 2 * START  # events since the anchor was due
    assert waited >= 0.1 * START


def test_prepare_bounds_the_number_of_refresh_steps() -> None:
    def merge(touched: list[TouchedRows]) -> list[TouchedRows]:
        """Return the steps that an anchor passes to its rule."""
        steps = list[list[TouchedRows]]()

        class RecordingRule:
            def prepare_correction(self, store: Any, correction: Any, touched: list[TouchedRows], *_: Any) -> None:
                steps.append(touched)

        done: Any = background_anchor.Future()
        done.set_result(None)
        rule: Any = RecordingRule()
        store: Any = None
        background_anchor.BackgroundAnchor(0, 0, done, touched).prepare(rule, store, 0.0)
        return steps[0]

    touched = [TouchedRows(np.array([number % 7, 90 + number]), np.array([number, number])) for number in range(100)]
    merged = merge(touched)
    assert len(merged) == background_anchor.MAX_REFRESH_STEPS
    for rows, _ in merged:
        assert np.unique(rows).size == rows.size
    assert {row for rows, _ in merged for row in rows.tolist()} == {row for rows, _ in touched for row in rows.tolist()}
    last = {int(row): int(arrival) for rows, arrivals in merged for row, arrival in zip(rows, arrivals, strict=True)}
    assert [last[row] for row in range(7)] == [98, 99, 93, 94, 95, 96, 97]
    assert merge(touched[: background_anchor.MAX_REFRESH_STEPS]) == touched[: background_anchor.MAX_REFRESH_STEPS]
