from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from ripplet.errors import InvalidValueError
from ripplet.experiments.cells import check, measure
from ripplet.experiments.kinds import KINDS, seconds
from ripplet.experiments.kinds.seconds import one_thread_each, retrainings

SECONDS = {
    "kind": "seconds",
    "dataset": "planted",
    "seed": 3,
    "dim": 8,
    "threads": 1,
    "shares": [0.3, 0.5],
    "baselines": {"deepwalk": {"walks": 2, "length": 5}, "node2vec": {"walks": 1, "length": 5}, "spectral": None},
}


def test_ratios_are_those_of_the_seconds_beside_them() -> None:
    figures = measure(SECONDS).figures
    assert figures["fastest_walker"] == min(figures["deepwalk"], figures["node2vec"])
    for name in ("ripplet", "ripplet_no_anchor"):
        assert figures[name] == pytest.approx((figures[f"{name}@30"] + figures[f"{name}@50"]) / 2)
        assert figures[f"{name}_times_faster"] == pytest.approx(figures["fastest_walker"] / figures[name])
        arrival = figures[f"{name}_arrival_us"] / 1e6
        assert figures[f"{name}_arrival_times_faster"] == pytest.approx(figures["fastest_walker"] / arrival)
    assert "spectral" in figures


def test_ours_is_start_and_stream_with_anchors_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    streamed: list[tuple[Any, float, int]] = []

    def planted_times(model: Any, dataset: Any, share: float = 0.5, seed: int = 0) -> Any:
        anchors = model.get_params()["anchor_growth"]
        streamed.append((anchors, share, seed))
        spent = 1.0 if anchors == 0 else 3.0
        return SimpleNamespace(start_seconds=10 * share, stream_seconds=spent, arrival_seconds=np.ones(4))

    monkeypatch.setattr(seconds, "stream", planted_times)
    figures = measure(SECONDS).figures
    assert streamed[2:] == [("auto", 0.3, 3), ("auto", 0.5, 3), (0, 0.3, 3), (0, 0.5, 3)], "two before, to compile with"
    assert (figures["ripplet@30"], figures["ripplet@50"], figures["ripplet"]) == (6.0, 8.0, 7.0)
    assert figures["ripplet_no_anchor"] == 5.0
    assert (figures["ripplet_arrival_us"], figures["ripplet_no_anchor_arrival_us"]) == (0.75e6, 0.25e6)


def test_without_walks_there_is_nothing_to_compare_with() -> None:
    figures = measure(SECONDS | {"baselines": {"spectral": {}}}).figures
    assert {"spectral", "ripplet", "ripplet_arrival_us"} <= figures.keys()
    assert not [name for name in figures if "faste" in name]


def test_dimension_seed_and_threads_hold_for_all_that_take_them() -> None:
    found = retrainings(SECONDS | {"threads": 2})
    assert (found["deepwalk"].dim, found["deepwalk"].seed, found["deepwalk"].threads) == (8, 3, 2)
    assert (found["deepwalk"].walks, found["node2vec"].walks) == (2, 1)
    assert (found["spectral"].dim, found["spectral"].seed) == (8, 3)
    assert retrainings({"dim": 8}) == {}


def test_settings_are_spelt_out_for_each_method() -> None:
    parameters = measure(SECONDS | {"shares": [0.5]}).parameters
    assert parameters["deepwalk"]["walks"] == 2
    assert parameters["spectral"] == {"dim": 8, "seed": 3}


def test_linear_algebra_keeps_to_the_threads_too() -> None:
    for threads in (2, 1):
        with one_thread_each(threads):
            assert {pool["num_threads"] for pool in threadpool_info()} == {threads}


def test_nothing_may_run_beside_it() -> None:
    assert KINDS["seconds"].alone


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"shares": []}, "shares: expected a list of shares"),
        ({"dim": 0}, "dim: expected"),
        ({"start": 0.5}, "parameters: expected only seed, dim, threads, shares, baselines, got 'start'"),
        ({"baselines": {"shallowwalk": {}}}, "baseline: expected one of"),
        ({"baselines": {"deepwalk": {"wlaks": 1}}}, "parameters: expected those of the kind of cell.*'wlaks'"),
    ],
)
def test_what_cannot_be_run_is_refused(change: dict[str, Any], expected: str) -> None:
    check(SECONDS)
    with pytest.raises(InvalidValueError, match=expected):
        check(SECONDS | change)
