"""Fixtures of the benchmark tests: benchmarks as modules, and the documentation blocks made from their records."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
Import = Callable[[str], ModuleType]


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Import:
    """Return a function that imports a file of benchmarks/ as a benchmark does."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module


@pytest.fixture
def render_block(benchmark: Import, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., str]:
    """Return a function that writes metrics as a record and renders the block of docs/performance.md made from it."""
    monkeypatch.syspath_prepend(ROOT / "studies")
    performance = benchmark("blocks.performance")
    monkeypatch.setattr(benchmark("blocks.records"), "RESULTS", tmp_path)

    def render(name: str, metrics: dict[str, Any]) -> str:
        assert all(math.isfinite(value) for value in metrics.values() if not isinstance(value, str | dict))
        benchmark("_report").write_record(tmp_path / f"{name}.json", metrics)
        performance.goals_at_scale()
        block: str = getattr(performance, name)()
        assert block != performance.MISSING
        return block

    return render
