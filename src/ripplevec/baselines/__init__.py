"""Other ways to get vectors, to compare with: one file each, one interface."""

from __future__ import annotations

from ripplevec.baselines.base import Baseline
from ripplevec.baselines.deepwalk import DeepWalk
from ripplevec.baselines.graphwave import GraphWave
from ripplevec.baselines.line import LINE
from ripplevec.baselines.netmf import NetMF
from ripplevec.baselines.node2vec import Node2Vec
from ripplevec.baselines.spectral import Spectral
from ripplevec.baselines.struc2vec import Struc2Vec
from ripplevec.errors import one_of

__all__ = [
    "BASELINES",
    "LINE",
    "Baseline",
    "DeepWalk",
    "GraphWave",
    "NetMF",
    "Node2Vec",
    "Spectral",
    "Struc2Vec",
    "baseline",
]

BASELINES: dict[str, type[Baseline]] = {
    "deepwalk": DeepWalk,
    "graphwave": GraphWave,
    "line": LINE,
    "netmf": NetMF,
    "node2vec": Node2Vec,
    "spectral": Spectral,
    "struc2vec": Struc2Vec,
}


def baseline(name: str) -> type[Baseline]:
    """The class of a baseline by its name."""
    one_of("baseline", name, BASELINES)
    return BASELINES[name]
