from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.rules import _arrival_kernel, _correction_kernels, _kernels, _ritz_kernels, _rotation_kernels
from ripplevec.rules import stream_kernels as loading
from ripplevec.util.numba_intrinsics import Kernel

RING = [(u, (u + step) % 40) for u in range(40) for step in (1, 2)]


def run_function(name: str) -> None:
    """Run a function of this file in a process that has not called any kernel yet."""
    code = f"from test_stream_kernels import {name}; {name}()"
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, check=True)


def list_stream_kernels() -> dict[str, str]:
    """Return for which types the kernels of arrivals and anchors are compiled or loaded, by name."""
    modules = (_correction_kernels, _ritz_kernels, _rotation_kernels, _arrival_kernel)
    kernels = {name: value for module in modules for name, value in vars(module).items() if isinstance(value, Kernel)}
    kernels |= {"refresh": _kernels.refresh, "admit": _kernels.admit}
    return {name: str(kernel.signatures) for name, kernel in kernels.items() if kernel.signatures}


def stream_until_an_anchor_is_complete(model: Embedder) -> None:
    while not model.engine.anchors or model.engine.correction is not None:
        model.add_vertex(len(model), [len(model) - 1, len(model) - 2])


def check_small_stream() -> None:
    loading.run_small_stream()
    loaded = list_stream_kernels()
    assert {"filter_rows", "add_projections", "write_new_rows", "find_moved", "refresh", "apply_arrival"} <= set(loaded)
    stream_until_an_anchor_is_complete(Embedder(dim=4).fit(RING))
    assert list_stream_kernels() == loaded


def test_run_small_stream_calls_all_kernels_of_arrivals_and_gradual_anchors() -> None:
    run_function("check_small_stream")


@pytest.mark.parametrize("precision", [np.float32, np.float16])
def test_run_small_stream_needs_no_gpu(precision: type[np.floating[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """A model can have views on the CPU although the environment variable chooses a GPU."""
    monkeypatch.setenv("RIPPLEVEC_DEVICE", "cuda")
    loading.run_small_stream(precision)


def check_large_start() -> None:
    loading.MIN_VERTICES = len(RING) // 2
    model = Embedder(dim=4).fit(RING)
    loaded = list_stream_kernels()
    stream_until_an_anchor_is_complete(model)
    if not loading.report_compilation().kernels:  # they were all stored before
        assert list_stream_kernels() == loaded


def check_load() -> None:
    """Load a model with many vertices, from the folder that the test has written."""
    loading.MIN_VERTICES = len(RING) // 2
    model = Embedder.load(Path(sys.argv[-1]))
    assert "find_moved" in list_stream_kernels() or loading.report_compilation().kernels
    assert len(model) == len(RING) // 2


def test_start_of_a_large_graph_loads_the_kernels_of_its_stream(tmp_path: Path) -> None:
    run_function("check_large_start")  # compiles kernels that are not stored yet
    run_function("check_large_start")
    Embedder(dim=4).fit(RING).save(tmp_path / "model")
    code = "from test_stream_kernels import check_load; check_load()"
    subprocess.run([sys.executable, "-c", code, tmp_path / "model"], cwd=Path(__file__).parent, check=True)


@pytest.mark.parametrize("reason", ["small", "compiling", "rule"])
def test_load_stream_kernels_does_nothing_if(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = list[Any]()
    monkeypatch.setattr(loading, "_run_once", runs.append)
    monkeypatch.setattr(loading, "is_compiling_ahead", lambda: reason == "compiling")
    monkeypatch.setattr(loading.report_compilation(), "kernels", 0)
    rule = Embedder(dim=4, rule="paper" if reason == "rule" else "ripple").engine.rule
    loading.load_stream_kernels(rule, 5 if reason == "small" else loading.MIN_VERTICES)
    assert not runs
    if reason == "small":
        loading.load_stream_kernels(rule, loading.MIN_VERTICES)
        assert runs == [np.dtype(np.float32)]
