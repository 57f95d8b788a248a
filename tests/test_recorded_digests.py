"""Seeded streams end in the state that was recorded for them: refactoring must not change a bit.

    RECORD_DIGESTS=1 pytest tests/test_recorded_digests.py      # after a change that is meant to change results

Digests are compared where processor and versions are those of the record; elsewhere the vectors are compared by a few
projections, to rounding.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from ripplevec import Batch, Embedder, Op
from ripplevec.cluster.engine import ClusterEngine
from ripplevec.cluster.shard import Shard
from ripplevec.cluster.transport import LocalTransport
from ripplevec.parameters import Parameters

RECORD = Path(__file__).with_name("recorded_digests.json")
STREAMS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "half precision, deep": {"storage": "float16", "depth": 2, "max_reads": 64},
    "directed, replaced weights": {"directed": True, "duplicates": "replace"},
    "decay": {"half_life": 40.0},
    "expiry": {"expire_after": 60.0},
    "paper": {"rule": "paper"},
    "paper, reused sets": {"rule": "paper", "depth": 3, "reuse_influence": True, "on_empty": "resample"},
}
SHARDS = 3


def environment() -> dict[str, str]:
    """Return the hardware and software on which the last bits of a result depend."""
    try:
        flags = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags"))
    except (OSError, StopIteration):
        flags = ""
    wide = [name for name in ("avx", "avx2", "avx512f", "fma") if name in flags.split()]
    versions = {module.__name__: module.__version__ for module in (np, scipy, numba)}
    return {"machine": f"{platform.machine()} {' '.join(wide)}", **versions}


def edges(rng: np.random.Generator, count: int, vertices: int) -> list[tuple[int, int]]:
    """Edges that prefer vertices of the same remainder, so that there is something to embed."""
    pairs = []
    while len(pairs) < count:
        u = int(rng.integers(vertices))
        v = int(rng.integers(vertices)) if rng.random() < 0.2 else int(u % 5 + 5 * rng.integers(vertices // 5))
        if u != v:
            pairs.append((u, v))
    return pairs


def batches(size: int, timed: bool, weighted: bool, removals: bool) -> Iterator[Batch]:
    """A start, then batches of one size with newcomers, repeated edges and, on request, removals."""
    rng = np.random.default_rng(size)
    known: dict[frozenset[int], tuple[int, int]] = {}
    for number, count in enumerate([1_500, *[size] * (60 if size < 100 else 3)]):
        rows = []
        for u, v in edges(rng, count, 300 + 40 * number if size > 100 else 300 + number):
            weight = float(2.0 ** rng.integers(-2, 3)) if weighted else 1.0
            known[frozenset((u, v))] = (u, v)
            rows.append((u, v, weight, Op.ADD, float(number)))
        if removals and number and number % 5 == 0:
            pair = sorted(known, key=sorted)[int(rng.integers(len(known)))]
            rows.append((*known.pop(pair), 1.0, Op.REMOVE, float(number)))
        src, dst, weight, op, time = (list(column) for column in zip(*rows, strict=True))
        yield Batch.of(src, dst, weight, np.array(op, np.int8), time if timed else None)


def run(name: str, size: int, pace: str = "immediate") -> Embedder:
    parameters = STREAMS[name]
    timed = bool({"half_life", "expire_after"} & set(parameters))
    plain = timed or parameters.get("directed") or parameters.get("rule") == "paper"
    model = Embedder(**{"dim": 16, "seed": 5, "threads": 2, "anchor_pace": pace, **parameters})
    start, *others = batches(size, timed, weighted=True, removals=not plain)
    model.fit(start) if not timed else model.partial_fit(start)
    for batch in others:
        model.partial_fit(batch)
    return model


def projections(vectors: NDArray[np.float64]) -> list[float]:
    """A few sums over cosines, which do not depend on the order or the signs of coordinates."""
    products = vectors @ vectors.T
    weights = np.random.default_rng(0).standard_normal((6, len(products)))
    return [float(weight @ products @ weight) / len(products) for weight in weights]


def compare(key: str, digest: str, numbers: list[float]) -> None:
    recorded = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    if os.environ.get("RECORD_DIGESTS"):
        recorded["environment"] = environment()
        recorded[key] = {"digest": digest, "projections": numbers}
        RECORD.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")
    np.testing.assert_allclose(numbers, recorded[key]["projections"], rtol=0.02, atol=0.02)
    if recorded["environment"] == environment():
        assert digest == recorded[key]["digest"]


@pytest.mark.parametrize("size", [1, 1_000])
@pytest.mark.parametrize("name", STREAMS)
def test_stream_of_one_seed_ends_in_the_recorded_state(name: str, size: int) -> None:
    model = run(name, size)
    compare(f"{name}, batches of {size}", model.digest(), projections(model.to_numpy().astype(np.float64)))


@pytest.mark.parametrize("size", [1, 1_000])
def test_stream_on_shards_ends_in_the_recorded_state(size: int) -> None:
    """Without anchors: their sums over shards differ in the last bits from those of one machine."""
    known = Parameters(**Embedder(dim=16, seed=5, threads=1, anchor_growth=0).get_params())
    engine = ClusterEngine(LocalTransport(SHARDS, lambda number: Shard(number, SHARDS, known)), known)
    start, *others = batches(size, timed=False, weighted=True, removals=True)
    engine.start(start)
    for batch in others:
        engine.apply(batch)
    vectors = engine.get_vectors(engine.rows_by_arrival()).astype(np.float64)
    compare(f"{SHARDS} shards, batches of {size}", engine.digest(), projections(vectors))
