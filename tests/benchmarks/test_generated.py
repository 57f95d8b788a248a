"""Graphs that are made up: the same however they are cut, as large as they say, of the kind they say."""

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
def generated(benchmark: Callable[[str], Any]) -> Any:
    return benchmark("_generated")


def listed(batches: list[Batch]) -> list[tuple[Any, Any, float]]:
    return [
        edge
        for batch in batches
        for edge in zip(ids_to_list(batch.src), ids_to_list(batch.dst), batch.weight.tolist(), strict=True)
    ]


@pytest.mark.parametrize("graph", ["preferential", "rmat"])
def test_batches_hold_the_same_edges_however_they_are_cut(generated: Any, graph: str) -> None:
    make = generated.GRAPHS[graph](EDGES)
    whole = listed(list(generated.batches(make, 0, 2_003, 2_003)))
    cut = list(generated.batches(make, 0, 500, 7)) + list(generated.batches(make, 500, 2_003, 1_000))
    assert listed(cut) == whole
    assert len(whole) == 2_003
    assert max(len(batch) for batch in cut) == 1_000


@pytest.mark.parametrize("graph", ["preferential", "rmat"])
def test_names_are_text_and_weights_around_one(generated: Any, graph: str) -> None:
    make = generated.GRAPHS[graph](EDGES)
    src, dst = make(100, 200)
    edges = listed(list(generated.batches(make, 100, 200, 30)))
    assert [edge[:2] for edge in edges] == [(f"v{u}", f"v{v}") for u, v in zip(src, dst, strict=True)]
    weights = np.array([weight for _, _, weight in edges])
    assert weights.min() >= 0.5
    assert weights.max() < 1.5
    assert len(set(weights)) == 100


def test_every_vertex_comes_with_ten_edges_to_earlier_ones(generated: Any) -> None:
    src, dst = generated.preferential(EDGES)(0, EDGES)
    assert np.array_equal(src, np.repeat(np.arange(1, EDGES // 10 + 1), 10))
    assert (dst < src).all()
    assert np.unique([src, dst]).size == EDGES // 10 + 1


def test_its_targets_are_copies_of_the_ends_of_edges_of_earlier_vertices(generated: Any) -> None:
    src, dst = generated.preferential(2_000)(0, 2_000)
    ends = np.stack([src, dst], axis=1).ravel()
    for edge in range(2_000):
        place = int(mix(np.uint64(edge))) % (2 * (edge - edge % 10) + 1)
        assert dst[edge] == (ends[place - 1] if place else 0)


def test_the_quadrants_of_rmat_are_chosen_as_often_as_they_should_be_on_every_level(generated: Any) -> None:
    src, dst = generated.rmat(EDGES)(0, EDGES)
    assert max(src.max(), dst.max()) < 2_048  # of 2,000 vertices, the next power of two
    for level in range(11):
        quadrant = 2 * (src >> level & 1) + (dst >> level & 1)
        shares = np.bincount(quadrant, minlength=4) / EDGES
        np.testing.assert_allclose(shares, [0.57, 0.19, 0.19, 0.05], atol=0.015)
    levels = [2 * (src >> level & 1) + (dst >> level & 1) for level in (3, 4)]
    assert abs(np.corrcoef(levels)[0, 1]) < 0.03
