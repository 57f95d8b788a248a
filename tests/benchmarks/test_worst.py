"""Tests of the benchmark of worst cases, on small graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ripplevec import Embedder

LEAVES, SIDE = 300, 30


@pytest.fixture
def models() -> list[Embedder]:
    return []


@pytest.fixture
def worst(benchmark: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, models: list[Embedder]) -> Any:
    module = benchmark("worst")

    def create_model(**parameters: Any) -> Embedder:
        models.append(Embedder(**parameters))
        return models[-1]

    for name, value in {
        "DIM": 4,
        "ARRIVALS": 150,
        "BATCH_SIZE": 15,
        "READ_INTERVAL_SECONDS": 0,
        "Embedder": create_model,
    }.items():
        monkeypatch.setattr(module, name, value)
    return module


def test_measure_star_connects_arrivals_to_the_hub_and_a_leaf(worst: Any, models: list[Embedder]) -> None:
    metrics = worst.measure_star(LEAVES)
    (model,) = models
    arrivals = 150 + 100
    assert len(model) == 1 + LEAVES + arrivals
    assert model.diagnostics()["edges"] == LEAVES + 2 * arrivals
    assert model.degree([0]).tolist() == [LEAVES + arrivals]
    assert 0 < metrics["star_p50_ms"] <= metrics["star_p99_ms"] <= metrics["star_p999_ms"] <= metrics["star_longest_ms"]


def test_measure_burst_connects_both_sides_and_fills_the_record(
    worst: Any, models: list[Embedder], render_block: Callable[..., str]
) -> None:
    metrics = {"leaves": LEAVES, **worst.measure_star(LEAVES), **worst.measure_burst(SIDE)}
    model = models[-1]
    assert (model.degree(list(range(200_000, 200_000 + SIDE))) == SIDE).all()
    assert metrics["burst_edges_per_second"] * metrics["burst_batch_ms"] == pytest.approx(1e3 * 15)
    assert metrics["burst_read_p50_ms"] <= metrics["burst_read_p99_ms"] <= metrics["burst_read_longest_ms"]
    assert "300 leaves" in render_block("worst", metrics)
