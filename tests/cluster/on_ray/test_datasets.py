"""Tests with the graphs of the paper: without anchors digests equal those of one machine, with anchors quality does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.cluster import ShardedEmbedder
from ripplevec.lab import datasets
from ripplevec.lab.datasets.download import MissingDataError
from ripplevec.lab.evaluation import classify
from ripplevec.lab.evaluation.protocols import Arrivals, start_size


def load_or_skip(name: str) -> datasets.Dataset:
    try:
        return datasets.load(name)
    except MissingDataError as error:
        pytest.skip(f"set RIPPLEVEC_DATA to run this: {error}")


def run_stream(model: Any, data: datasets.Dataset) -> Any:
    arrivals, begin = Arrivals.from_dataset(data, 0), start_size(data, 0.5)
    model.fit(arrivals.batch(0, begin))
    for first in range(begin, data.vertices, 500):
        model.partial_fit(arrivals.batch(first, min(first + 500, data.vertices)))
    return model


@pytest.mark.parametrize(("name", "shards"), [("cora", 1), ("citeseer", 2), ("wiki", 3), ("blog", 4), ("flickr", 2)])
def test_digest_of_dataset_stream_matches_single_machine(name: str, shards: int) -> None:
    data, parameters = load_or_skip(name), {"dim": 16, "anchor_growth": 0, "threads": 1}
    single = run_stream(Embedder(**parameters), data)
    model = run_stream(ShardedEmbedder(shards=shards, **parameters), data)
    assert model.digest() == single.digest()
    model.check()
    model.close()


def test_classification_with_anchors_matches_single_machine() -> None:
    data, order = load_or_skip("cora"), np.random.default_rng(0).permutation(2708)
    model = ShardedEmbedder(shards=2, dim=90, threads=1)
    micro = []
    for embedder in (model, Embedder(dim=90, threads=1)):
        vectors = run_stream(embedder, data).vectors(np.arange(data.vertices))
        micro.append(classify(vectors, data.labels, order[:1354], order[1354:]).micro)
    assert model.diagnostics()["anchors"] > 0
    model.close()
    assert micro[0] == pytest.approx(micro[1], abs=0.005)
    assert micro[0] > 0.8
