"""Tests of the graph generators: batches of any size hold the same edges, with the documented distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ripplevec import Batch
from ripplevec.batch import ids_to_list
from ripplevec.influence._kernels import mix

EDGES = 20_000


@pytest.fixture
def generators(benchmark: Callable[[str], Any]) -> Any:
    return benchmark("_graph_generators")


def list_edges(batches: list[Batch]) -> list[tuple[Any, Any, float]]:
    return [
        edge
        for batch in batches
        for edge in zip(ids_to_list(batch.src), ids_to_list(batch.dst), batch.weight.tolist(), strict=True)
    ]


@pytest.mark.parametrize("graph", ["preferential", "rmat"])
def test_generate_batches_of_any_size_yields_the_same_edges(generators: Any, graph: str) -> None:
    generate = generators.GRAPHS[graph](EDGES)
    whole = list_edges(list(generators.generate_batches(generate, 0, 2_003, 2_003)))
    cut = list(generators.generate_batches(generate, 0, 500, 7)) + list(
        generators.generate_batches(generate, 500, 2_003, 1_000)
    )
    assert list_edges(cut) == whole
    assert len(whole) == 2_003
    assert max(len(batch) for batch in cut) == 1_000


@pytest.mark.parametrize("graph", ["preferential", "rmat"])
def test_generate_batches_yields_text_ids_and_weights_around_one(generators: Any, graph: str) -> None:
    generate = generators.GRAPHS[graph](EDGES)
    src, dst = generate(100, 200)
    edges = list_edges(list(generators.generate_batches(generate, 100, 200, 30)))
    assert [edge[:2] for edge in edges] == [(f"v{u}", f"v{v}") for u, v in zip(src, dst, strict=True)]
    weights = np.array([weight for _, _, weight in edges])
    assert weights.min() >= 0.5
    assert weights.max() < 1.5
    assert len(set(weights)) == 100


def test_preferential_generator_gives_each_vertex_ten_edges_to_earlier_ones(generators: Any) -> None:
    src, dst = generators.preferential_generator(EDGES)(0, EDGES)
    assert np.array_equal(src, np.repeat(np.arange(1, EDGES // 10 + 1), 10))
    assert (dst < src).all()
    assert np.unique([src, dst]).size == EDGES // 10 + 1


def test_preferential_generator_copies_endpoints_of_earlier_edges(generators: Any) -> None:
    src, dst = generators.preferential_generator(2_000)(0, 2_000)
    endpoints = np.stack([src, dst], axis=1).ravel()
    for edge in range(2_000):
        slot = int(mix(np.uint64(edge))) % (2 * (edge - edge % 10) + 1)
        assert dst[edge] == (endpoints[slot - 1] if slot else 0)


def test_rmat_generator_chooses_quadrants_with_the_given_probabilities(generators: Any) -> None:
    src, dst = generators.rmat_generator(EDGES)(0, EDGES)
    assert max(src.max(), dst.max()) < 2_048  # the next power of two after 2,000 vertices
    for level in range(11):
        quadrant = 2 * (src >> level & 1) + (dst >> level & 1)
        shares = np.bincount(quadrant, minlength=4) / EDGES
        np.testing.assert_allclose(shares, [0.57, 0.19, 0.19, 0.05], atol=0.015)
    levels = [2 * (src >> level & 1) + (dst >> level & 1) for level in (3, 4)]
    assert abs(np.corrcoef(levels)[0, 1]) < 0.03
