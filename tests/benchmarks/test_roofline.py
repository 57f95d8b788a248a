"""Tests of the roofline benchmark: row accesses of a batch compared with a direct count, and the bare loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.changes import BatchOutcome
from ripplevec.engine.engine import Engine

VERTICES, START_SIZE = 400, 200


@pytest.fixture
def roofline(benchmark: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    module = benchmark("roofline")
    monkeypatch.setattr(module, "START_SIZE", START_SIZE)
    monkeypatch.setattr(module, "BATCH_ARRIVALS", 20)
    thread_gain = benchmark("_thread_gain")
    for name, value in {"START_VERTICES": 300, "GROWN_VERTICES": 400, "BATCH_SIZES": (50, 100), "REPEATS": 2}.items():
        monkeypatch.setattr(thread_gain, name, value)
    return module


@pytest.fixture
def streamed(roofline: Any) -> tuple[Engine, np.ndarray, BatchOutcome]:
    """Return an engine after a batch, its vectors before the batch, and the outcome."""
    edges, first = roofline.generate_edges(VERTICES), START_SIZE * roofline.EDGES_PER_ARRIVAL
    model = Embedder(dim=8, anchor_growth=0).fit(edges[:first])
    roofline.touch_memory(model.engine, VERTICES)
    before = model.engine.store.vectors.copy()
    return model.engine, before, model.engine.apply(roofline.Batch.from_any(edges[first:]))


def list_neighbors(engine: Engine, row: int) -> list[int]:
    links = engine.graph.adjacency.links
    begin = int(links.begin[row])
    return links.neighbor[begin : begin + int(links.degree[row])].tolist()


def group_by_row(accesses: Any) -> dict[int, list[int]]:
    ends = np.cumsum(accesses.counts)
    assert ends[-1] == accesses.read.size
    parts = np.split(accesses.read, ends[:-1])
    return {int(row): part.tolist() for row, part in zip(accesses.written, parts, strict=True)}


def test_generate_edges_gives_each_vertex_five_edges_to_earlier_ones(roofline: Any) -> None:
    src, dst = roofline.generate_edges(50).T
    assert np.array_equal(src, np.repeat(np.arange(1, 50), 5))
    assert (dst < src).all()
    assert dst.min() == 0
    assert np.array_equal(roofline.generate_edges(50), roofline.generate_edges(50))


def test_touch_memory_changes_no_vector(roofline: Any) -> None:
    model = Embedder(dim=8, anchor_growth=0).fit(
        roofline.generate_edges(VERTICES)[: START_SIZE * roofline.EDGES_PER_ARRIVAL]
    )
    digest, vectors = model.digest(), model.to_numpy()
    roofline.touch_memory(model.engine, 5_000)
    assert len(model.engine.store.vectors) >= 5_000
    assert np.array_equal(model.to_numpy(), vectors)
    assert model.digest() == digest


def test_refresh_reads_all_neighbors(roofline: Any, streamed: Any) -> None:
    engine = streamed[0]
    rows = np.arange(0, VERTICES, 7)
    assert group_by_row(roofline.accesses_of_refresh(engine, rows)) == {
        row: list_neighbors(engine, row) for row in rows.tolist()
    }


def test_placement_reads_earlier_neighbors(roofline: Any, streamed: Any) -> None:
    engine, _, outcome = streamed
    arrival = engine.graph.arrival
    new = np.flatnonzero(arrival[: engine.graph.row_count] >= outcome.first_new)
    assert new.size == VERTICES - START_SIZE - 1
    assert group_by_row(roofline.accesses_of_placement(engine, new)) == {
        row: [other for other in list_neighbors(engine, row) if arrival[other] < arrival[row]] for row in new.tolist()
    }


def test_accesses_of_batch_write_all_moved_vertices(roofline: Any, streamed: Any) -> None:
    engine, before, outcome = streamed
    placement, refresh = roofline.accesses_of_batch(engine, outcome.moved, outcome.first_new)
    new = set(np.flatnonzero(engine.graph.arrival[: engine.graph.row_count] >= outcome.first_new).tolist())
    old = set(outcome.moved.tolist()) - new
    changed = set(np.flatnonzero((engine.store.vectors != before).any(axis=1)).tolist())
    assert changed - new == old
    assert set(placement.written.tolist()) == new
    refreshed_new = {row for row in new if any(other in new or other in old for other in list_neighbors(engine, row))}
    assert 0 < len(refreshed_new) < len(new)
    assert sorted(refresh.written.tolist()) == sorted(old | refreshed_new)


@pytest.mark.parametrize("half", [False, True])
def test_gather_average_writes_means(roofline: Any, half: bool) -> None:
    random = np.random.default_rng(0)
    vectors = random.standard_normal((30, 16)).astype(np.float16 if half else np.float32)
    read, counts, written = random.integers(0, 20, 40), np.array([3, 0, 12, 1, 24]), np.array([29, 21, 25, 20, 23])
    expected = vectors.copy()
    for row, rows in zip(written, np.split(read, np.cumsum(counts)[:-1]), strict=True):
        expected[row] = vectors[rows].astype(np.float32).sum(axis=0) / max(rows.size, 1)
    kernel_array, accesses = vectors.view(np.uint16) if half else vectors, (read, np.cumsum(counts), written)
    roofline.gather_average(kernel_array, accesses, 2, 5)
    roofline.gather_average(kernel_array, accesses, 0, 2)
    np.testing.assert_allclose(vectors.astype(np.float32), expected.astype(np.float32), atol=2e-3 if half else 1e-6)


def test_roofline_record_contains_all_documented_metrics(roofline: Any, render_block: Callable[..., str]) -> None:
    metrics = roofline.measure(VERTICES)
    block = render_block("roofline", metrics)
    assert "400 vertices" in block
    assert "| batches of 100 edges, text ids |" in block
    for kind in ("float32_1", "float32_2", "float16_1", "float16_2"):
        assert metrics[f"{kind}_admit_reads_per_arrival"] == pytest.approx(5, abs=0.3)  # edges may repeat
        assert metrics[f"{kind}_writes_per_arrival"] > 1
    assert metrics["float32_1_ripple_reads_per_arrival"] == metrics["float32_2_ripple_reads_per_arrival"]
    assert metrics["float32_1_anchor_step_rows_written"] == VERTICES
    bytes_per_row = {kind: 128 * int(kind[5:7]) // 8 for kind in ("float32_1", "float16_1")}
    for kind, size in bytes_per_row.items():
        results = {name: metrics[f"{kind}_{name}"] for name in ("gigabytes_per_second", "us_per_arrival")}
        kinds_of_access = ("admit_reads", "ripple_reads", "writes")
        rows = sum(metrics[f"{kind}_{access}_per_arrival"] for access in kinds_of_access)
        assert results["gigabytes_per_second"] == pytest.approx(rows * size / results["us_per_arrival"] / 1e3)


def test_thread_gain_compares_the_fastest_batch_after_the_first(benchmark: Callable[[str], Any]) -> None:
    seconds = {
        1: [{"total": 1.0, "ids": 0.1}, {"total": 6.0, "ids": 2.0}, {"total": 4.0, "ids": 3.0}],
        2: [{"total": 0.5, "ids": 0.1}, {"total": 2.0, "ids": 1.0}, {"total": 9.0, "ids": 0.5}],
    }
    metrics = benchmark("_thread_gain")._compare("int_5", seconds)
    assert metrics["int_5_total_two_over_one"] == 2.0
    assert (metrics["int_5_ids_one_ms"], metrics["int_5_ids_two_ms"]) == (3000.0, 1000.0)


def test_thread_gain_different_digests_raise(roofline: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = map(str, range(2))
    monkeypatch.setattr(Embedder, "digest", lambda model: next(digests))
    with pytest.raises(RuntimeError, match="depends on the number of threads"):
        roofline.measure_thread_gain(roofline.generate_edges, roofline.EDGES_PER_ARRIVAL)
