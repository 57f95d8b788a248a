"""The model of many machines finds the constants that a record was made of, and says what limits."""

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


def records(model: ModuleType, **other: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """What cluster.py and driver.py would have measured were the model true."""
    true = model.CostModel(**CONSTANTS | other)
    cluster: dict[str, Any] = {"vertices": 1000, "cores": CORES}
    cluster |= {f"single_seconds_{size}": size * 5e-6 for size in (1, 200, 20_000)}
    for shards in (1, 2, 4):
        seconds = {size: model.predict_local(true, shards, size, CORES, TWO_THREADS) for size in (200, 20_000)}
        seconds[1] = true.fixed(shards) / true.calls_over_one
        found = {f"seconds_{size}": value for size, value in seconds.items()}
        found |= {f"of_single_{size}": size * 5e-6 / value for size, value in seconds.items()}
        found |= {f"{name}_per_arrival": value * (1 - 1 / shards) for name, value in _sent(true).items()}
        found |= {"sent_over_needed": true.sent / true.needed, "same": 1.0}
        cluster |= {f"shards_{shards}_{name}": value for name, value in found.items()}
    driver = {"arrivals": 1000, "calls_1": true.calls / true.calls_over_one, "calls_20000": true.calls}
    for shards in (1, 4, 16, 64, 256):
        driver[f"shards_{shards}_us_per_arrival"] = 1e6 * true.driver(shards)
        driver[f"shards_{shards}_bytes_per_arrival"] = true.through_driver + 16 * shards
    return cluster, driver


def _sent(true: Any) -> dict[str, float]:
    return {"bytes": true.sent, "needed": true.needed}


@pytest.mark.parametrize("other", [{}, {"pair": 0.0}, {"exchange": 0.0}])
def test_the_constants_are_found_again(model: ModuleType, other: dict[str, float]) -> None:
    found = model.calibrate(*records(model, **other), TWO_THREADS)
    for name, value in (CONSTANTS | other).items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-6, abs=1e-9), name
    assert found.check == pytest.approx(0, abs=1e-9)
    assert found.traffic_check == pytest.approx(0, abs=1e-9)


def test_four_shards_are_not_fitted_but_checked(model: ModuleType) -> None:
    cluster, driver = records(model)
    cluster["shards_4_seconds_20000"] *= 2
    cluster["shards_4_bytes_per_arrival"] *= 0.8
    found = model.calibrate(cluster, driver, TWO_THREADS)
    assert found.work == pytest.approx(CONSTANTS["work"])
    assert found.check == pytest.approx(-0.5)
    assert found.traffic_check == pytest.approx(0.25)


def test_nothing_measured_makes_a_negative_cost(model: ModuleType) -> None:
    cluster, driver = records(model)
    cluster["shards_4_seconds_1"] = cluster["shards_1_seconds_1"] / 2
    cluster["shards_2_seconds_20000"] = cluster["shards_1_seconds_20000"] / 9
    found = model.calibrate(cluster, driver, TWO_THREADS)
    assert min(found.call, found.shard, found.pair, found.work, found.exchange) >= 0


def test_predictions_go_the_right_way(model: ModuleType) -> None:
    found = model.CostModel(**CONSTANTS)
    for machines in model.MACHINES:
        speeds = [model.predict(found, machines, batch).edges_per_second for batch in model.BATCHES]
        assert speeds == sorted(speeds)
        assert speeds[-1] < model.driver_limit(found, machines)
        one, more = (model.predict(found, machines, 10**7, gain) for gain in (1, 4))
        assert more.pieces[model.WORK] == pytest.approx(one.pieces[model.WORK] / 4)
        assert model.predict(found.cautious, machines, 10**7).edges_per_second < one.edges_per_second
    easy = model.CostModel(
        **CONSTANTS | {"shard": 0.0, "pair": 0.0, "serial_per_shard": 0.0, "through_driver_per_shard": 0.0}
    )
    speeds = [model.predict(easy, machines, 10**7).edges_per_second for machines in model.MACHINES]
    assert speeds == sorted(speeds)
    assert np.all(
        np.diff([model.network_rate(easy, model.predict(easy, machines, 10**7)) for machines in model.MACHINES]) < 0
    )


@pytest.mark.parametrize(
    ("other", "limit"),
    [
        ({"pair": 1.0}, "calls"),
        ({"serial_per_shard": 1e-3}, "driver"),
        ({"work": 1.0}, "work"),
        ({"sent": 1e9}, "network"),
        ({"through_driver": 1e9}, "the driver's network"),
    ],
)
def test_what_takes_longest_is_named(model: ModuleType, other: dict[str, float], limit: str) -> None:
    found = model.predict(model.CostModel(**CONSTANTS | other), 64, 10**6)
    assert found.limit == limit
    assert found.share(limit) > 0.9
    assert found.share(*found.pieces) == pytest.approx(1)


