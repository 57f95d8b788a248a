"""Small saved models of every kind, and a scorer: the input of the load fuzzer."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from ripplevec import Batch, Embedder, LinkScorer, Session
from ripplevec.engine import correction_schedule
from ripplevec.errors import SelfLoopWarning
from ripplevec.rules import correction_pace, gradual_correction
from ripplevec.rules.gradual_correction import STAGES, GradualCorrection

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
    "sparse attributes": {"attribute_dim": 2},
    "dense attributes": {"attribute_dim": 2, "half_life": 5.0},
    "kept attributes": {"attribute_dim": 1, "keep_attributes": True},
}
CORRECTED: dict[str, dict[str, Any]] = {
    "plain": {},
    "half precision": {"storage": "float16"},
    "decay": {"half_life": 9.0},
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
        if "attribute_dim" in parameters:
            for vertex in model.ids[number % 3 :: 5]:
                tags = {f"tag {tag}": 1.0 + tag for tag in random.integers(0, 20, 3).tolist()}
                values = random.normal(size=4).tolist()
                model.set_attributes([vertex], [values if kind.startswith("dense") else tags])
    return model


def save_every_stage(kind: str, directory: Path) -> list[Path]:
    """Save a model in every stage of a gradual correction; return the paths."""
    random, parameters = np.random.default_rng(len(kind)), CORRECTED[kind]
    model, saved = Embedder(dim=6, anchor_growth=0.06, start_size=16, threads=1, **parameters), dict[str, Path]()
    number = 0
    while len(saved) < len(STAGES) and number < 600:
        model.partial_fit(make_batch(random, number, timed="half_life" in parameters))
        stage = "" if model.engine.correction is None else model.engine.correction.stage_name
        if stage and stage not in saved:
            saved[stage] = directory / f"{kind} {stage}".replace(" ", "_")
            model.save(saved[stage])
        number += 1
    return list(saved.values())


@contextmanager
def slow_corrections() -> Iterator[None]:
    """Let gradual corrections take many batches, as on a large graph, and visit every stage."""
    with ExitStack() as changes:
        for owner, name, value in (
            (correction_schedule, "SPREAD_VERTICES", 1),
            (correction_schedule, "MAX_SPREAD", 0.5),
            (gradual_correction, "SLICE_ROWS", 8),
            (correction_pace, "SLICE_ROWS", 8),
            (GradualCorrection, "min_credit", 0.0),
            (gradual_correction, "REPEAT_RATIO", 2.0),
        ):
            changes.enter_context(patch.object(owner, name, value))
        changes.enter_context(patch.dict(correction_pace.COST, {"probe": 1.0}))
        yield


def make_scorer() -> LinkScorer:
    """Return a scorer after some batches."""
    random, scorer = np.random.default_rng(5), LinkScorer(Embedder(dim=6, start_size=16, threads=1))
    for number in range(20):
        scorer.partial_fit(make_batch(random, number, timed=False))
    return scorer


def save_all(directory: Path) -> list[Path]:
    """Save a model of every kind, a scorer, and a snapshot with a pending anchor; return their paths."""
    saved = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelfLoopWarning)
        for number, kind in enumerate(KINDS):
            saved.append(directory / f"model{number}")
            make_model(kind).save(saved[-1])
        with slow_corrections():
            for kind in CORRECTED:
                saved += save_every_stage(kind, directory)
        saved.append(directory / "scorer")
        make_scorer().save(saved[-1])
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
