"""The models that every contract test runs with: each rule, in every setting that selects another code path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ripplevec import Batch, Embedder, SpectralView

MODELS: dict[str, dict[str, Any]] = {
    "ripple": {},
    "ripple, not normalized": {"normalize": False, "anchor_growth": 0},
    "ripple, two views, deep": {
        "views": [SpectralView(tau=0.5, share=2), SpectralView(tau_per_degree=4.0, weight=1.4)],
        "depth": 2,
        "max_reads": 16,
    },
    "ripple, directed, one column": {"directed": True, "dim": 1, "duplicates": "replace"},
    "ripple, unlimited depth": {"depth": None, "anchor_growth": 0.4, "duplicates": "ignore"},
    "ripple, temporal": {"half_life": 30.0, "expire_after": 500.0, "anchor_growth": 0.2},
    "paper": {"rule": "paper"},
    "paper, deep, directed": {"rule": "paper", "depth": None, "directed": True, "on_empty": "zero"},
    "paper, reusing": {"rule": "paper", "depth": 3, "reuse_influence": True, "on_empty": "resample"},
    "mean, from CONTRIBUTING.md": {"rule": "mean"},
}

New = Callable[..., Embedder]


@pytest.fixture(params=MODELS)
def new(request: pytest.FixtureRequest, contributing: Any) -> New:
    """Return a factory of new models with one of the settings."""
    if MODELS[request.param].get("rule") == "mean":
        contributing.run("Add a rule")

    def build(**parameters: Any) -> Embedder:
        return Embedder(**{"dim": 5, "seed": 3, **MODELS[request.param], **parameters})

    return build


def random_stream(seed: int = 0, batches: int = 6) -> tuple[Any, list[Batch]]:
    """Return initial edges, and batches of arrivals, repeated edges and removals, with ids of all types."""
    rng = np.random.default_rng(seed)
    names: list[Any] = [*range(25), *(f"é{number}" for number in range(20)), 10**30, -7]
    start = [(names[u], names[v], float(w)) for u, v, w in _edges(rng, 30, 70)]
    present, stream = {frozenset(edge[:2]) for edge in start}, []
    for _ in range(batches):
        rows = [(names[u], names[v], float(w), 0) for u, v, w in _edges(rng, len(names), 8)]
        existing = sorted(present, key=repr)
        removed = existing[int(rng.integers(len(existing)))]
        rows = [row for row in rows if set(row[:2]) != removed]
        rows.append((*next(edge for edge in start if frozenset(edge[:2]) == removed)[:2], 1.0, 1))
        present -= {removed}
        newcomer = f"new {len(stream)}"
        rows += [(newcomer, names[int(u)], 1.0, 0) for u in rng.choice(25, 3, replace=False)]
        rows.insert(0, (newcomer, newcomer, 1.0, 2))
        if stream:
            rows += [(f"new {len(stream) - 1}", f"new {len(stream) - 1}", 1.0, 3)]
        stream.append(Batch.of(*map(list, zip(*rows, strict=True))))
    return start, stream


def _edges(rng: np.random.Generator, vertices: int, count: int) -> list[Any]:
    rows = [(*rng.integers(0, vertices, 2).tolist(), 2.0 ** rng.integers(-2, 3)) for _ in range(count)]
    return [row for row in rows if row[0] != row[1]]


@pytest.fixture
def stream() -> Callable[..., tuple[Any, list[Batch]]]:
    return random_stream
