"""Small models of every kind, saved: what the load fuzzer tampers with."""

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
SESSION = {"dim": 6, "start_size": 16, "anchor_growth": 0.05, "anchor_lag": 0.1, "threads": 1}


def batch(random: np.random.Generator, number: int, *, timed: bool) -> Batch:
    """A few edges among integers, short texts and one integer of more than 64 bits."""
    names: list[Any] = [*range(30), *(f"v{i}é" for i in range(20)), 2**70]
    ends = random.integers(0, len(names), (6, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    columns = ([names[i] for i in ends[:, side]] for side in (0, 1))
    times = np.full(len(ends), float(number)) if timed else None
    return Batch.of(*columns, weight=random.uniform(0.1, 3.0, len(ends)), time=times)


def model(kind: str) -> Embedder:
    """A model of this kind that has seen arrivals, removals and corrections."""
    random, given = np.random.default_rng(len(kind)), KINDS[kind]
    made = Embedder(dim=6, start_size=16, threads=1, **given)
    timed = "half_life" in given or "expire_after" in given
    for number in range(30):
        made.partial_fit(batch(random, number, timed=timed))
        if number % 7 == 3:
            made.remove_vertex(made.ids[number % 5])
    return made


def save_all(place: Path) -> list[Path]:
    """Save a model of every kind, and a snapshot with a correction on its way; where each lies."""
    saved = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelfLoopWarning)
        for number, kind in enumerate(KINDS):
            saved.append(place / f"model{number}")
            model(kind).save(saved[-1])
        saved.append(_snapshot(place / "session"))
    return saved


def _snapshot(directory: Path) -> Path:
    """The saved state of a session whose correction is not taken over yet."""
    random = np.random.default_rng(17)
    with Session(directory, **SESSION) as session:
        number = 0
        while session.model.engine.pending is None or number < 30:
            session.apply(batch(random, number, timed=False))
            number += 1
        session.apply(batch(random, number, timed=False))
        if session.model.engine.pending is None:
            raise AssertionError("expected a correction on its way")
        return directory / "snapshots" / f"{session.snapshot():012d}"
