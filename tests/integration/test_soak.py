"""Short soak test (see `make soak`): traffic, reads and kills lose no acknowledged batch and apply none twice."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

SOAK = Path(__file__).resolve().parents[2] / "benchmarks" / "soak.py"
SMALL_OPTIONS = {"minutes": 0.25, "kills": 2, "vertices": 1000, "arrivals": 25, "dim": 16, "snapshot-every": 5000}


def run_part(folder: Path, **options: Any) -> dict[str, Any]:
    arguments = (
        SMALL_OPTIONS
        | {"json": folder / "record.json", "picture": folder / "soak.svg", "state": folder / "kept"}
        | options
    )
    words = [word for name, value in arguments.items() for word in (f"--{name}", str(value))]
    process = subprocess.run([sys.executable, str(SOAK), *words], capture_output=True, text=True, timeout=500)
    assert process.returncode == 0, process.stdout + process.stderr
    return json.loads((folder / "record.json").read_text())


def test_soak_killed_service_ends_with_digest_of_undisturbed_one(tmp_path: Path) -> None:
    (part,) = run_part(tmp_path)["parts"]
    assert part["faults"] == []  # digest, sequence numbers, and reads of acknowledged vertices
    assert (part["killed"], part["continued"], part["batches_before"]) == (2, False, 0)
    assert part["snapshots"] > 1
    assert part["anchors"] > 1
    assert min(part["reads"], part["searches"], part["looks_at_changes"]) > 0
    assert all(sum(part["latency_bins"][probe].values()) > 0 for probe in ("health", "work"))
    assert part["environment"]["machine"]["cores"] >= 1
    assert len(part["samples"]) > 5
    assert ElementTree.parse(tmp_path / "soak.svg").getroot().tag.endswith("svg")
    record = run_part(tmp_path, minutes=0.1, kills=0, load=0.2)
    assert record["parts"][0] == part
    assert (record["parts"][1]["continued"], record["parts"][1]["batches_before"]) == (True, part["batches"])
    assert [each["load"] for each in record["parts"]] == [0.5, 0.2]
    assert record["overall"]["faults"] == []
    assert record["overall"]["batches"] == sum(part["batches"] for part in record["parts"])
    assert record["hours"] == pytest.approx(0.35 / 60, abs=0.001)


def test_soak_of_a_service_on_shards_ends_with_digest_of_undisturbed_one(tmp_path: Path) -> None:
    options = {"shards": 2, "ray-address": "in-process", "load": 0.3}
    record = run_part(tmp_path, **options)
    (part,) = record["parts"]
    assert part["faults"] == []
    assert (record["shards"], part["killed"], part["continued"]) == (2, 2, False)
    assert min(part["snapshots"], part["anchors"], part["reads"], part["searches"], part["looks_at_changes"]) > 0


def test_soak_record_percentiles_cover_latencies_of_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SOAK.parent)
    record = importlib.import_module("_soak_record")
    latencies = np.random.default_rng(0).lognormal(2, 1, 10_000)
    parts = [{"latency_bins": {"write": record.count_by_bin(half)}} for half in np.split(latencies, 2)]
    percentiles = record._percentiles(parts, "write")
    for share in (50, 99, 99.9):
        exact = np.percentile(latencies, share)
        assert exact * 0.99 <= percentiles[f"p{share:g}"] <= exact * 1.06


def make_life(first_second: int, level: float, slope: float, count: int = 2000) -> list[dict[str, Any]]:
    """Samples of a process: it grows to a level in its first batches, then by `slope` megabytes per hour."""
    return [
        {
            "seconds": first_second + n,
            "batches": 10 * (first_second + n),
            "resident_mb": level - max(0, 100 - n) + slope * n / 3600 + (-1) ** n,
        }
        for n in range(count)
    ]


def test_soak_record_memory_trend_is_that_of_warm_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the growth after each start nor another level after a restart is a trend."""
    monkeypatch.syspath_prepend(SOAK.parent)
    record = importlib.import_module("_soak_record")
    parts = [
        {"samples": make_life(0, 500, slope) + make_life(2000, 640, slope), "kills_at": [{"seconds": 1999.5}]}
        for slope in (12, 12)
    ]
    trend = record.memory_trend(parts)
    assert trend.slope == pytest.approx(12, abs=0.5)
    assert 0 < trend.error < 0.5
    assert trend.hours == pytest.approx(4 * 1900 / 3600, rel=0.01)


