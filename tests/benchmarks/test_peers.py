"""Tests of the protocol between peers.py and _peer_process.py, with stubs for the systems: nothing is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder

STUB_INTERPRETER = f"""#!{sys.executable}
import sys
from types import ModuleType

for name in ("pycleora", "gensim", "gensim.models", "pecanpy", "pecanpy.pecanpy", "sknetwork", "sknetwork.embedding"):
    sys.modules[name] = ModuleType(name)
    sys.modules[name].__getattr__ = lambda name: None
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
import _peer_process
import numpy as np


class Steady:
    def __init__(self, task):
        self.task = task

    def start(self):
        print("chatter", file=sys.stderr)

    def update(self, previous, vertices):
        self.previous = previous

    def vectors(self, vertices):
        return np.full((vertices, self.task.columns), self.previous, np.float32)


class Fails(Steady):
    def update(self, previous, vertices):
        if self.task.seed == 0 and previous > 40 and len(self.task.sizes) == 4:
            raise ValueError("too much")
        super().update(previous, vertices)


_peer_process.PEERS = {{"fails": Fails, "steady": Steady}}
_peer_process.main()
"""


@pytest.fixture
def peers(benchmark: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    module = benchmark("peers")

    def score_vectors(vectors: np.ndarray, stream: Any, seed: int) -> dict[str, float]:
        return {"micro": float(vectors[0, 0]), "newcomers": len(vectors)}

    monkeypatch.setattr(module, "score_vectors", score_vectors)
    return module


@pytest.fixture
def python(tmp_path: Path) -> Path:
    path = tmp_path / "python"
    path.write_text(STUB_INTERPRETER)
    path.chmod(0o755)
    return path


def create_small_stream(peers: Any, seed: int) -> Any:
    dataset = peers.growing_communities(60, communities=3, noise=0.2, seed=seed)
    return peers.ArrivalStream.of(dataset, np.arange(60), (1, 5, 14))


def test_measure_failing_system_is_recorded_and_does_not_affect_others(peers: Any, python: Path) -> None:
    results, setting = peers.Results("small"), peers.Setting(columns=8, walks=1, length=4, window=2, seeds=2)
    for seed in range(2):
        peers.measure(results, python, create_small_stream(peers, seed), setting, seed)
    record = peers.describe_graph(results, create_small_stream(peers, 1), setting)
    assert record["systems"]["fails"] == {"failed": "ValueError: too much"}
    assert list(record["systems"]) == [peers.RIPPLEVEC, peers.RIPPLEVEC_ONE_BY_ONE, "fails", "steady"]
    for name in (peers.RIPPLEVEC, peers.RIPPLEVEC_ONE_BY_ONE, "steady"):
        row = record["systems"][name]
        assert [len(row[figure]) for figure in ("start", "seconds", "micro", "newcomers")] == [2, 2, 2, 2]
        assert [len(steps) for steps in row["seconds"] + row["micro"]] == [3, 3, 3, 3]
    assert record["systems"]["steady"]["micro"] == [[40.0, 41.0, 46.0]] * 2
    assert record["systems"]["steady"]["newcomers"] == [[41, 46, 60]] * 2
    assert record["arrivals"] == [1, 5, 14]
    assert (record["vertices"], record["start"]) == (60, 40)


def test_run_ripplevec_returns_a_row_per_vertex_and_steps_cover_all_edges(peers: Any) -> None:
    stream = create_small_stream(peers, 0)
    sizes = (0, *stream.sizes)
    parts = [stream.edges_between(first, last) for first, last in pairwise(sizes)]
    assert np.array_equal(np.concatenate(parts), stream.edges)
    assert all((part[:, 1] < last).all() for part, last in zip(parts, stream.sizes, strict=True))
    setting = peers.Setting(columns=8, walks=1, length=4, window=2, seeds=1)
    for batched in (True, False):
        steps = list(peers.run_ripplevec(stream, setting, 0, batched))
        assert steps[0][1] is None
        assert [vectors.shape for _, vectors in steps[1:]] == [(41, 8), (46, 8), (60, 8)]
        assert steps[-1][1].any(axis=1).all()


def test_vectors_by_vertex_of_unknown_vertices_are_zero(peers: Any) -> None:
    model = Embedder(dim=8).fit(2 * create_small_stream(peers, 0).edges)
    rows = peers.vectors_by_vertex(model, 121)
    assert np.array_equal(rows[:120:2], model.vectors(list(range(0, 120, 2))))
    assert rows[:120:2].any(axis=1).all()
    assert not rows[1::2].any()


def test_save_figure_plots_every_system_that_did_not_fail(peers: Any, tmp_path: Path) -> None:
    measured = {"start": [1.0], "seconds": [[0.1, 0.2, 0.4]], "micro": [[0.5, 0.6, 0.75]], "newcomers": [[0.5] * 3]}
    systems = {peers.RIPPLEVEC: measured, "other": measured, "fails": {"failed": "ValueError: too much"}}
    graph = {"vertices": 60, "arrivals": [1, 5, 14], "systems": systems}
    peers.save_figure({"graphs": {"small": graph}}, tmp_path / "new" / "peers.svg")
    svg = (tmp_path / "new" / "peers.svg").read_text()
    assert "ripplevec (75.0)" in svg
    assert "other (75.0)" in svg
    assert "fails" not in svg
