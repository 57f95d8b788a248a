"""Random streams of every shape, some of them here and many more in `make soak`; and that faults are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ripplevec.views import coordinates


@pytest.fixture
def fuzz(benchmark: Callable[[str], Any]) -> Any:
    return benchmark("stream_fuzz")


def run_many(fuzz: Any) -> None:
    for seed in range(20):
        fuzz.run(fuzz.stream_of(seed))


@pytest.mark.parametrize("first", range(0, 48, 8))
def test_vectors_after_every_batch_of_random_streams_are_finite_bounded_and_near_a_fresh_fit(
    fuzz: Any, first: int
) -> None:
    figures = [fuzz.run(fuzz.stream_of(seed)) for seed in range(first, first + 8)]
    assert all(each["batches"] == 20 for each in figures)
    assert any(each["overlap"] > 0.4 for each in figures)


def test_stream_of_one_seed_is_always_the_same(fuzz: Any) -> None:
    one, other = ([batch.src for batch in fuzz.stream_of(11)] for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_local_step_without_a_bound_is_found_out(fuzz: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check measures with the bound as it is, the model works without one."""
    frame = coordinates.Coordinates.refresh_coefficients

    def unbounded(self: Any, *arguments: Any) -> Any:
        made = frame(self, *arguments)
        made.per_view[:, 3:] = 1e30
        return made

    monkeypatch.setattr(coordinates.Coordinates, "refresh_coefficients", unbounded)
    with pytest.raises(fuzz.Fault, match=r"long, expected at most|not finite"):
        run_many(fuzz)


def test_vectors_that_lost_their_way_are_found_out(fuzz: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "shared_neighbors", lambda left, right: 0.05)
    with pytest.raises(fuzz.Fault, match="nearest neighbors"):
        run_many(fuzz)


def test_shared_neighbors_of_the_same_and_of_other_vectors_are_all_and_few(fuzz: Any) -> None:
    rng = np.random.default_rng(0)
    one, other = rng.standard_normal((2, 300, 20)).astype(np.float32)
    assert fuzz.shared_neighbors(one, one) == 1.0
    assert fuzz.shared_neighbors(one, other) < 0.1
