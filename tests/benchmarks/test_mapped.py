"""Vectors in a file: both ways on the same stream, a limit on memory that is one, and nothing left behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripplevec import Embedder

VERTICES = 400


@pytest.fixture
def mapped(benchmark: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    made = benchmark("mapped")
    for name, value in {"START": 200, "AT_ONCE": 10}.items():
        monkeypatch.setattr(made, name, value)
    monkeypatch.chdir(tmp_path)
    return made


@pytest.mark.parametrize("in_a_file", [False, True])
def test_a_stream_is_kept_where_it_was_told_to_be(
    mapped: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, in_a_file: bool
) -> None:
    kept, directory = list[Embedder](), str(tmp_path) if in_a_file else None

    def keep(**parameters: Any) -> Embedder:
        kept.append(Embedder(**parameters))
        return kept[-1]

    monkeypatch.setattr(mapped, "Embedder", keep)
    microseconds, _ = mapped.stream(VERTICES, directory)
    (model,) = kept
    assert microseconds > 0
    assert len(model) == VERTICES
    assert model.storage_dir == directory
    assert model.dim == 128


def test_a_record_says_what_the_page_asks_for(
    mapped: Any, page_of: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = []

    def here(vertices: int, directory: str | None, group: Path | None = None) -> tuple[float, float]:
        asked.append((directory is not None, group is not None))
        return mapped.stream(vertices, directory)[0], 500.0

    monkeypatch.setattr(mapped, "apart", here)
    figures = mapped.measure(VERTICES)
    limited = "us_with_room_for_half" in figures
    assert asked == [(False, False), (True, False), (True, True)][: 2 + limited]
    assert figures["vectors_mb"] == pytest.approx(400 * 128 * 4 / 2**20)
    assert not list(tmp_path.iterdir())
    assert not [root for root in mapped.GROUPS.values() if (root / f"ripplevec-{mapped.os.getpid()}").exists()]
    page = " ".join(page_of("mapped", figures).split())
    assert ("room for half" in page) == limited


def test_a_process_of_its_own_is_in_the_group_that_it_was_given(mapped: Any) -> None:
    with mapped.limited(300.0) as group:
        if group is None:
            pytest.skip("a control group that limits memory is for root to make")
        (limit,) = [name for name in mapped.GROUPS if (group / name).exists()]
        assert int((group / limit).read_text()) == 300 * 2**20
        assert (group / "cgroup.procs").read_text() == ""
        context = mapped.get_context("spawn")
        with mapped.ProcessPoolExecutor(1, mp_context=context, initializer=mapped.join, initargs=(group,)) as pool:
            within = pool.submit((group / "cgroup.procs").read_text).result()
            assert within.split() == [str(process) for process in pool._processes]
    assert not group.exists()


def test_where_no_group_can_be_made_there_is_none(mapped: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(mapped, "GROUPS", {})
    with mapped.limited(300.0) as group:
        assert group is None
    (tmp_path / "cgroup.procs").touch()
    (tmp_path / f"ripplevec-{mapped.os.getpid()}").touch()
    monkeypatch.setattr(mapped, "GROUPS", {"memory.max": tmp_path})
    with mapped.limited(300.0) as group:
        assert group is None
