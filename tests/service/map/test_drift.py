"""How far vectors have turned since the last anchor."""

from __future__ import annotations

import numpy as np

from ripplevec.embedder import Embedder
from ripplevec.service.map.drift import Drift
from ripplevec.service.map.projection import unit


def model() -> Embedder:
    edges = [(i, (i + step) % 80) for i in range(80) for step in (1, 2, 5)]
    return Embedder(dim=8, threads=1, anchor_growth=0).fit(edges)


def test_nothing_has_moved_yet() -> None:
    drift = Drift(model())
    assert drift.measure() == 0
    assert not drift.since_anchor


def test_the_mean_angle_is_measured_over_those_that_were_there() -> None:
    watched = model()
    drift = Drift(watched)
    drift.measure()
    before = unit(watched.vectors(range(80)))
    watched.partial_fit([(f"n{i}", i) for i in range(40)])
    cosines = (before * unit(watched.vectors(range(80)))).sum(axis=1)
    angle = np.degrees(np.arccos(np.clip(cosines, -1, 1))).mean()
    assert angle > 0.01
    np.testing.assert_allclose(drift.measure(), angle, atol=1e-4)


def test_an_anchor_begins_anew() -> None:
    watched = model()
    drift = Drift(watched)
    drift.measure()
    watched.partial_fit([(f"n{i}", i) for i in range(40)])
    assert drift.measure() > 0
    watched.anchor()
    assert drift.measure() == 0
    assert drift.since_anchor


def test_those_that_went_do_not_count() -> None:
    watched = model()
    drift = Drift(watched)
    drift.measure()
    for vertex in range(80):
        watched.remove_vertex(vertex)
    assert drift.measure() is None


def test_an_empty_model_has_no_drift() -> None:
    assert Drift(Embedder(dim=4, threads=1)).measure() is None
