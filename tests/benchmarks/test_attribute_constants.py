"""Tests of the benchmark of constants of attributes: its graphs, and that it restores the constants."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ripplevec.attributes import projection
from ripplevec.attributes.store import AttributeStore


@pytest.fixture
def constants(benchmark: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    module = benchmark("attribute_constants")
    for name, value in {"COMMUNITIES": 4, "SIZE": 40}.items():
        monkeypatch.setattr(sys.modules[module.generate.__module__], name, value)
    return module


def test_generated_attributes_tell_communities_unless_they_are_misleading(constants: Any) -> None:
    for name, expected in (("dense", True), ("dense_misleading", False)):
        dataset, rows = constants.generate(constants.KINDS[name], 0)
        means = np.array([rows[dataset.labels == label].mean(axis=0) for label in range(4)])
        guessed = np.argmax(rows @ means.T - 0.5 * np.square(means).sum(axis=1), axis=1)
        assert (np.mean(guessed == dataset.labels) > 0.8) == expected


def test_generated_attributes_cover_the_given_share_of_vertices(constants: Any) -> None:
    _, rows = constants.generate(constants.KINDS["fifth_covered"], 0)
    assert 0.1 < np.mean(np.diff(rows.indptr) > 0) < 0.3


def test_trial_has_all_metrics_and_restores_the_constants(constants: Any) -> None:
    before = AttributeStore._adjacency, projection.NEIGHBOR_SHARE
    dataset, rows = constants.generate(constants.KINDS["informative"], 0)
    scores = constants.measure_trial(dataset, rows, 8, 0)
    assert (AttributeStore._adjacency, projection.NEIGHBOR_SHARE) == before
    assert scores["current"] > scores["edges_current"]
    assert {"no_edges", "no_edges_no_smoothing", "current_no_refit"} <= scores.keys()
