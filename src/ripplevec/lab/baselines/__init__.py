"""Other ways to get vectors, to compare with: one file each, one interface."""

from __future__ import annotations

from ripplevec.errors import check_choice
from ripplevec.lab.baselines.base import Baseline
from ripplevec.lab.baselines.deepwalk import DeepWalk
from ripplevec.lab.baselines.graphwave import GraphWave
from ripplevec.lab.baselines.line import LINE
from ripplevec.lab.baselines.netmf import NetMF
from ripplevec.lab.baselines.node2vec import Node2Vec
from ripplevec.lab.baselines.spectral import Spectral
from ripplevec.lab.baselines.struc2vec import Struc2Vec

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
    check_choice("baseline", name, BASELINES)
    return BASELINES[name]
