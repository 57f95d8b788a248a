"""Baselines that take in one arrival at a time, all with the same few methods: `start`, `arrive`, `vectors`."""

from __future__ import annotations

from ripplevec.errors import check_choice
from ripplevec.lab.baselines.streaming.adapter import Streamed
from ripplevec.lab.baselines.streaming.base import StreamingBaseline
from ripplevec.lab.baselines.streaming.incremental_svd import IncrementalSVD
from ripplevec.lab.baselines.streaming.neighbor_mean import NeighborMean
from ripplevec.lab.baselines.streaming.nystrom import Nystrom
from ripplevec.lab.baselines.streaming.warm_node2vec import WarmNode2Vec

__all__ = [
    "STREAMING_BASELINES",
    "IncrementalSVD",
    "NeighborMean",
    "Nystrom",
    "Streamed",
    "StreamingBaseline",
    "WarmNode2Vec",
    "streaming_baseline",
]

STREAMING_BASELINES: dict[str, type[StreamingBaseline]] = {
    "neighbor_mean": NeighborMean,
    "nystrom": Nystrom,
    "warm_node2vec": WarmNode2Vec,
    "incremental_svd": IncrementalSVD,
}


def streaming_baseline(name: str) -> type[StreamingBaseline]:
    """The class of a streaming baseline by its name."""
    check_choice("baseline", name, STREAMING_BASELINES)
    return STREAMING_BASELINES[name]