def test_soak_record_memory_of_short_lives_has_no_trend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SOAK.parent)
    record = importlib.import_module("_soak_record")
    lives = [make_life(100 * number, 500, 0, count=100) for number in range(12)]
    part = {"samples": list(chain(*lives)), "kills_at": [{"seconds": 100 * number - 0.5} for number in range(1, 12)]}
    assert record.memory_trend([part]) is None
    assert record.describe_memory([part])["memory_mb_per_hour"] is None


LOGGED = ("write", "read", "nearest", "work", "health")


def make_sample(series: Any, second: int, **fields: Any) -> Any:
    values = {
        "seconds": second,
        "resident_mb": 200.0,
        "state_mb": 50.0,
        "handles": 20,
        "batches": 4 * second,
        "processor_seconds": 0.12 * second,
        "load_average": 1.0,
        "settled": True,
    }
    return series.Sample(**values | fields)


def test_soak_series_flatness_uses_settled_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SOAK.parent)
    series = importlib.import_module("_soak_series")
    settled = [10 <= second < 40 or second >= 50 for second in range(101)]
    samples = [
        make_sample(series, second, state_mb=200.0 + second if calm else 0.0, settled=calm)
        for second, calm in enumerate(settled)
    ]
    log = [(second - 0.5, 0.010 if settled[second] else 9.0) for second in range(1, 101)]
    measurements = series.SoakSeries(samples, dict.fromkeys(LOGGED, log), warmup=10.0)
    flatness = measurements.flatness()
    assert flatness["state_mb"]["last_over_first"] == pytest.approx(286 / 225, rel=0.02)
    assert flatness["state_mb"]["fitted_change"] == pytest.approx(90 / 259, rel=0.05)
    assert flatness["handles"] == {"first_third": 20, "last_third": 20, "last_over_first": 1, "fitted_change": 0}
    assert flatness["write_p99_ms"]["last_third"] == pytest.approx(10)
    assert measurements.after_kills()["write_p99_ms"] == pytest.approx(9000)


@pytest.mark.parametrize(("killed", "expected"), [((), 1.0), ((50.0, 60.0, 70.0, 80.0), None)])
def test_soak_series_memory_is_compared_in_warm_processes(
    monkeypatch: pytest.MonkeyPatch, killed: tuple[float, ...], expected: float | None
) -> None:
    monkeypatch.syspath_prepend(SOAK.parent)
    series = importlib.import_module("_soak_series")
    samples = [
        make_sample(series, second, batches=100 * second, resident_mb=500.0 if second >= 10 else 300.0)
        for second in range(91)
    ]
    kills = [series.Kill(seconds, 1.0, 1.0, 0) for seconds in killed]
    measurements = series.SoakSeries(samples, {name: [] for name in LOGGED}, warmup=0.0, kills=kills)
    assert measurements.flatness()["resident_mb"]["last_over_first"] == expected


@pytest.mark.parametrize(("growth", "expected"), [(1.0, 1.0), (3.0, 3.0)])
def test_soak_series_relative_latency_shows_growth_but_not_load(
    monkeypatch: pytest.MonkeyPatch, growth: float, expected: float
) -> None:
    """All durations double in the second half, because of other programs; only those of writes may grow beyond that."""
    monkeypatch.syspath_prepend(SOAK.parent)
    series = importlib.import_module("_soak_series")
    samples = [make_sample(series, second) for second in range(121)]
    slowdown = [1.0 if second <= 60 else 2.0 for second in range(121)]
    logs = {
        name: [(second - 0.5, base * slowdown[second]) for second in range(1, 121)]
        for name, base in zip(LOGGED, (0.030, 0.004, 0.010, 0.008, 0.002), strict=True)
    }
    logs["write"] = [(at, seconds * (growth if at > 60 else 1.0)) for at, seconds in logs["write"]]
    flatness = series.SoakSeries(samples, logs, warmup=0.0).flatness()
    assert flatness["write_p50_ms"]["last_over_first"] == pytest.approx(2 * expected)
    assert flatness["write_p50_over_work"]["first_third"] == pytest.approx(30 / 8)
    assert flatness["write_p50_over_work"]["last_over_first"] == pytest.approx(expected)
    assert flatness["read_p99_over_health"]["last_over_first"] == pytest.approx(1)
    assert flatness["nearest_p50_over_health"]["first_third"] == pytest.approx(5)


