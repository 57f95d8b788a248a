"""Tests of the benchmark of the attribute weight: its metrics, and that attributes do no harm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def weights(benchmark: Callable[[str], Any]) -> Any:
    return benchmark("attribute_weight")


@pytest.mark.parametrize(("kind", "expected"), [("irrelevant", {0.25, 0.5}), ("informative", {1.0, 2.0})])
def test_chosen_weight_is_small_for_random_attributes_and_larger_for_informative_ones(
    weights: Any, kind: str, expected: set[float]
) -> None:
    dataset, rows, dim = weights.read_graph(kind, 0)
    scores = weights.measure_trial(dataset, rows, dim, 0)
    assert scores["chosen"] in expected
    assert scores["auto"] == scores[f"weight_{scores['chosen']:g}"]
    assert scores["auto"] > scores["edges"] - 2


def test_joined_vectors_with_weight_zero_are_the_edge_parts(weights: Any) -> None:
    parts = [np.eye(3, 2, dtype=np.float32), np.ones((3, 2), np.float32)]
    np.testing.assert_array_equal(weights.join(parts, 0.0)[:, :2], parts[0])
    assert not weights.join(parts, 0.0)[:, 2:].any()
