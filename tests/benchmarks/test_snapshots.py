from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec.lab.baselines import get_baseline
from ripplevec.lab.baselines.snapshots import SNAPSHOT_BASELINES
from ripplevec.lab.temporal.streams import TimedStream

PAIRS = np.array([(7, 5), (5, 7), (9, 7), (9, 7), (5, 9), (3, 7), (3, 5), (9, 3)])


def test_number_by_arrival_numbers_by_first_event(benchmark: Any) -> None:
    snapshots = benchmark("snapshots")
    numbered = snapshots.number_by_arrival(PAIRS)
    assert numbered[:4].tolist() == [[0, 1], [1, 0], [2, 0], [2, 0]]


def test_cut_stream_has_half_as_start_and_equal_steps(benchmark: Any) -> None:
    snapshots = benchmark("snapshots")
    parts = snapshots.cut_stream(np.zeros((100, 2), np.int64), 5)
    assert [len(part) for part in parts] == [50, 10, 10, 10, 10, 10]


def test_build_snapshots_accumulate_weights(benchmark: Any) -> None:
    snapshots = benchmark("snapshots")
    first, last = snapshots.build_snapshots(np.split(snapshots.number_by_arrival(PAIRS), [4]))
    assert first.toarray().tolist() == [[0, 2, 2], [2, 0, 0], [2, 0, 0]]
    assert last.shape == (4, 4)
    assert last.sum() == 2 * 8


def test_score_next_scores_only_new_edges_between_known_vertices(benchmark: Any) -> None:
    snapshots = benchmark("snapshots")
    before = csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    after = np.zeros((30, 30))
    after[:3, :3] = 1 - np.eye(3)
    after[4, 0] = after[0, 4] = 1
    vectors = np.eye(3, dtype=np.float32)
    assert snapshots.score_next(vectors, before, csr_array(after), np.random.default_rng(0)).shape == (0, 21)
    grown = np.zeros((5, 5))
    grown[:3, :3] = before.toarray()
    grown[3, 4] = grown[4, 3] = 1
    scores = snapshots.score_next(
        np.eye(5, dtype=np.float32)[[0, 1, 0, 2, 2]],
        csr_array(grown),
        csr_array(after[:5, :5]),
        np.random.default_rng(0),
    )
    assert scores[:, 0].tolist() == [1.0, 0.0]  # (0, 2) is alike, (0, 4) is not


@pytest.mark.parametrize("name", ["ripplevec", "timers"])
def test_run_method_ranks_edges_of_communities(name: str, benchmark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots = benchmark("snapshots")
    generator = np.random.default_rng(1)
    src = generator.integers(60, size=1_500)
    dst = np.where(generator.random(1_500) < 0.9, src // 20 * 20 + generator.integers(20, size=1_500), 59 - src)
    events = TimedStream("communities", src, dst, np.arange(1_500))
    monkeypatch.setattr(snapshots, "load_stream", lambda name: events)
    monkeypatch.setattr(snapshots, "DIM", 8)
    result = snapshots.run_method(name, "communities", 4, 0)
    assert result["auc_cosine"] > 0.6
    assert result["step_seconds"] >= 0


@pytest.mark.parametrize("name", ["dynnode2vec", "glodyne", "timers", "dynamic_triad", "deepwalk", "prone"])
def test_grids_have_settings_of_the_method_and_its_defaults(name: str, benchmark: Any) -> None:
    snapshots = benchmark("snapshots")
    method = SNAPSHOT_BASELINES[name] if name in SNAPSHOT_BASELINES else get_baseline(name)
    candidates = [method(**settings) for settings in benchmark("_tuning").expand_grids(snapshots.GRIDS[name])]
    assert method() in candidates
    assert len(candidates) <= 12


def test_grid_run_sees_only_the_first_half_of_the_stream(benchmark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots = benchmark("snapshots")
    pairs = np.random.default_rng(1).integers(40, size=(800, 2))
    results = []
    for later in (pairs[400:], pairs[:400]):
        monkeypatch.setattr(snapshots, "load_pairs", lambda stream, later=later: np.concatenate([pairs[:400], later]))
        results.append(snapshots.run_method("prone", "random", 4, 0, {"mu": 0.5}, first_half=True))
    assert results[0]["auc_cosine"] == results[1]["auc_cosine"]
    assert results[0]["edges"] == results[1]["edges"]


def test_select_settings_takes_the_higher_of_cosine_and_inner_product(benchmark: Any) -> None:
    snapshots = benchmark("snapshots")
    low = {f"{metric}_{score}": 0.5 for metric in ("auc", "mrr") for score in ("cosine", "inner")}
    settings = benchmark("_tuning").expand_grids(snapshots.GRIDS["timers"])
    grid = {f"s, timers, {benchmark('_tuning').describe_settings(each)}": dict(low) for each in settings}
    assert snapshots.select_settings(grid, "s", "timers") == settings[0]
    grid["s, timers, margin 5.0"]["mrr_inner"] = 0.7
    assert snapshots.select_settings(grid, "s", "timers") == {"margin": 5.0}


def test_tuned_run_has_the_settings_of_the_grid(
    benchmark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    snapshots = benchmark("snapshots")
    pairs = np.random.default_rng(1).integers(40, size=(800, 2))
    monkeypatch.setattr(snapshots, "load_pairs", lambda stream: pairs)
    monkeypatch.setattr(snapshots, "DIM", 8)
    monkeypatch.setitem(snapshots.GRIDS, "timers", [{"margin": [0.1, 0.2]}])
    common = ["snapshots", "--methods", "tuned timers", "--steps", "4", "--settings", str(tmp_path / "grid.json")]
    monkeypatch.setattr("sys.argv", [*common, "--grid"])
    snapshots.main()
    grid = json.loads((tmp_path / "grid.json").read_text())["runs"]
    assert grid.keys() == {"collegemsg, timers, margin 0.1", "collegemsg, timers, margin 0.2"}
    monkeypatch.setattr("sys.argv", [*common, "--seeds", "1", "--json", str(tmp_path / "runs.json")])
    snapshots.main()
    runs = json.loads((tmp_path / "runs.json").read_text())["runs"]
    assert runs["collegemsg, tuned timers, 0"]["settings"] == snapshots.select_settings(grid, "collegemsg", "timers")
