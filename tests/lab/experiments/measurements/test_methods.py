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


def test_views_may_be_mappings() -> None:
    views = build_embedder({"dim": 4, "views": [{"tau": 2.0}, SpectralView(tau=3.0)]}).get_params()["views"]
    assert views == [SpectralView(tau=2.0), SpectralView(tau=3.0)]


def test_methods_that_see_the_final_graph_only_are_told_from_those_that_stream() -> None:
    assert [is_static(name) for name in ("deepwalk", "ripplevec", "paper", "nystrom")] == [True, False, False, False]
    with pytest.raises(InvalidValueError, match=r"method: expected one of 'ripplevec', 'paper', 'deepwalk'.*'nystrom'"):
        is_static("shallowwalk")


def test_a_retrained_method_has_the_parameters_given() -> None:
    assert build_static_method("deepwalk", {"dim": 8, "seed": 5}) == DeepWalk(dim=8, seed=5)
    assert build_static_method("spectral", {"dim": 8, "seed": 5}) == Spectral(dim=8, seed=5)


def test_every_stream_has_a_model_of_its_own() -> None:
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


def test_paper_is_ours_with_its_rule() -> None:
    model = streaming_model_factory("paper", {"dim": 4})()
    assert isinstance(model, Embedder)
    assert model.get_params()["rule"] == "paper"


@pytest.mark.parametrize("name", ["ripplevec", "paper", "neighbor_mean", "deepwalk"])
def test_parameters_are_checked_before_anything_runs(name: str) -> None:
    own = {"kind": "shares", "dataset": "planted", "method": name, "seed": 0, "dim": 4, "shares": [0.5]}
    check_method(own, "shares")
    with pytest.raises(TypeError, match="wlaks"):
        check_method(own | {"wlaks": 3}, "shares")
    with pytest.raises(InvalidValueError, match="dim: expected"):
        check_method(own | {"dim": 0}, "shares")


def test_settings_are_spelt_out_with_their_defaults() -> None:
    baseline, model = DeepWalk(dim=4), StreamingBaselineAdapter(NeighborMean(dim=4))
    assert full_parameters(baseline) == asdict(baseline)
    assert full_parameters(model) == asdict(model.method)
    ours = full_parameters(Embedder(dim=4, views=[SpectralView(tau=2.0)]))
    assert (ours["dim"], ours["depth"], ours["views"][0]["tau"]) == (4, 1, 2.0)
    json.dumps([full_parameters(baseline), full_parameters(model), ours])


def test_an_embedding_is_made_anew_each_time_it_is_asked_for(graph: Dataset, embedded: list[int]) -> None:
    seconds, vectors = time_embedding(Spectral(dim=4), graph)
    again = time_embedding(Spectral(dim=4), graph)
    assert embedded == [240, 240]
    assert seconds != again[0]
    np.testing.assert_array_equal(vectors, Spectral(dim=4).embed(graph.adjacency()))
