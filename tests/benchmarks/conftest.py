"""The benchmarks as modules, and the page that is written from what they measure."""

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
    """Import a file of benchmarks/ as it is imported there."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module


@pytest.fixture
def page_of(benchmark: Import, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., str]:
    """What studies/blocks/scale.py says of figures, once they have been written down as a record."""
    monkeypatch.syspath_prepend(ROOT / "studies")
    scale = benchmark("blocks.scale")
    monkeypatch.setattr(benchmark("blocks.records"), "RESULTS", tmp_path)

    def page(name: str, figures: dict[str, Any]) -> str:
        assert all(math.isfinite(value) for value in figures.values() if not isinstance(value, str | dict))
        benchmark("_report").write(tmp_path / f"{name}.json", figures)
        scale.aims_at_scale()
        said: str = getattr(scale, name)()
        assert said != scale.MISSING
        return said

    return page
