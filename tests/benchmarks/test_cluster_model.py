"""Tests of the cluster cost model: calibration recovers known constants, and predictions name the limit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
CORES, TWO_THREADS = 2, 1.25
CONSTANTS = {
    "call": 8e-3,
    "shard": 2e-3,
    "pair": 1e-4,
    "serial": 1e-6,
    "serial_per_shard": 1e-7,
    "work": 6e-6,
    "exchange": 2e-6,
    "sent": 4_000.0,
    "needed": 3_000.0,
    "through_driver": 650.0,
    "through_driver_per_shard": 16.0,
    "calls": 36,
    "calls_over_one": 1.5,
}


@pytest.fixture
def model(benchmark: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark("_cluster_model")


def create_records(model: ModuleType, **constants: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the records that cluster.py and cluster_driver.py would write if the model were exact."""
    exact = model.CostModel(**CONSTANTS | constants)
    cluster: dict[str, Any] = {"vertices": 1000, "cores": CORES}
    cluster |= {f"single_seconds_{size}": size * 5e-6 for size in (1, 200, 20_000)}
    for shards in (1, 2, 4):
        seconds = {size: model.predict_local(exact, shards, size, CORES, TWO_THREADS) for size in (200, 20_000)}
        seconds[1] = exact.fixed(shards) / exact.calls_over_one
        metrics = {f"seconds_{size}": value for size, value in seconds.items()}
        metrics |= {f"of_single_{size}": size * 5e-6 / value for size, value in seconds.items()}
        metrics |= {f"{name}_per_arrival": value * (1 - 1 / shards) for name, value in _bytes_sent(exact).items()}
        metrics |= {"sent_over_needed": exact.sent / exact.needed, "same": 1.0}
        cluster |= {f"shards_{shards}_{name}": value for name, value in metrics.items()}
    driver = {"arrivals": 1000, "calls_1": exact.calls / exact.calls_over_one, "calls_20000": exact.calls}
    for shards in (1, 4, 16, 64, 256):
        driver[f"shards_{shards}_us_per_arrival"] = 1e6 * exact.driver(shards)
        driver[f"shards_{shards}_bytes_per_arrival"] = exact.through_driver + 16 * shards
    return cluster, driver


def _bytes_sent(exact: Any) -> dict[str, float]:
    return {"bytes": exact.sent, "needed": exact.needed}


@pytest.mark.parametrize("constants", [{}, {"pair": 0.0}, {"exchange": 0.0}])
def test_calibrate_recovers_the_constants(model: ModuleType, constants: dict[str, float]) -> None:
    costs = model.calibrate(*create_records(model, **constants), TWO_THREADS)
    for name, value in (CONSTANTS | constants).items():
        assert getattr(costs, name) == pytest.approx(value, rel=1e-6, abs=1e-9), name
    assert costs.check == pytest.approx(0, abs=1e-9)
    assert costs.traffic_check == pytest.approx(0, abs=1e-9)


def test_calibrate_checks_but_does_not_fit_four_shards(model: ModuleType) -> None:
    cluster, driver = create_records(model)
    cluster["shards_4_seconds_20000"] *= 2
    cluster["shards_4_bytes_per_arrival"] *= 0.8
    costs = model.calibrate(cluster, driver, TWO_THREADS)
    assert costs.work == pytest.approx(CONSTANTS["work"])
    assert costs.check == pytest.approx(-0.5)
    assert costs.traffic_check == pytest.approx(0.25)


def test_calibrate_with_noise_gives_no_negative_cost(model: ModuleType) -> None:
    cluster, driver = create_records(model)
    cluster["shards_4_seconds_1"] = cluster["shards_1_seconds_1"] / 2
    cluster["shards_2_seconds_20000"] = cluster["shards_1_seconds_20000"] / 9
    costs = model.calibrate(cluster, driver, TWO_THREADS)
    assert min(costs.call, costs.shard, costs.pair, costs.work, costs.exchange) >= 0


def test_predictions_are_monotonic(model: ModuleType) -> None:
    costs = model.CostModel(**CONSTANTS)
    for machines in model.MACHINES:
        speeds = [model.predict(costs, machines, batch).edges_per_second for batch in model.BATCHES]
        assert speeds == sorted(speeds)
        assert speeds[-1] < model.driver_limit(costs, machines)
        slow, fast = (model.predict(costs, machines, 10**7, gain) for gain in (1, 4))
        assert fast.pieces[model.WORK] == pytest.approx(slow.pieces[model.WORK] / 4)
        assert model.predict(costs.cautious, machines, 10**7).edges_per_second < slow.edges_per_second
    scalable = model.CostModel(
        **CONSTANTS | {"shard": 0.0, "pair": 0.0, "serial_per_shard": 0.0, "through_driver_per_shard": 0.0}
    )
    speeds = [model.predict(scalable, machines, 10**7).edges_per_second for machines in model.MACHINES]
    assert speeds == sorted(speeds)
    assert np.all(
        np.diff([model.network_rate(scalable, model.predict(scalable, machines, 10**7)) for machines in model.MACHINES])
        < 0
    )


