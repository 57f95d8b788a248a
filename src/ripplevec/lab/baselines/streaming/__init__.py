"""Streaming baselines: methods that process one arrival at a time, all with the same interface."""

from __future__ import annotations

from ripplevec.errors import check_choice
from ripplevec.lab.baselines.streaming.base import StreamingBaseline, StreamingBaselineAdapter
from ripplevec.lab.baselines.streaming.damf import DAMF
from ripplevec.lab.baselines.streaming.dane import DANE
from ripplevec.lab.baselines.streaming.depth_lgp import DepthLGP
from ripplevec.lab.baselines.streaming.dhpe import DHPE
from ripplevec.lab.baselines.streaming.dne import DNE
from ripplevec.lab.baselines.streaming.incremental_svd import IncrementalSVD
from ripplevec.lab.baselines.streaming.olsn import OLSN
from ripplevec.lab.baselines.streaming.out_of_sample import NeighborMean, Nystrom
from ripplevec.lab.baselines.streaming.warm_node2vec import WarmNode2Vec

__all__ = [
    "DAMF",
    "DANE",
    "DHPE",
    "DNE",
    "OLSN",
    "STREAMING_BASELINES",
    "DepthLGP",
    "IncrementalSVD",
    "NeighborMean",
    "Nystrom",
    "StreamingBaseline",
    "StreamingBaselineAdapter",
    "WarmNode2Vec",
    "get_streaming_baseline",
]

STREAMING_BASELINES: dict[str, type[StreamingBaseline]] = {
    "damf": DAMF,
    "dane": DANE,
    "depth_lgp": DepthLGP,
    "dhpe": DHPE,
    "dne": DNE,
    "neighbor_mean": NeighborMean,
    "nystrom": Nystrom,
    "olsn": OLSN,
    "warm_node2vec": WarmNode2Vec,
    "incremental_svd": IncrementalSVD,
}


def get_streaming_baseline(name: str) -> type[StreamingBaseline]:
    """Return the class of a streaming baseline by its name."""
    check_choice("baseline", name, STREAMING_BASELINES)
    return STREAMING_BASELINES[name]
