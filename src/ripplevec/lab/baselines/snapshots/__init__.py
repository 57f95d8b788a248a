"""Snapshot baselines: methods that get the whole graph from time to time, and update the vectors of the last time."""

from __future__ import annotations

from ripplevec.errors import check_choice
from ripplevec.lab.baselines.snapshots.base import SnapshotBaseline, changed_vertices
from ripplevec.lab.baselines.snapshots.dynamic_triad import DynamicTriad
from ripplevec.lab.baselines.snapshots.dynnode2vec import DynNode2Vec, GloDyNE
from ripplevec.lab.baselines.snapshots.timers import Timers

__all__ = [
    "SNAPSHOT_BASELINES",
    "DynNode2Vec",
    "DynamicTriad",
    "GloDyNE",
    "SnapshotBaseline",
    "Timers",
    "changed_vertices",
    "get_snapshot_baseline",
]

SNAPSHOT_BASELINES: dict[str, type[SnapshotBaseline]] = {
    "dynamic_triad": DynamicTriad,
    "dynnode2vec": DynNode2Vec,
    "glodyne": GloDyNE,
    "timers": Timers,
}


def get_snapshot_baseline(name: str) -> type[SnapshotBaseline]:
    """Return the class of a snapshot baseline by its name."""
    check_choice("baseline", name, SNAPSHOT_BASELINES)
    return SNAPSHOT_BASELINES[name]
