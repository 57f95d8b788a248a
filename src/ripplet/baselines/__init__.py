"""Other ways to get vectors, to compare with: one file each, one interface."""

from __future__ import annotations

from ripplet.baselines.base import Baseline
from ripplet.baselines.deepwalk import DeepWalk
from ripplet.baselines.graphwave import GraphWave
from ripplet.baselines.line import LINE
from ripplet.baselines.netmf import NetMF
from ripplet.baselines.node2vec import Node2Vec
from ripplet.baselines.spectral import Spectral
from ripplet.baselines.struc2vec import Struc2Vec
from ripplet.errors import one_of

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
