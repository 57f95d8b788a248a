"""Streams of small batches during which a model is corrected gradually, and copies of the model in the middle of it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from ripplevec import Batch, Embedder, Op, SpectralView
from ripplevec.lab.datasets.synthetic import planted_partition

DATA = planted_partition(communities=4, size=50, inside=8, elsewhere=2, seed=3)
TWO_VIEWS = [SpectralView(tau=0.5, share=2), SpectralView(tau_per_degree=4.0, weight=1.4)]
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "float16": {"storage": "float16"},
    "directed": {"directed": True},
    "two views": {"views": TWO_VIEWS, "dim": 7},
    "decay": {"half_life": 40.0},
    "expiry": {"expire_after": 120.0},
    "not normalized": {"normalize": False, "depth": 2},
}


def make_stream(seed: int = 0, batches: int = 420) -> tuple[Batch, list[Batch]]:
    """Return a start, and small batches: edges, arrivals, removals of edges and vertices, rows that are used again."""
    rng = np.random.default_rng(seed)
    ends = DATA.edges[rng.permutation(len(DATA.edges))]
    start, rest, stream = ends[:600], cycle(ends[600:].tolist()), []
    for number in range(batches):
        u, v = next(rest)
        rows: list[tuple[Any, Any, Op]] = [(u, v, Op.ADD)]
        if number % 8 == 1:
            rows += [(f"new {number}", int(rng.integers(200)), Op.ADD), (f"new {number}", u, Op.ADD)]
        if number % 8 == 6:
            rows.append((f"new {number - 5}", f"new {number - 5}", Op.REMOVE_VERTEX))
        if number % 40 == 20:
            rows += [(f"far {number}", f"away {number}", Op.ADD), (f"alone {number}", f"alone {number}", Op.VERTEX)]
        if number % 40 == 35:
            rows += [(f"alone {number - 15}", v, Op.ADD)]
        if number % 30 == 25:
            rows += [("a", "b", Op.ADD), ("b", u, Op.ADD)]
        if number % 30 == 29:
            rows += [("a", "b", Op.REMOVE), ("a", u, Op.ADD)]
        src, dst, op = (list(column) for column in zip(*rows, strict=True))
        stream.append(Batch.of(src, dst, op=op, time=np.full(len(rows), float(number))))
    return Batch.of(*start.T, time=np.zeros(len(start))), stream


def make_model(kind: str, start: Batch, **parameters: Any) -> Embedder:
    options = {"dim": 6, "anchor_growth": 0.06, "seed": 2, "threads": 1, "start_size": 20, **KINDS[kind], **parameters}
    model = Embedder(**options)
    model.partial_fit(timed(start, model))
    assert model.engine.ready
    return model


def timed(batch: Batch, model: Embedder) -> Batch:
    """Return the batch without times for a model that uses none."""
    if model.half_life is not None or model.expire_after is not None:
        return batch
    return Batch.of(batch.src, batch.dst, batch.weight, batch.op)


def stage_of(model: Embedder) -> str | None:
    return None if model.engine.correction is None else model.engine.correction.stage_name


def apply_all(model: Embedder, stream: list[Batch]) -> str:
    for batch in stream:
        model.partial_fit(timed(batch, model))
    model.check()
    return model.digest()


def save_and_load(model: Embedder, path: Path) -> Embedder:
    model.save(path)
    return Embedder.load(path)


def with_cloned_engine(model: Embedder, path: Path) -> Embedder:
    other = Embedder(**model.get_params())
    other._engine = model.engine.clone()
    return other


COPIES: dict[str, Callable[[Embedder, Path], Embedder]] = {
    "save": save_and_load,
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
    "deepcopy": lambda model, _: copy.deepcopy(model),
    "clone": with_cloned_engine,
}
