"""What the engine is compared with: the rows that a batch read, counted by hand, and the bare loop over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.changes import BatchOutcome
from ripplevec.engine.engine import Engine

VERTICES, STARTED = 400, 200


@pytest.fixture
def roofline(benchmark: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    made = benchmark("roofline")
    monkeypatch.setattr(made, "START", STARTED)
    monkeypatch.setattr(made, "AT_ONCE", 20)
    return made


@pytest.fixture
def streamed(roofline: Any) -> tuple[Engine, np.ndarray, BatchOutcome]:
    """An engine after a batch, its vectors before it, and what it did."""
    edges, first = roofline.growing_edges(VERTICES), STARTED * roofline.DEGREE
    model = Embedder(dim=8, anchor_growth=0).fit(edges[:first])
    roofline.touch(model.engine, VERTICES)
    before = model.engine.store.vectors.copy()
    return model.engine, before, model.engine.apply(roofline.Batch.from_any(edges[first:]))


def around(engine: Engine, row: int) -> list[int]:
    links = engine.graph.adjacency.links
    begin = int(links.begin[row])
    return links.neighbor[begin : begin + int(links.degree[row])].tolist()


def by_row(reads: Any) -> dict[int, list[int]]:
    ends = np.cumsum(reads.counts)
    assert ends[-1] == reads.rows.size
    parts = np.split(reads.rows, ends[:-1])
    return {int(row): part.tolist() for row, part in zip(reads.written, parts, strict=True)}


def test_every_vertex_comes_with_five_edges_to_earlier_ones(roofline: Any) -> None:
    src, dst = roofline.growing_edges(50).T
    assert np.array_equal(src, np.repeat(np.arange(1, 50), 5))
    assert (dst < src).all()
    assert dst.min() == 0
    assert np.array_equal(roofline.growing_edges(50), roofline.growing_edges(50))


def test_to_have_memory_beforehand_changes_no_vector(roofline: Any) -> None:
    model = Embedder(dim=8, anchor_growth=0).fit(roofline.growing_edges(VERTICES)[: STARTED * roofline.DEGREE])
    digest, vectors = model.digest(), model.to_numpy()
    roofline.touch(model.engine, 5_000)
    assert len(model.engine.store.vectors) >= 5_000
    assert np.array_equal(model.to_numpy(), vectors)
    assert model.digest() == digest


def test_a_refresh_reads_all_neighbors(roofline: Any, streamed: Any) -> None:
    engine = streamed[0]
    rows = np.arange(0, VERTICES, 7)
    assert by_row(roofline.refreshed(engine, rows)) == {row: around(engine, row) for row in rows.tolist()}


def test_a_newcomer_is_placed_by_those_that_came_before_it(roofline: Any, streamed: Any) -> None:
    engine, _, outcome = streamed
    arrival = engine.graph.arrival
    new = np.flatnonzero(arrival[: engine.graph.row_count] >= outcome.first_new)
    assert new.size == VERTICES - STARTED - 1
    assert by_row(roofline.admitted(engine, new)) == {
        row: [other for other in around(engine, row) if arrival[other] < arrival[row]] for row in new.tolist()
    }


def test_a_batch_has_read_for_whomever_it_moved(roofline: Any, streamed: Any) -> None:
    engine, before, outcome = streamed
    admitted, refreshed = roofline.reads_of(engine, outcome.moved, outcome.first_new)
    new = set(np.flatnonzero(engine.graph.arrival[: engine.graph.row_count] >= outcome.first_new).tolist())
    old = set(outcome.moved.tolist()) - new
    changed = set(np.flatnonzero((engine.store.vectors != before).any(axis=1)).tolist())
    assert changed - new == old
    assert set(admitted.written.tolist()) == new
    again = {row for row in new if any(other in new or other in old for other in around(engine, row))}
    assert 0 < len(again) < len(new)
    assert sorted(refreshed.written.tolist()) == sorted(old | again)


@pytest.mark.parametrize("half", [False, True])
def test_the_bare_loop_writes_means(roofline: Any, half: bool) -> None:
    random = np.random.default_rng(0)
    vectors = random.standard_normal((30, 16)).astype(np.float16 if half else np.float32)
    read, counts, written = random.integers(0, 20, 40), np.array([3, 0, 12, 1, 24]), np.array([29, 21, 25, 20, 23])
    expected = vectors.copy()
    for row, rows in zip(written, np.split(read, np.cumsum(counts)[:-1]), strict=True):
        expected[row] = vectors[rows].astype(np.float32).sum(axis=0) / max(rows.size, 1)
    cells, reads = vectors.view(np.uint16) if half else vectors, (read, np.cumsum(counts), written)
    roofline.gather_average(cells, reads, 2, 5)
    roofline.gather_average(cells, reads, 0, 2)
    np.testing.assert_allclose(vectors.astype(np.float32), expected.astype(np.float32), atol=2e-3 if half else 1e-6)


def test_a_record_says_what_the_page_asks_for(roofline: Any, page_of: Callable[..., str]) -> None:
    figures = roofline.measure(VERTICES)
    assert "400 vertices" in page_of("roofline", figures)
    for kind in ("float32_1", "float32_2", "float16_1", "float16_2"):
        assert figures[f"{kind}_admit_reads_per_arrival"] == pytest.approx(5, abs=0.3)  # an edge may come twice
        assert figures[f"{kind}_writes_per_arrival"] > 1
    assert figures["float32_1_ripple_reads_per_arrival"] == figures["float32_2_ripple_reads_per_arrival"]
    assert figures["float32_1_anchor_step_rows_written"] == VERTICES
    bytes_per_row = {kind: 128 * int(kind[5:7]) // 8 for kind in ("float32_1", "float16_1")}
    for kind, size in bytes_per_row.items():
        found = {name: figures[f"{kind}_{name}"] for name in ("gigabytes_per_second", "us_per_arrival")}
        kinds_of_access = ("admit_reads", "ripple_reads", "writes")
        rows = sum(figures[f"{kind}_{access}_per_arrival"] for access in kinds_of_access)
        assert found["gigabytes_per_second"] == pytest.approx(rows * size / found["us_per_arrival"] / 1e3)
