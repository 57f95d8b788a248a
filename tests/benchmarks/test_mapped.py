"""Tests of the benchmark of memory-mapped vectors: the stream, the memory limit, and cleanup."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripplevec import Embedder

VERTICES = 400


@pytest.fixture
def mapped(benchmark: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    module = benchmark("mapped")
    for name, value in {"START_SIZE": 200, "BATCH_ARRIVALS": 10}.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.chdir(tmp_path)
    return module


@pytest.mark.parametrize("in_a_file", [False, True])
def test_stream_stores_vectors_in_the_given_directory(
    mapped: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, in_a_file: bool
) -> None:
    models, directory = list[Embedder](), str(tmp_path) if in_a_file else None

    def create_model(**parameters: Any) -> Embedder:
        models.append(Embedder(**parameters))
        return models[-1]

    monkeypatch.setattr(mapped, "Embedder", create_model)
    microseconds, _ = mapped.stream(VERTICES, directory)
    (model,) = models
    assert microseconds > 0
    assert len(model) == VERTICES
    assert model.storage_dir == directory
    assert model.dim == 128


def test_mapped_record_contains_all_documented_metrics(
    mapped: Any, render_block: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls = []

    def stream_here(vertices: int, directory: str | None, group: Path | None = None) -> tuple[float, float]:
        calls.append((directory is not None, group is not None))
        return mapped.stream(vertices, directory)[0], 500.0

    monkeypatch.setattr(mapped, "stream_in_process", stream_here)
    metrics = mapped.measure(VERTICES)
    limited = "us_with_room_for_half" in metrics
    assert calls == [(False, False), (True, False), (True, True)][: 2 + limited]
    assert metrics["vectors_mb"] == pytest.approx(400 * 128 * 4 / 2**20)
    assert not list(tmp_path.iterdir())
    assert not [root for root in mapped.CGROUP_LIMITS.values() if (root / f"ripplevec-{mapped.os.getpid()}").exists()]
    block = " ".join(render_block("mapped", metrics).split())
    assert ("room for half" in block) == limited


def test_join_cgroup_moves_process_into_the_group(mapped: Any) -> None:
    with mapped.limit_memory(300.0) as group:
        if group is None:
            pytest.skip("creating a control group requires root")
        (limit,) = [name for name in mapped.CGROUP_LIMITS if (group / name).exists()]
        assert int((group / limit).read_text()) == 300 * 2**20
        assert (group / "cgroup.procs").read_text() == ""
        context = mapped.get_context("spawn")
        with mapped.ProcessPoolExecutor(
            1, mp_context=context, initializer=mapped.join_cgroup, initargs=(group,)
        ) as pool:
            processes = pool.submit((group / "cgroup.procs").read_text).result()
            assert processes.split() == [str(process) for process in pool._processes]
    assert not group.exists()


def test_limit_memory_without_permission_yields_none(
    mapped: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(mapped, "CGROUP_LIMITS", {})
    with mapped.limit_memory(300.0) as group:
        assert group is None
    (tmp_path / "cgroup.procs").touch()
    (tmp_path / f"ripplevec-{mapped.os.getpid()}").touch()
    monkeypatch.setattr(mapped, "CGROUP_LIMITS", {"memory.max": tmp_path})
    with mapped.limit_memory(300.0) as group:
        assert group is None
