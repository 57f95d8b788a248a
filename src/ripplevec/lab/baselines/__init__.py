"""Baselines to compare with: methods that embed a whole graph at once; `streaming` has those that can be updated."""

from __future__ import annotations

from ripplevec.errors import check_choice
from ripplevec.lab.baselines.base import Baseline
from ripplevec.lab.baselines.factorization import NetMF, Spectral
from ripplevec.lab.baselines.fastrp import FastRP
from ripplevec.lab.baselines.graphsage import GraphSAGE
from ripplevec.lab.baselines.graphwave import GraphWave
from ripplevec.lab.baselines.line import LINE
from ripplevec.lab.baselines.prone import ProNE
from ripplevec.lab.baselines.random_walks import DeepWalk, Node2Vec
from ripplevec.lab.baselines.sdne import SDNE
from ripplevec.lab.baselines.struc2vec import Struc2Vec

__all__ = [
    "BASELINES",
    "LINE",
    "SDNE",
    "Baseline",
    "DeepWalk",
    "FastRP",
    "GraphSAGE",
    "GraphWave",
    "NetMF",
    "Node2Vec",
    "ProNE",
    "Spectral",
    "Struc2Vec",
    "get_baseline",
]

BASELINES: dict[str, type[Baseline]] = {
    "deepwalk": DeepWalk,
    "fastrp": FastRP,
    "graphsage": GraphSAGE,
    "graphwave": GraphWave,
    "line": LINE,
    "netmf": NetMF,
    "node2vec": Node2Vec,
    "prone": ProNE,
    "sdne": SDNE,
    "spectral": Spectral,
    "struc2vec": Struc2Vec,
}


def get_baseline(name: str) -> type[Baseline]:
    """Return the class of a baseline by its name.

    Examples
    --------
    >>> from ripplevec.lab.baselines import get_baseline
    >>> get_baseline("netmf")(dim=64).window
    10
    """
    check_choice("baseline", name, BASELINES)
    return BASELINES[name]
