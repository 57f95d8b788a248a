"""Tests with some random streams, of which `make soak` runs many more; and tests that faults are detected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.views import coordinates


@pytest.fixture
def fuzz(benchmark: Callable[[str], Any]) -> Any:
    return benchmark("stream_fuzz")


def run_many_streams(fuzz: Any) -> None:
    for seed in range(20):
        fuzz.run_stream(fuzz.create_stream(seed))


@pytest.mark.parametrize("first", range(0, 48, 8))
def test_random_streams_keep_vectors_finite_bounded_and_close_to_a_fresh_fit(fuzz: Any, first: int) -> None:
    all_statistics = [fuzz.run_stream(fuzz.create_stream(seed)) for seed in range(first, first + 8)]
    assert all(statistics["batches"] == 20 for statistics in all_statistics)
    assert any(statistics["overlap"] > 0.4 for statistics in all_statistics)


def test_create_stream_of_one_seed_is_reproducible(fuzz: Any) -> None:
    one, other = ([batch.src for batch in fuzz.create_stream(11)] for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_every_graph_of_a_stream_of_cliques_can_be_fitted(fuzz: Any) -> None:
    """LAPACK's default method fails for one of these graphs if BLAS has one thread."""
    stream = fuzz.create_stream(29)
    for _ in stream:
        edges = [(u, v, weight) for (u, v), weight in stream.edges.items()]
        assert Embedder(dim=8, threads=1).fit(edges).to_numpy().any()


def test_run_stream_compares_with_the_views_that_the_model_has_chosen(fuzz: Any) -> None:
    assert fuzz.run_stream(fuzz.create_stream(902120010, 36))["least_overlap"] > fuzz.MIN_OVERLAP


def test_run_stream_without_length_bound_raises(fuzz: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check uses the real bound; the model works without one."""
    original = coordinates.Coordinates.refresh_coefficients

    def unbounded(self: Any, *arguments: Any) -> Any:
        coefficients = original(self, *arguments)
        coefficients.per_view[:, 3:] = 1e30
        return coefficients

    monkeypatch.setattr(coordinates.Coordinates, "refresh_coefficients", unbounded)
    with pytest.raises(fuzz.StreamFault, match=r"too long|not finite"):
        run_many_streams(fuzz)


def test_run_stream_with_unrelated_vectors_raises(fuzz: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "neighbor_overlap", lambda left, right: 0.05)
    with pytest.raises(fuzz.StreamFault, match="nearest neighbors"):
        run_many_streams(fuzz)


def test_neighbor_overlap_is_one_for_equal_and_small_for_unrelated_vectors(fuzz: Any) -> None:
    rng = np.random.default_rng(0)
    one, other = rng.standard_normal((2, 300, 20)).astype(np.float32)
    assert fuzz.neighbor_overlap(one, one) == 1.0
    assert fuzz.neighbor_overlap(one, other) < 0.1
