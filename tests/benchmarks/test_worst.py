"""The worst case, small: the graphs are what they are said to be, and the record fills the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ripplevec import Embedder

LEAVES, SIDE = 300, 30


@pytest.fixture
def kept() -> list[Embedder]:
    return []


@pytest.fixture
def worst(benchmark: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, kept: list[Embedder]) -> Any:
    made = benchmark("worst")

    def keep(**parameters: Any) -> Embedder:
        kept.append(Embedder(**parameters))
        return kept[-1]

    for name, value in {"DIM": 4, "ARRIVALS": 150, "AT_ONCE": 15, "READ_EVERY": 0, "Embedder": keep}.items():
        monkeypatch.setattr(made, name, value)
    return made


def test_everybody_joins_the_hub_and_a_leaf(worst: Any, kept: list[Embedder]) -> None:
    figures = worst.star(LEAVES)
    (model,) = kept
    arrivals = 150 + 100
    assert len(model) == 1 + LEAVES + arrivals
    assert model.diagnostics()["edges"] == LEAVES + 2 * arrivals
    assert model.degree([0]).tolist() == [LEAVES + arrivals]
    assert 0 < figures["star_p50_ms"] <= figures["star_p99_ms"] <= figures["star_p999_ms"] <= figures["star_longest_ms"]


def test_all_of_one_side_are_joined_to_all_of_the_other_and_the_record_fills_the_page(
    worst: Any, kept: list[Embedder], page_of: Callable[..., str]
) -> None:
    figures = {"leaves": LEAVES, **worst.star(LEAVES), **worst.burst(SIDE)}
    model = kept[-1]
    assert (model.degree(list(range(200_000, 200_000 + SIDE))) == SIDE).all()
    assert figures["burst_edges_per_second"] * figures["burst_batch_ms"] == pytest.approx(1e3 * 15)
    assert figures["burst_read_p50_ms"] <= figures["burst_read_p99_ms"] <= figures["burst_read_longest_ms"]
    assert "300 leaves" in page_of("worst", figures)
