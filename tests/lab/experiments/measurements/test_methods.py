from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines import DeepWalk, Spectral
from ripplevec.lab.baselines.streaming import NeighborMean, StreamingBaselineAdapter
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.experiments.measurements.methods import (
    build_embedder,
    build_static_method,
    check_method,
    full_parameters,
    is_static,
    streaming_model_factory,
    time_embedding,
)
from ripplevec.views.spectral import SpectralView


def test_build_embedder_accepts_views_as_mappings() -> None:
    views = build_embedder({"dim": 4, "views": [{"tau": 2.0}, SpectralView(tau=3.0)]}).get_params()["views"]
    assert views == [SpectralView(tau=2.0), SpectralView(tau=3.0)]


def test_is_static_distinguishes_static_from_streaming_methods() -> None:
    assert [is_static(name) for name in ("deepwalk", "ripplevec", "paper", "nystrom")] == [True, False, False, False]
    with pytest.raises(InvalidValueError, match=r"method: expected one of 'ripplevec', 'paper', 'deepwalk'.*'nystrom'"):
        is_static("shallowwalk")


def test_build_static_method_passes_parameters() -> None:
    assert build_static_method("deepwalk", {"dim": 8, "seed": 5}) == DeepWalk(dim=8, seed=5)
    assert build_static_method("spectral", {"dim": 8, "seed": 5}) == Spectral(dim=8, seed=5)


def test_streaming_model_factory_builds_new_models() -> None:
    ours, theirs = (
        streaming_model_factory("ripplevec", {"dim": 4}),
        streaming_model_factory("neighbor_mean", {"dim": 4}),
    )
    first, second = ours(), ours()
    assert isinstance(first, Embedder)
    assert first is not second
    own, other = theirs(), theirs()
    assert isinstance(own, StreamingBaselineAdapter)
    assert isinstance(own.method, NeighborMean)
    assert own.method is not other.method


def test_streaming_model_factory_of_paper_uses_rule_paper() -> None:
    model = streaming_model_factory("paper", {"dim": 4})()
    assert isinstance(model, Embedder)
    assert model.get_params()["rule"] == "paper"


@pytest.mark.parametrize("name", ["ripplevec", "paper", "neighbor_mean", "deepwalk"])
def test_check_method_with_invalid_parameters_raises(name: str) -> None:
    own = {"kind": "shares", "dataset": "planted", "method": name, "seed": 0, "dim": 4, "shares": [0.5]}
    check_method(own, "shares")
    with pytest.raises(TypeError, match="wlaks"):
        check_method(own | {"wlaks": 3}, "shares")
    with pytest.raises(InvalidValueError, match="dim: expected"):
        check_method(own | {"dim": 0}, "shares")


def test_full_parameters_include_defaults() -> None:
    baseline, model = DeepWalk(dim=4), StreamingBaselineAdapter(NeighborMean(dim=4))
    assert full_parameters(baseline) == asdict(baseline)
    assert full_parameters(model) == asdict(model.method)
    ours = full_parameters(Embedder(dim=4, views=[SpectralView(tau=2.0)]))
    assert (ours["dim"], ours["depth"], ours["views"][0]["tau"]) == (4, 1, 2.0)
    json.dumps([full_parameters(baseline), full_parameters(model), ours])


def test_time_embedding_recomputes_each_time(graph: Dataset, embedded: list[int]) -> None:
    seconds, vectors = time_embedding(Spectral(dim=4), graph)
    again = time_embedding(Spectral(dim=4), graph)
    assert embedded == [240, 240]
    assert seconds != again[0]
    np.testing.assert_array_equal(vectors, Spectral(dim=4).embed(graph.adjacency()))