def test_soak_series_processor_time_per_batch_ignores_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SOAK.parent)
    series = importlib.import_module("_soak_series")
    samples = [make_sample(series, second, processor_seconds=0.12 * (second % 50)) for second in range(101)]
    samples[20] = make_sample(series, 20, batches=samples[19].batches)  # no batch since the previous sample
    measured = series.SoakSeries(samples, {name: [] for name in LOGGED}, warmup=0.0)
    per_batch = measured.processor_ms_per_batch()
    assert np.flatnonzero(np.isnan(per_batch)).tolist() == [0, 20, 50, 100]
    assert np.nanmedian(per_batch) == pytest.approx(30)
    assert measured.flatness()["processor_ms_per_batch"]["last_over_first"] == pytest.approx(1, rel=0.05)


def make_part(record: Any, **fields: Any) -> dict[str, Any]:
    trend = {"first_third": 2.0, "last_third": 2.1, "last_over_first": 1.05, "fitted_change": 0.05}
    counted = ("batches", "anchors", "snapshots", "reads", "searches", "looks_at_changes", "killed", "sent_again")
    return {
        **dict.fromkeys(counted, 10),
        "minutes": 60.0,
        "load": 0.08,
        "arrivals_per_second": 90.0,
        "load_average_median": 12.5,
        "environment": {"machine": {"cores": 2}},
        "continued": False,
        "faults": [],
        "kills_at": [{"seconds": 1.0, "away": 8.5, "replayed": 40}],
        "samples": [
            {"seconds": 600.0 * n, "batches": 1000 * n, "resident_mb": 500.0 + n % 2, "settled": True} for n in range(7)
        ],
        "latency_bins": {"write": record.count_by_bin(np.array([20.0, 30.0]))},
        "flatness": dict.fromkeys(importlib.import_module("blocks.operations").SOAK_METRICS, trend),
        **fields,
    }


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        (
            [],
            [
                "1.00 hours in one part",
                "at 90 arrivals per second (8 % of",
                "load average of 12.5",
                "at most 8.5 s, for 40 replayed batches at a load average of 12.5",
                "| memory | 2.00 MB",
            ],
        ),
        (
            [{"continued": True}, {"load": 0.5, "arrivals_per_second": 1200.0, "faults": ["digest: wrong"]}],
            [
                "3.00 hours in 3 parts (1 of them",
                "90 to 1,200 arrivals",
                "8 to 50 % of",
                "digest: wrong",
                "memory, part 3",
            ],
        ),
    ],
)
def test_soak_block_of_any_number_of_parts_states_time_load_and_trends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, others: list[dict[str, Any]], expected: list[str]
) -> None:
    for folder in ("benchmarks", "studies"):
        monkeypatch.syspath_prepend(SOAK.parents[1] / folder)
    record, operations = importlib.import_module("_soak_record"), importlib.import_module("blocks.operations")
    monkeypatch.setattr(importlib.import_module("blocks.records"), "RESULTS", tmp_path)
    whole = record.SoakRecord(tmp_path / "soak.json", {"vertices": 20_000, "arrivals": 50, "dim": 128, "seed": 0})
    for fields in ({}, *others):
        whole.add(make_part(record, **fields))
    block = " ".join(operations.soak().split())
    assert [text for text in expected if text not in block] == []
    assert ("applied exactly once" in block) == (not others)
    assert f"{10 * (1 + len(others))} kills" in block
    assert "| 2.10 × | 1.05 × |" in block
    assert re.search(r"first 1,000 batches \(\d+\.\d hours\), memory changed by [+-]\d\.\d ± \d\.\d MB per hour", block)
