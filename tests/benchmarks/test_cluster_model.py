"""Tests of the cluster cost model: calibration recovers known constants, and predictions name the limit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORES, TWO_THREADS = 2, 1.25
CONSTANTS = {"call": 2e-3, "driver": 1e-7, "exchange": 1e-4, "message": 2e-5, "work": 6e-6, "remote": 2e-6}
MESSAGES: dict[str, Any] = {
    "vertices": 1000,
    **{
        f"shards_{shards}_{name}": value
        for shards in (1, 2, 4, 8, 16, 64)
        for name, value in {
            "exchanges_1": 15 + shards % 3,  # varies, as with the waves of a real batch
            "exchanges_20000": 40 + shards,
            "exchanges_200000": 60 + shards,
            **{f"large_exchanges_{size}": 8 for size in (1, 20_000, 200_000)},
            **{f"large_bytes_{size}": 2_000.0 * (1 - 1 / shards) / shards for size in (20_000, 200_000)},
            "bytes_1": 100.0,
            "bytes_20000": 3_000.0 * (1 - 1 / shards) / shards,
            "bytes_200000": 3_000.0 * (1 - 1 / shards) / shards,
        }.items()
    },
}


@pytest.fixture
def model(benchmark: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark("_cluster_model")


def exact_model(model: ModuleType, **constants: float) -> Any:
    return model.CostModel(**CONSTANTS | constants, threads=TWO_THREADS, messages=MESSAGES)


def create_record(model: ModuleType, **constants: float) -> dict[str, Any]:
    """Return the record that cluster.py would write if the model were exact."""
    exact = exact_model(model, **constants)
    record: dict[str, Any] = {"vertices": 1000, "cores": CORES}
    record |= {f"single_seconds_{size}": size * 5e-6 for size in (1, 200, 20_000)}
    for shards in (1, 2, 4, 8):
        processor = {1: shards * exact.exchange_seconds(shards, 1), 20_000: exact.processor_seconds(shards, 20_000)}
        single = exact.call + processor[1]
        seconds = {1: single, 200: 2 * single, 20_000: model.predict_local(exact, shards, CORES)}
        metrics: dict[str, float] = {f"seconds_{size}": value for size, value in seconds.items()}
        metrics |= {f"processor_{size}": value for size, value in processor.items()}
        metrics |= {"driver_1": 1e-3, "driver_20000": 1e-3 + 20_000 * exact.driver}
        metrics |= {f"of_single_{size}": size * 5e-6 / value for size, value in seconds.items()}
        metrics |= {"bytes_per_arrival": 4_000 * (1 - 1 / shards), "sent_over_needed": 4 / 3, "same": 1.0}
        record |= {f"shards_{shards}_{name}": value for name, value in metrics.items()}
    return record


@pytest.mark.parametrize("constants", [{}, {"message": 0.0}, {"remote": 0.0}])
def test_calibrate_recovers_the_constants(model: ModuleType, constants: dict[str, float]) -> None:
    costs = model.calibrate(create_record(model, **constants), MESSAGES, TWO_THREADS)
    for name, value in (CONSTANTS | constants).items():
        assert getattr(costs, name) == pytest.approx(value, rel=1e-6, abs=1e-9), name
    assert costs.processor_errors == pytest.approx((0,) * 2, abs=1e-9)
    assert costs.elapsed_errors == pytest.approx((0,) * 4, abs=1e-9)


def test_calibrate_checks_but_does_not_fit_more_shards(model: ModuleType) -> None:
    record = create_record(model)
    record["shards_4_processor_20000"] *= 2
    record["shards_8_processor_20000"] /= 2
    record["shards_8_seconds_20000"] /= 2
    costs = model.calibrate(record, MESSAGES, TWO_THREADS)
    assert costs.work == pytest.approx(CONSTANTS["work"])
    assert costs.processor_errors == pytest.approx((-0.5, 1.0))
    assert costs.elapsed_errors == pytest.approx((0, 0, 0, 1), abs=1e-9)


def test_calibrate_with_noise_gives_no_negative_cost(model: ModuleType) -> None:
    record = create_record(model)
    record["shards_8_processor_1"] = record["shards_1_processor_1"] / 2
    record["shards_2_processor_20000"] = record["shards_1_processor_20000"] / 9
    for shards in (1, 2, 4, 8):
        record[f"shards_{shards}_driver_20000"] = 0.0
    record["shards_1_seconds_1"] = record["shards_1_processor_1"] / 2
    costs = model.calibrate(record, MESSAGES, TWO_THREADS)
    assert min(costs.call, costs.driver, costs.exchange, costs.message, costs.work, costs.remote) >= 0


def test_larger_batches_and_more_machines_are_faster_if_exchanges_are_free(model: ModuleType) -> None:
    costs = exact_model(model)
    for machines in model.MACHINES:
        speeds = [model.predict(costs, machines, batch).edges_per_second for batch in model.BATCHES]
        assert speeds == sorted(speeds)
    free = exact_model(model, exchange=0.0, message=0.0)
    speeds = [model.predict(free, machines, 10**6).edges_per_second for machines in model.MACHINES]
    assert speeds == sorted(speeds)


@pytest.mark.parametrize(
    ("constants", "limit"),
    [({"call": 100.0}, "call"), ({"driver": 1.0}, "driver"), ({"message": 1.0}, "exchanges"), ({"work": 1.0}, "work")],
)
def test_prediction_names_the_dominant_cost(model: ModuleType, constants: dict[str, float], limit: str) -> None:
    prediction = model.predict(exact_model(model, **constants), 64, 10**6)
    assert prediction.limit == limit
    assert prediction.share(limit) > 0.9
    assert prediction.share(*prediction.pieces) == pytest.approx(1)


def test_predictions_use_the_exchanges_and_bytes_of_a_large_graph(model: ModuleType) -> None:
    costs = exact_model(model)
    assert costs.count_exchanges(64, 200_000) == 124
    assert costs.count_exchanges(64, 200_000, large=True) == 8
    counted, large = (model.predict(costs, 64, 10**6, large=large).pieces for large in (False, True))
    saved = (124 - 8) * (CONSTANTS["exchange"] + 63 * CONSTANTS["message"] + model.LATENCY)
    assert counted["exchanges"] - large["exchanges"] == pytest.approx(saved)
    assert counted["network"] == pytest.approx(large["network"] * 3 / 2)
    rest = {"exchanges": 0, "network": 0}
    assert counted | rest == large | rest
    assert model.predict(costs, 64, 10**6).pieces == large


def test_half_precision_halves_the_bytes_of_vectors(model: ModuleType) -> None:
    memory = {"vertices": 2**20, "resident_mb": 1_100, "resident_beyond_imports_mb": 1_000}
    ids = {"int_bytes_per_id": 40, "text_bytes_per_id": 60}
    assert model.state_bytes(memory, ids) == pytest.approx(10**9 * (1_000 - 256 - 40 + 60))
    assert model.machine_bytes(memory, ids, 16) == pytest.approx(10**9 * 764 / 16 + 100 * 2**20)


@pytest.fixture
def results_folder(model: ModuleType, tmp_path: Path) -> Path:
    """Write all records to a folder."""
    roofline = {"float32_two_over_one": TWO_THREADS}
    for name, record in (("cluster", create_record(model)), ("messages", MESSAGES), ("roofline", roofline)):
        (tmp_path / f"{name}.json").write_text(json.dumps(record))
    for name in ("memory", "ids"):
        (tmp_path / f"{name}.json").write_text((ROOT / f"results/{name}.json").read_text())
    return tmp_path


def test_figure_with_counted_messages_has_both_panels(
    benchmark: Callable[[str], ModuleType], results_folder: Path
) -> None:
    record, path = json.loads((results_folder / "cluster.json").read_text()), results_folder / "figures/scaling.svg"
    benchmark("_cluster_figure").save_figure(record, path, results_folder)
    assert "1,000,000 edges a batch" in path.read_text()
    (results_folder / "messages.json").unlink()
    benchmark("_cluster_figure").save_figure(record, path, results_folder)
    assert "100,000 edges a batch" in path.read_text()
    assert "1,000,000 edges a batch" not in path.read_text()


@pytest.fixture
def blocks(benchmark: Callable[[str], ModuleType], results_folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "studies")
    blocks = benchmark("blocks.cluster")
    for module in (blocks, benchmark("blocks.records")):
        monkeypatch.setattr(module, "RESULTS", results_folder)
    return blocks


def test_cluster_block_shows_the_measurements(blocks: ModuleType) -> None:
    block = blocks.cluster()
    assert "| | no shards | 1 shard | 2 shards | 4 shards | 8 shards |" in block
    assert "| a batch of 100,000 edges | 100 ms |" in block
    assert "| bytes sent between shards per arrival | – | 0 | 2,000 | 3,000 | 3,500 |" in block
    assert "| bit-identical vectors | – | yes | yes | yes | yes |" in block


def test_cluster_model_block_shows_predictions_and_assumptions(blocks: ModuleType, results_folder: Path) -> None:
    block = blocks.cluster_model()
    assert "| | 4 machines | 16 machines | 64 machines |" in block
    assert "GiB |" in block
    assert "Assumptions, not measured" in block
    in_one_line = " ".join(block.split())
    assert "Such a batch takes 8 exchanges" in in_one_line
    assert "it takes 124 exchanges" in in_one_line
    assert "relative to one machine without shards (1,000,000)" in in_one_line
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
    record = {name: value for name, value in create_record(blocks.model).items() if "processor" not in name}
    (results_folder / "cluster.json").write_text(json.dumps(record))
    assert blocks.cluster() != blocks.cluster_model() == blocks.MISSING
    (results_folder / "messages.json").unlink()
    assert blocks.cluster() != blocks.cluster_model() == blocks.MISSING
    (results_folder / "cluster.json").unlink()
    assert blocks.cluster() == blocks.MISSING


def test_counted_messages_grow_with_shards_and_batches(
    benchmark: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = benchmark("cluster_messages")
    for name, value in {"START": 200, "BATCHES": (1, 100), "SHARDS": (1, 3)}.items():
        monkeypatch.setattr(messages, name, value)
    metrics = messages.measure(400)
    assert metrics["shards_1_bytes_100"] == 0 < metrics["shards_3_bytes_100"]
    assert metrics["shards_3_exchanges_100"] > metrics["shards_3_exchanges_1"] > 5
    assert metrics["shards_1_large_exchanges_100"] == metrics["shards_3_large_exchanges_100"] == 7
    assert metrics["shards_3_exchanges_100"] > metrics["shards_1_exchanges_100"] == 7
