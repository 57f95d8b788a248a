"""The protocol between peers.py and _peers.py, with stand-ins for the peers: nothing is installed for it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder

STAND_INS = f"""#!{sys.executable}
import sys
from types import ModuleType

for name in ("pycleora", "gensim", "gensim.models", "pecanpy", "pecanpy.pecanpy", "sknetwork", "sknetwork.embedding"):
    sys.modules[name] = ModuleType(name)
    sys.modules[name].__getattr__ = lambda name: None
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
import _peers
import numpy as np


class Steady:
    def __init__(self, task):
        self.task = task

    def start(self):
        print("chatter", file=sys.stderr)

    def update(self, known, vertices):
        self.known = known

    def vectors(self, vertices):
        return np.full((vertices, self.task.columns), self.known, np.float32)


class Fails(Steady):
    def update(self, known, vertices):
        if self.task.seed == 0 and known > 40 and len(self.task.sizes) == 4:
            raise ValueError("too much")
        super().update(known, vertices)


_peers.PEERS = {{"fails": Fails, "steady": Steady}}
_peers.main()
"""


@pytest.fixture
def peers(benchmark: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    made = benchmark("peers")

    def score(vectors: np.ndarray, stream: Any, seed: int) -> dict[str, float]:
        return {"micro": float(vectors[0, 0]), "newcomers": len(vectors)}

    monkeypatch.setattr(made, "score", score)
    return made


@pytest.fixture
def python(tmp_path: Path) -> Path:
    path = tmp_path / "python"
    path.write_text(STAND_INS)
    path.chmod(0o755)
    return path


def small(peers: Any, seed: int) -> Any:
    dataset = peers.growing_communities(60, communities=3, noise=0.2, seed=seed)
    return peers.Stream.of(dataset, np.arange(60), (1, 5, 14))


def test_one_that_fails_with_a_seed_is_noted_and_stops_nobody_with_the_next(peers: Any, python: Path) -> None:
    table, setting = peers.Table("small"), peers.Setting(columns=8, walks=1, length=4, window=2, seeds=2)
    for seed in range(2):
        peers.measure(table, python, small(peers, seed), setting, seed)
    record = peers.graph_record(table, small(peers, 1), setting)
    assert record["systems"]["fails"] == {"failed": "ValueError: too much"}
    assert list(record["systems"]) == [peers.OURS, peers.ONE_BY_ONE, "fails", "steady"]
    for name in (peers.OURS, peers.ONE_BY_ONE, "steady"):
        row = record["systems"][name]
        assert [len(row[figure]) for figure in ("start", "seconds", "micro", "newcomers")] == [2, 2, 2, 2]
        assert [len(steps) for steps in row["seconds"] + row["micro"]] == [3, 3, 3, 3]
    assert record["systems"]["steady"]["micro"] == [[40.0, 41.0, 46.0]] * 2
    assert record["systems"]["steady"]["newcomers"] == [[41, 46, 60]] * 2
    assert record["arrivals"] == [1, 5, 14]
    assert (record["vertices"], record["start"]) == (60, 40)


def test_steps_bring_every_edge_once_and_ours_has_a_row_per_vertex(peers: Any) -> None:
    stream = small(peers, 0)
    sizes = (0, *stream.sizes)
    parts = [stream.between(first, last) for first, last in pairwise(sizes)]
    assert np.array_equal(np.concatenate(parts), stream.edges)
    assert all((part[:, 1] < last).all() for part, last in zip(parts, stream.sizes, strict=True))
    setting = peers.Setting(columns=8, walks=1, length=4, window=2, seeds=1)
    for whole in (True, False):
        found = list(peers.ours(stream, setting, 0, whole))
        assert found[0][1] is None
        assert [vectors.shape for _, vectors in found[1:]] == [(41, 8), (46, 8), (60, 8)]
        assert found[-1][1].any(axis=1).all()


def test_a_vertex_that_was_never_seen_has_a_row_of_zeros(peers: Any) -> None:
    model = Embedder(dim=8).fit(2 * small(peers, 0).edges)
    rows = peers.vectors_of(model, 121)
    assert np.array_equal(rows[:120:2], model.vectors(list(range(0, 120, 2))))
    assert rows[:120:2].any(axis=1).all()
    assert not rows[1::2].any()
