"""What every streaming baseline promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.streaming import IncrementalSVD, NeighborMean, Nystrom, WarmNode2Vec, streaming_baseline

METHODS = [
    NeighborMean(dim=8),
    Nystrom(dim=8),
    WarmNode2Vec(dim=8, length=20, chunk=16),
    IncrementalSVD(dim=8, chunk=3, renew=4),
]
EACH = pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)


def test_a_streaming_baseline_is_found_by_its_name() -> None:
    names = ["neighbor_mean", "nystrom", "warm_node2vec", "incremental_svd"]
    assert [streaming_baseline(name) for name in names] == [NeighborMean, Nystrom, WarmNode2Vec, IncrementalSVD]
    with pytest.raises(InvalidValueError, match="one of 'neighbor_mean'"):
        streaming_baseline("neighbor")


@EACH
def test_communities_can_be_told_at_the_end(method: Any, small_stream: Any) -> None:
    vectors = small_stream.run(method).vectors()
    assert vectors.dtype == np.float32
    assert vectors.shape == (160, 8)
    assert small_stream.score(vectors) > 0.75


@EACH
def test_the_same_stream_gives_the_same_vectors(method: Any, small_stream: Any) -> None:
    first = small_stream.run(method).vectors().copy()
    np.testing.assert_array_equal(first, small_stream.run(method).vectors())


@EACH
def test_reading_and_placing_change_nothing(method: Any, small_stream: Any) -> None:
    method.start(small_stream.graph)
    before = method.vectors().copy()
    with pytest.raises(ValueError, match="read-only"):
        method.vectors()[0, 0] = 1
    method.place([0, 1])
    np.testing.assert_array_equal(method.vectors(), before)
    method.arrive(80, [0, 1])[:] = 7
    assert not (method.vectors()[80] == 7).any()


@EACH
def test_a_newcomer_is_given_what_was_foretold(method: Any, small_stream: Any) -> None:
    method.start(small_stream.graph)
    v, neighbors = small_stream.arrivals[0]
    foretold = method.place(neighbors)
    assert foretold.any()
    np.testing.assert_array_equal(method.arrive(v, neighbors), foretold)
    np.testing.assert_array_equal(method.vectors()[v], foretold)


@EACH
def test_one_that_knows_nobody_is_zero_until_it_does(method: Any, small_stream: Any) -> None:
    method.start(small_stream.graph)
    assert not method.arrive(80, []).any()
    assert not method.arrive(81, [80]).any()
    assert method.arrive(80, [0, 1]).any()


@EACH
def test_an_empty_start_is_borne(method: Any) -> None:
    method.start(csr_array((2, 2)))
    for v in range(2, 40):
        method.arrive(v, [v - 1, v - 2])
    assert np.isfinite(method.vectors()).all()


@EACH
def test_unknown_vertices_are_refused(method: Any, small_stream: Any) -> None:
    method.start(small_stream.graph)
    with pytest.raises(InvalidValueError, match="v: expected a known vertex or the next, 80, got 82"):
        method.arrive(82, [])
    for neighbors in ([80], [-1]):
        with pytest.raises(InvalidValueError, match="neighbors: expected known vertices"):
            method.arrive(80, neighbors)


@EACH
def test_settings_are_checked(method: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"dim: expected a whole number ≥ 1"):
        type(method)(dim=0)
    with pytest.raises(InvalidValueError, match=r"seed: expected a whole number ≥ 0"):
        type(method)(seed=-1)
