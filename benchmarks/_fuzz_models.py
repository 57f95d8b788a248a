"""Small saved models of every kind, the input of the load fuzzer."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ripplevec import Batch, Embedder, Session
from ripplevec.errors import SelfLoopWarning

KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "directed": {"directed": True},
    "half precision": {"storage": "float16"},
    "replace": {"duplicates": "replace", "normalize": False},
    "paper": {"rule": "paper", "depth": 2},
    "paper with reuse": {"rule": "paper", "depth": 3, "reuse_influence": True},
    "decay": {"half_life": 5.0},
    "window": {"expire_after": 20.0},
    "decay, window, directed": {"half_life": 5.0, "expire_after": 20.0, "directed": True},
}
SESSION: dict[str, Any] = {"dim": 6, "start_size": 16, "anchor_growth": 0.05, "threads": 1}


def make_batch(random: np.random.Generator, number: int, *, timed: bool) -> Batch:
    """Return a few edges between integer ids, text ids and one integer of more than 64 bits."""
    vertices: list[Any] = [*range(30), *(f"v{i}é" for i in range(20)), 2**70]
    ends = random.integers(0, len(vertices), (6, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    src, dst = ([vertices[i] for i in ends[:, side]] for side in (0, 1))
    times = np.full(len(ends), float(number)) if timed else None
    return Batch.of(src, dst, weight=random.uniform(0.1, 3.0, len(ends)), time=times)


def make_model(kind: str) -> Embedder:
    """Return a model of a kind after arrivals, removals and anchors."""
    random, parameters = np.random.default_rng(len(kind)), KINDS[kind]
    model = Embedder(dim=6, start_size=16, threads=1, **parameters)
    timed = "half_life" in parameters or "expire_after" in parameters
    for number in range(30):
        model.partial_fit(make_batch(random, number, timed=timed))
        if number % 7 == 3:
            model.remove_vertex(model.ids[number % 5])
    return model


def save_all(directory: Path) -> list[Path]:
    """Save a model of every kind and a snapshot with a pending anchor; return their paths."""
    saved = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelfLoopWarning)
        for number, kind in enumerate(KINDS):
            saved.append(directory / f"model{number}")
            make_model(kind).save(saved[-1])
        saved.append(_write_snapshot(directory / "session"))
    return saved


def _write_snapshot(directory: Path) -> Path:
    """Write a snapshot of a session while an anchor is pending; return its path."""
    random = np.random.default_rng(17)
    with Session(directory, **SESSION) as session:
        number = 0
        while session.model.engine.correction is None or number < 30:
            session.apply(make_batch(random, number, timed=False))
            number += 1
        return directory / "snapshots" / f"{session.snapshot():012d}"
