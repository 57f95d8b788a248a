"""The contract of every streaming baseline."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.streaming import (
    DAMF,
    DANE,
    DHPE,
    DNE,
    OLSN,
    STREAMING_BASELINES,
    DepthLGP,
    IncrementalSVD,
    NeighborMean,
    Nystrom,
    WarmNode2Vec,
    get_streaming_baseline,
)

METHODS = [
    NeighborMean(dim=8),
    Nystrom(dim=8),
    WarmNode2Vec(dim=8, length=20, chunk=16),
    IncrementalSVD(dim=8, chunk=3, renew=4),
    DAMF(dim=8, chunk=3, renew=4),
    DANE(dim=8, chunk=16),
    DHPE(dim=8, chunk=16),
    DNE(dim=8, samples=3000, chunk=16),
    OLSN(dim=8, chunk=16),
]
if find_spec("torch"):
    METHODS.append(DepthLGP(dim=8, hidden=16, steps=50))
EACH = pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)


def test_get_streaming_baseline_returns_class() -> None:
    assert {get_streaming_baseline(name) for name in STREAMING_BASELINES} == {*map(type, METHODS), DepthLGP}
    with pytest.raises(InvalidValueError, match="one of 'damf'"):
        get_streaming_baseline("neighbor")


@EACH
def test_streaming_baseline_final_vectors_predict_communities(method: Any, small_stream: Any) -> None:
    vectors = small_stream.run(method).vectors()
    assert vectors.dtype == np.float32
    assert vectors.shape == (160, 8)
    assert small_stream.score(vectors) > 0.75


@EACH
def test_streaming_baseline_is_deterministic(method: Any, small_stream: Any) -> None:
    first = small_stream.run(method).vectors().copy()
    np.testing.assert_array_equal(first, small_stream.run(method).vectors())


@EACH
def test_streaming_baseline_reads_and_previews_change_nothing(method: Any, small_stream: Any) -> None:
    method.start(small_stream.graph)
    before = method.vectors().copy()
    with pytest.raises(ValueError, match="read-only"):
        method.vectors()[0, 0] = 1
    method.preview([0, 1])
    np.testing.assert_array_equal(method.vectors(), before)
    method.add_vertex(80, [0, 1])[:] = 7
    assert not (method.vectors()[80] == 7).any()


@EACH
def test_streaming_baseline_arrival_gets_previewed_vector(method: Any, small_stream: Any) -> None:
    method.start(small_stream.graph)
    v, neighbors = small_stream.arrivals[0]
    previewed = method.preview(neighbors)
    assert previewed.any()
    np.testing.assert_array_equal(method.add_vertex(v, neighbors), previewed)
    np.testing.assert_array_equal(method.vectors()[v], previewed)


@EACH
def test_streaming_baseline_vertex_without_placed_neighbor_is_zero(method: Any, small_stream: Any) -> None:
    method.start(small_stream.graph)
    assert not method.add_vertex(80, []).any()
    assert not method.add_vertex(81, [80]).any()
    assert method.add_vertex(80, [0, 1]).any()


@EACH
def test_streaming_baseline_accepts_start_without_edges(method: Any) -> None:
    method.start(csr_array((2, 2)))
    for v in range(2, 40):
        method.add_vertex(v, [v - 1, v - 2])
    assert np.isfinite(method.vectors()).all()


@EACH
def test_streaming_baseline_with_unknown_vertex_raises(method: Any, small_stream: Any) -> None:
    method.start(small_stream.graph)
    with pytest.raises(InvalidValueError, match="v: expected a known vertex or the next, 80, got 82"):
        method.add_vertex(82, [])
    for neighbors in ([80], [-1]):
        with pytest.raises(InvalidValueError, match="neighbors: expected known vertices"):
            method.add_vertex(80, neighbors)


@EACH
def test_streaming_baseline_with_invalid_settings_raises(method: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"dim: expected an integer ≥ 1"):
        type(method)(dim=0)
    with pytest.raises(InvalidValueError, match=r"seed: expected an integer ≥ 0"):
        type(method)(seed=-1)