def test_rows_of_half_precision_are_half_of_what_is_sent_and_kept(model: ModuleType) -> None:
    found = model.CostModel(**CONSTANTS)
    assert model.bytes_between_shards(found, 4) == pytest.approx((4_000 - 1_500) * 3 / 4)
    memory = {"vertices": 2**20, "resident_mb": 1_100, "resident_beyond_imports_mb": 1_000}
    ids = {"int_bytes_per_id": 40, "text_bytes_per_id": 60}
    assert model.state_bytes(memory, ids) == pytest.approx(10**9 * (1_000 - 256 - 40 + 60))
    assert model.machine_bytes(memory, ids, 16) == pytest.approx(10**9 * 764 / 16 + 100 * 2**20)


@pytest.fixture
def written(model: ModuleType, tmp_path: Path) -> Path:
    """A folder of records."""
    for name, record in zip(("cluster", "driver"), records(model), strict=True):
        (tmp_path / f"{name}.json").write_text(json.dumps(record))
    for name in ("memory", "ids"):
        (tmp_path / f"{name}.json").write_text((ROOT / f"results/{name}.json").read_text())
    return tmp_path


def test_the_figure_has_both_panels_once_the_driver_was_timed(
    benchmark: Callable[[str], ModuleType], written: Path
) -> None:
    record, path = json.loads((written / "cluster.json").read_text()), written / "figures/scaling.svg"
    benchmark("_cluster_figure").save_figure(record, path, written)
    assert "10,000,000 edges a batch" in path.read_text()
    (written / "driver.json").unlink()
    benchmark("_cluster_figure").save_figure(record, path, written)
    assert "100,000 edges a batch" in path.read_text()
    assert "10,000,000 edges a batch" not in path.read_text()


@pytest.fixture
def scaling(benchmark: Callable[[str], ModuleType], written: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "studies")
    blocks = benchmark("blocks.scaling")
    for module in (blocks, benchmark("blocks.records")):
        monkeypatch.setattr(module, "RESULTS", written)
    return blocks


def test_the_page_says_what_was_measured(scaling: ModuleType) -> None:
    said = scaling.cluster()
    assert "| | no shards | 1 shard | 2 shards | 4 shards |" in said
    assert "| a batch of 100,000 edges | 100 ms |" in said
    assert "| bytes sent between shards per arrival | – | 0 | 2,000 | 3,000 |" in said
    assert "| bit-identical vectors | – | yes | yes | yes |" in said


def test_the_page_says_what_is_predicted_and_assumed(scaling: ModuleType, written: Path) -> None:
    said = scaling.cluster_model()
    assert "| | 16 machines | 64 machines | 256 machines |" in said
    assert "GiB |" in said
    assert "Assumptions, not measured" in said
    in_one_line = " ".join(said.split())
    assert "its calls, its own work and its network link take" in in_one_line
    assert "add memory but no speed, because the driver processes a batch once for every shard." in in_one_line
    assert "![" not in said
    (written / "figures").mkdir()
    (written / "figures/scaling.svg").write_text("<svg/>")
    assert scaling.cluster_model().endswith("![Edges per second by number of machines](../results/figures/scaling.svg)")


def test_a_check_that_is_far_off_is_said(scaling: ModuleType, written: Path) -> None:
    record = json.loads((written / "cluster.json").read_text())
    assert "order of magnitude" not in scaling.cluster_model()
    record["shards_4_seconds_20000"] *= 2
    (written / "cluster.json").write_text(json.dumps(record))
    assert "order of magnitude" in " ".join(scaling.cluster_model().split())


def test_without_records_there_is_a_dash(scaling: ModuleType, written: Path) -> None:
    (written / "driver.json").unlink()
    assert scaling.cluster() != scaling.cluster_model() == scaling.MISSING
    (written / "cluster.json").unlink()
    assert scaling.cluster() == scaling.MISSING


def test_the_driver_is_timed_on_shards_that_are_not_there(
    benchmark: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = benchmark("driver")
    monkeypatch.setattr(driver, "count_calls", dict)
    monkeypatch.setattr(driver, "SHARDS", (1, 3))
    found = driver.measure(50)
    assert set(found) == {"arrivals"} | {f"shards_{n}_{what}_per_arrival" for n in (1, 3) for what in ("us", "bytes")}
    assert found["shards_3_bytes_per_arrival"] == found["shards_1_bytes_per_arrival"]  # everything goes to one of them


def test_calls_of_a_batch_are_counted(benchmark: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    driver = benchmark("driver")
    for name, value in {"SMALL": 400, "START": 200, "BATCHES": (1, 100)}.items():
        monkeypatch.setattr(driver, name, value)
    found = driver.count_calls()
    assert found["calls_100"] > found["calls_1"] > found["exchanges_1"] > 0