@pytest.mark.parametrize(
    ("constants", "limit"),
    [
        ({"pair": 1.0}, "calls"),
        ({"serial_per_shard": 1e-3}, "driver"),
        ({"work": 1.0}, "work"),
        ({"sent": 1e9}, "network"),
        ({"through_driver": 1e9}, "the driver's network"),
    ],
)
def test_prediction_names_the_dominant_cost(model: ModuleType, constants: dict[str, float], limit: str) -> None:
    prediction = model.predict(model.CostModel(**CONSTANTS | constants), 64, 10**6)
    assert prediction.limit == limit
    assert prediction.share(limit) > 0.9
    assert prediction.share(*prediction.pieces) == pytest.approx(1)


def test_half_precision_halves_the_bytes_of_rows(model: ModuleType) -> None:
    costs = model.CostModel(**CONSTANTS)
    assert model.bytes_between_shards(costs, 4) == pytest.approx((4_000 - 1_500) * 3 / 4)
    memory = {"vertices": 2**20, "resident_mb": 1_100, "resident_beyond_imports_mb": 1_000}
    ids = {"int_bytes_per_id": 40, "text_bytes_per_id": 60}
    assert model.state_bytes(memory, ids) == pytest.approx(10**9 * (1_000 - 256 - 40 + 60))
    assert model.machine_bytes(memory, ids, 16) == pytest.approx(10**9 * 764 / 16 + 100 * 2**20)


@pytest.fixture
def results_folder(model: ModuleType, tmp_path: Path) -> Path:
    """Write all records to a folder."""
    for name, record in zip(("cluster", "driver"), create_records(model), strict=True):
        (tmp_path / f"{name}.json").write_text(json.dumps(record))
    for name in ("memory", "ids"):
        (tmp_path / f"{name}.json").write_text((ROOT / f"results/{name}.json").read_text())
    return tmp_path


def test_figure_with_driver_record_has_both_panels(
    benchmark: Callable[[str], ModuleType], results_folder: Path
) -> None:
    record, path = json.loads((results_folder / "cluster.json").read_text()), results_folder / "figures/scaling.svg"
    benchmark("_cluster_figure").save_figure(record, path, results_folder)
    assert "10,000,000 edges a batch" in path.read_text()
    (results_folder / "driver.json").unlink()
    benchmark("_cluster_figure").save_figure(record, path, results_folder)
    assert "100,000 edges a batch" in path.read_text()
    assert "10,000,000 edges a batch" not in path.read_text()


@pytest.fixture
def blocks(benchmark: Callable[[str], ModuleType], results_folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "studies")
    blocks = benchmark("blocks.cluster")
    for module in (blocks, benchmark("blocks.records")):
        monkeypatch.setattr(module, "RESULTS", results_folder)
    return blocks


def test_cluster_block_shows_the_measurements(blocks: ModuleType) -> None:
    block = blocks.cluster()
    assert "| | no shards | 1 shard | 2 shards | 4 shards |" in block
    assert "| a batch of 100,000 edges | 100 ms |" in block
    assert "| bytes sent between shards per arrival | – | 0 | 2,000 | 3,000 |" in block
    assert "| bit-identical vectors | – | yes | yes | yes |" in block


def test_cluster_model_block_shows_predictions_and_assumptions(blocks: ModuleType, results_folder: Path) -> None:
    block = blocks.cluster_model()
    assert "| | 16 machines | 64 machines | 256 machines |" in block
    assert "GiB |" in block
    assert "Assumptions, not measured" in block
    in_one_line = " ".join(block.split())
    assert "its calls, its own work and its network link take" in in_one_line
    assert "add memory but no speed, because the driver processes a batch once for every shard." in in_one_line
    assert "![" not in block
    (results_folder / "figures").mkdir()
    (results_folder / "figures/scaling.svg").write_text("<svg/>")
    assert blocks.cluster_model().endswith("![Edges per second by number of machines](../results/figures/scaling.svg)")


def test_cluster_model_block_warns_of_an_inaccurate_check(blocks: ModuleType, results_folder: Path) -> None:
    record = json.loads((results_folder / "cluster.json").read_text())
    assert "order of magnitude" not in blocks.cluster_model()
    record["shards_4_seconds_20000"] *= 2
    (results_folder / "cluster.json").write_text(json.dumps(record))
    assert "order of magnitude" in " ".join(blocks.cluster_model().split())


def test_blocks_without_records_are_a_dash(blocks: ModuleType, results_folder: Path) -> None:
    (results_folder / "driver.json").unlink()
    assert blocks.cluster() != blocks.cluster_model() == blocks.MISSING
    (results_folder / "cluster.json").unlink()
    assert blocks.cluster() == blocks.MISSING


def test_driver_benchmark_runs_without_shards(
    benchmark: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = benchmark("cluster_driver")
    monkeypatch.setattr(driver, "count_calls", dict)
    monkeypatch.setattr(driver, "SHARDS", (1, 3))
    metrics = driver.measure(50)
    assert set(metrics) == {"arrivals"} | {f"shards_{n}_{unit}_per_arrival" for n in (1, 3) for unit in ("us", "bytes")}
    assert metrics["shards_3_bytes_per_arrival"] == metrics["shards_1_bytes_per_arrival"]  # all batches go to one shard


def test_count_calls_grows_with_the_batch(
    benchmark: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = benchmark("cluster_driver")
    for name, value in {"SMALL": 400, "START": 200, "BATCHES": (1, 100)}.items():
        monkeypatch.setattr(driver, name, value)
    metrics = driver.count_calls()
    assert metrics["calls_100"] > metrics["calls_1"] > metrics["exchanges_1"] > 0
