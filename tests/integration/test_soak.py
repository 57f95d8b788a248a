"""Short soak test (see `make soak`): traffic, reads and kills lose no acknowledged batch and apply none twice."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
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
    assert len(part["samples"]) > 5
    assert ElementTree.parse(tmp_path / "soak.svg").getroot().tag.endswith("svg")
    record = run_part(tmp_path, minutes=0.1, kills=0)
    assert record["parts"][0] == part
    assert (record["parts"][1]["continued"], record["parts"][1]["batches_before"]) == (True, part["batches"])
    assert record["overall"]["faults"] == []
    assert record["overall"]["batches"] == sum(part["batches"] for part in record["parts"])
    assert record["hours"] == pytest.approx(0.35 / 60, abs=0.001)


def test_soak_record_percentiles_cover_latencies_of_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SOAK.parent)
    record = importlib.import_module("_soak_record")
    latencies = np.random.default_rng(0).lognormal(2, 1, 10_000)
    parts = [{"latency_bins": {"write": record.count_by_bin(half)}} for half in np.split(latencies, 2)]
    percentiles = record._percentiles(parts, "write")
    for share in (50, 99, 99.9):
        exact = np.percentile(latencies, share)
        assert exact * 0.99 <= percentiles[f"p{share:g}"] <= exact * 1.06


def test_soak_record_memory_slope_uses_settled_samples_of_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SOAK.parent)
    record = importlib.import_module("_soak_record")
    samples = [
        [
            {"seconds": second, "resident_mb": 500 + 2 * (before + second / 3600), "settled": True}
            for second in range(60)
        ]
        for before in (0.0, 0.5)
    ]
    samples[0].append({"seconds": 61, "resident_mb": 9000.0, "settled": False})
    assert record.memory_slope([{"minutes": 30, "samples": part} for part in samples]) == pytest.approx(2)


def test_soak_series_flatness_uses_settled_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SOAK.parent)
    series = importlib.import_module("_soak_series")
    settled = [10 <= second < 40 or second >= 50 for second in range(101)]
    samples = [
        series.Sample(second, 200.0 + second if calm else 0.0, 50.0, 20, second, calm)
        for second, calm in enumerate(settled)
    ]
    log = [(second - 0.5, 0.010 if settled[second] else 9.0) for second in range(1, 101)]
    measurements = series.SoakSeries(samples, {"write": log}, warmup=10.0)
    flatness = measurements.flatness()
    assert flatness["resident_mb"]["last_over_first"] == pytest.approx(286 / 225, rel=0.02)
    assert flatness["resident_mb"]["fitted_change"] == pytest.approx(90 / 259, rel=0.05)
    assert flatness["handles"] == {"first_third": 20, "last_third": 20, "last_over_first": 1, "fitted_change": 0}
    assert flatness["write_p99_ms"]["last_third"] == pytest.approx(10)
    assert measurements.after_kills()["write_p99_ms"] == pytest.approx(9000)
