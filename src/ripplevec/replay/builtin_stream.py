"""The built-in stream: a synthetic graph of ten communities that grows by one vertex per second of event time."""

from __future__ import annotations

import numpy as np

from ripplevec.batch import Batch, Id

LABELS = ("alder", "birch", "cedar", "elm", "hazel", "juniper", "larch", "maple", "oak", "willow")
EDGES_PER_VERTEX, NOISE = 5, 0.2
"""Edges of each new vertex, and the probability that an edge goes to the community of a random vertex instead."""


def generate_stream(vertices: int, seed: int = 0) -> tuple[Batch, dict[Id, str]]:
    """Return the edges in order of time, and the community name of every vertex."""
    from ripplevec.lab.datasets.synthetic import growing_communities  # imported on demand: other replays do not need it

    data = growing_communities(vertices, len(LABELS), EDGES_PER_VERTEX, NOISE, seed)
    older, newer = data.edges.T
    names = [f"{LABELS[label]}-{number}" for number, label in enumerate(data.labels.tolist())]
    ids = np.array(names, np.str_)
    batch = Batch.of(ids[newer].tolist(), ids[older].tolist(), time=newer.astype(np.float64))
    return batch, {name: LABELS[label] for name, label in zip(names, data.labels.tolist(), strict=True)}
